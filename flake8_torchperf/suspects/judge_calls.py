"""Calls, judged: which make Python wait for a tensor, and what grade they return.

Enters a judge and an ast call; leaves a grade, and sites noted in the judge. Must not know libcst
or the torch table.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.grades import (
    ANY,
    CPU,
    HOST,
    ITEM,
    KNOWN,
    LIST,
    OBJECT,
    READ,
    ROLE,
    TENSOR,
    TENSORS,
    TORCH,
    TYPED,
    WEAK,
    element,
    has_items,
    holding,
    iterated,
    mapping,
    matters,
    parameters_in,
)
from flake8_torchperf.suspects.modulemap import ClassInfo, FunctionInfo, is_static
from flake8_torchperf.suspects.stated import of_torch
from flake8_torchperf.suspects.words import (
    CASTS,
    DTYPES,
    FILLING,
    GROWING,
    HOST_CLASSES,
    ITERATING,
    ITERATIONS,
    KEEPING_ROLE,
    LOG_CALLS,
    MOVES,
    NUMBER_CALLS,
    PASSING,
    PER_PARAMETER,
    REDUCTIONS,
    SYNCHRONISING,
    TELLING,
    TENSOR_READS,
    TEXT_CALLS,
    TOLD_BY_CALL,
    Operations,
    TorchWords,
    is_public,
    torch_words,
)
from flake8_torchperf.suspects.world import Unread

if TYPE_CHECKING:
    from flake8_torchperf.suspects.judge import Judge


def call(judge: Judge, node: ast.Call) -> int:
    """The grade of a call's result."""
    func = node.func
    kind = func.__class__
    asked = judge.facts.world.asked
    if asked and getattr(func, "attr", getattr(func, "id", "")) in asked:
        judge.hit()
    if kind is ast.Attribute:
        return _attribute_call(judge, node, func)  # type: ignore[arg-type]
    if kind is ast.Name:
        return _name_call(judge, node, func.id)  # type: ignore[attr-defined]
    return called(judge, judge.grade(func), evaluated(judge, node))


def grows(node: ast.Call) -> bool:
    """``torch.cat([x, y])``: the growth of a tensor, if it stands in a loop."""
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name in GROWING


def _arguments(judge: Judge, node: ast.Call) -> int:
    """Evaluate all arguments; their grades together, parameters named among them."""
    joined = 0
    for argument in node.args:
        joined |= judge.grade(argument)
    for keyword in node.keywords:
        joined |= judge.grade(keyword.value)
    return joined


def evaluated(judge: Judge, node: ast.Call) -> dict[str | int, int]:
    """The grades of the arguments by position or keyword; "*" is what stars hide."""
    found: dict[str | int, int] = {}
    hidden = 0
    for position, argument in enumerate(node.args):
        grade = judge.grade(argument)
        if argument.__class__ is ast.Starred:
            hidden |= grade
        found[position] = grade | hidden
    for keyword in node.keywords:
        grade = judge.grade(keyword.value)
        if keyword.arg is None:
            hidden |= element(grade)
        else:
            found[keyword.arg] = grade
    if hidden:
        found["*"] = hidden
    return found


def joined_of(given: dict[str | int, int]) -> int:
    """All arguments together."""
    joined = 0
    for grade in given.values():
        joined |= grade
    return joined


def invoke(judge: Judge, info: FunctionInfo, given: dict[str | int, int], *, bound: bool) -> int:
    """Call a function of the project: remember what it is given, and take what it returns."""
    world = judge.facts.world
    named = _named(info, given, bound=bound and info.owner is not None)
    if any(map(matters, named.values())):
        world.give(info, named)
        if any(grade & (TENSOR | WEAK) for grade in named.values()):
            judge.gives.add(id(info))
    return world.facts(info.module).called(info, named)


def _named(info: FunctionInfo, given: dict[str | int, int], *, bound: bool) -> dict[str, int]:
    spec = info.node.args
    ordinary = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    if bound and not is_static(info.node):
        ordinary = ordinary[1:]
    named: dict[str, int] = {}
    hidden = given.get("*", 0)
    if hidden:
        named = dict.fromkeys((*ordinary, *(a.arg for a in spec.kwonlyargs)), hidden)
    for key, grade in given.items():
        if isinstance(key, int):
            if key < len(ordinary):
                named[ordinary[key]] = grade
            elif spec.vararg is not None:
                name = spec.vararg.arg
                named[name] = named.get(name, 0) | holding(grade)
        elif key != "*":
            named[key] = grade
            if spec.kwarg is not None:
                name = spec.kwarg.arg
                named[name] = named.get(name, 0) | holding(grade)
    return named


def typed_method(judge: Judge, grade: int, name: str, given: dict[str | int, int]) -> int:
    """A method of objects of known classes."""
    result = 0
    facts = judge.facts
    for info in facts.world.classes(grade):
        found = facts.method(info, name)
        if found is not None:
            result |= invoke(judge, found, given, bound=True)
            continue
        held = facts.attribute(info, name)
        if judge.owner is info:
            judge.attributes[name] = held
        if held:
            result |= called(judge, held & ~TENSOR, given)
        result |= _torch_member(judge, info, name, given)
    return result


def _torch_member(judge: Judge, info: ClassInfo, name: str, given: dict[str | int, int]) -> int:
    """A method that a base in torch, or one that is not read, has."""
    if judge.facts.world.unread_base(info):
        return ANY
    if not judge.facts.world.lineage(info)[1]:
        return _iterations(name) if name in ITERATIONS else 0
    if name in ITERATIONS or name == "state_dict":
        return _iterations(name)
    if name == "apply":  # of an autograd function
        forward = judge.facts.method(info, "forward")
        if forward is not None:
            invoke(judge, forward, given, bound=False)
        return ANY
    return torch_words().members.get(name, 0)


def _iterations(name: str) -> int:
    """``parameters()``, ``named_buffers()``, ``state_dict()``."""
    tensor = TENSOR | ROLE if "parameters" in name else TENSOR
    if name == "state_dict":
        return mapping(tensor)
    return holding(holding(tensor)) if name.startswith("named_") else holding(tensor)


def called(judge: Judge, grade: int, given: dict[str | int, int]) -> int:
    """Call an object or class of this grade."""
    result = ANY if grade & OBJECT else 0
    if grade & TORCH:
        result |= TENSOR | holding(TENSOR) | TORCH | HOST
    if grade & TYPED:
        facts = judge.facts
        for info in facts.world.classes(grade):
            result |= facts.world.facts(info.module).made(info, joined_of(given))
            for name in ("forward", "__call__"):
                found = facts.method(info, name)
                if found is not None:
                    result |= invoke(judge, found, given, bound=True)
    return result


def _name_call(judge: Judge, node: ast.Call, name: str) -> int:
    known = judge.env.get(name)
    facts = judge.facts
    if known is None:
        function = facts.module.functions.get(name)
        if function is not None and name not in judge.imports:
            return invoke(judge, function, evaluated(judge, node), bound=False)
        target = judge.import_of(name)
        if target is not None:
            return qualified_call(judge, node, target)
        if name == "super":
            return OBJECT
        target = facts.starred(name)
        if target is not None:
            return qualified_call(judge, node, target)
        if name == judge.self_name and judge.owner is not None:
            return called(judge, facts.world.typed(judge.owner), evaluated(judge, node))
        known = facts.global_name(name)
        if not known:
            return builtin_call(judge, node, name)
    given = evaluated(judge, node)
    if matters(joined_of(given)):
        judge.given_inside.add(name)
    return called(judge, known, given)


def builtin_call(judge: Judge, node: ast.Call, name: str) -> int:
    """One of Python's own functions, or a name that a star import may have brought."""
    if name == "isinstance" or name == "issubclass":
        if len(node.args) == 2:
            subject = node.args[0]
            narrowed = judge.facts.classes(node.args[1])
            # Of a tensor or something else, what is left on either side may be the tensor.
            weak = judge.grade(subject) & WEAK
            judge.widen(subject, narrowed | TENSOR if weak else narrowed)
        return 0
    if name == "getattr" or name == "setattr":
        return _attribute_builtin(judge, node, name)
    joined = _arguments(judge, node)
    if name in NUMBER_CALLS:
        if joined & TENSOR:
            judge.hit()
            return READ
        return joined & READ
    if name in REDUCTIONS:
        if joined & (TENSOR | ITEM):
            judge.hit()
        inner = iterated(joined) & KNOWN
        return joined & KNOWN | inner | (LIST if name == "sorted" else 0)
    if name in TEXT_CALLS:
        if joined & TENSORS:
            judge.hit()
        return 0
    if name == "range":
        if joined & TENSOR:
            judge.hit()
        return 0
    if name in ITERATING:
        if joined & TENSOR:
            judge.hit()
        return _iterated(judge, name, joined, node)
    if name in ("next", "abs", "pow", "divmod", "vars", "locals"):
        return joined & KNOWN | element(joined & KNOWN)
    if name in ("len", "hasattr", "callable", "id", "hash", "type", "ord", "chr", "open"):
        return 0
    return 0


def _iterated(judge: Judge, name: str, joined: int, node: ast.Call) -> int:
    if name == "enumerate":
        return holding(holding(iterated(joined)))
    if name == "zip":
        return holding(holding(iterated(joined)))
    if name == "sum":
        return element(joined) & KNOWN
    if name == "dict":
        inner = joined & KNOWN
        return mapping(inner | element(inner)) if matters(inner) else 0
    if name == "map":
        _passed(judge, node)
        first = node.args[0] if node.args else None
        if isinstance(first, (ast.Name, ast.Attribute)) and iterated(joined) & TENSORS:
            judge.hit()  # `map(float, tensors)`
        return holding(ANY)
    if name == "filter":
        _passed(judge, node)
        anything = bool(node.args) and isinstance(node.args[0], ast.Lambda)
        return holding(ANY if anything else iterated(joined))
    kept = parameters_in(joined) if name in ("list", "tuple", "reversed", "iter") else 0
    return holding(iterated(joined)) | kept | (LIST if name == "list" else 0)


def _passed(judge: Judge, node: ast.Call) -> None:
    """Functions given to ``map``, ``filter`` or ``partial`` are called with anything."""
    for argument in node.args:
        if isinstance(argument, ast.Name):
            judge.given_inside.add(argument.id)
            function = judge.facts.module.functions.get(argument.id)
            if function is not None:
                judge.facts.world.give(
                    function, dict.fromkeys(judge.facts.parameters(function), ANY)
                )
                judge.gives.add(id(function))


def _attribute_builtin(judge: Judge, node: ast.Call, name: str) -> int:
    arguments = node.args
    if len(arguments) < 2:
        return 0
    attribute = arguments[1]
    text = attribute.value if isinstance(attribute, ast.Constant) else None
    subject = arguments[0]
    given = judge.grade(arguments[2]) if len(arguments) > 2 else 0
    mine = isinstance(subject, ast.Name) and subject.id == judge.self_name
    if name == "setattr":
        judge.grade(subject)
        if mine and judge.self_name:
            if isinstance(text, str):
                judge.write(text, given)
            else:
                judge.grade(attribute)
        elif given & KNOWN and isinstance(text, str):
            judge.widen(subject, 0)
        return 0
    if isinstance(text, str):
        made = ast.copy_location(ast.Attribute(subject, text, ast.Load()), node)
        return given & KNOWN | judge.grade(made)
    judge.grade(attribute)
    return given & KNOWN | (ANY if judge.grade(subject) & (OBJECT | TYPED) else 0)


def _attribute_call(judge: Judge, node: ast.Call, func: ast.Attribute) -> int:
    name, owner = func.attr, func.value
    if name in SYNCHRONISING:
        judge.hit()
    if name in LOG_CALLS and _arguments(judge, node) & TENSORS:
        judge.hit()
    kind = owner.__class__
    if kind is ast.Name:
        head: str = owner.id  # type: ignore[attr-defined]
        if head not in judge.env:
            target = judge.import_of(head)
            if target is not None:
                return qualified_call(judge, node, f"{target}.{name}")
            if head == judge.self_name and judge.owner is not None:
                return _own_method(judge, node, name)
    elif kind is ast.Attribute:
        qualified = _qualified(judge, owner)  # type: ignore[arg-type]
        if qualified:
            return qualified_call(judge, node, f"{qualified}.{name}")
    elif _is_super(owner) and judge.owner is not None:
        return _inherited(judge, node, judge.owner, name)
    return method(judge, node, owner, judge.grade(owner), name)


def _is_super(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="super")):
            return True
    return False


def _qualified(judge: Judge, node: ast.Attribute) -> str:
    """``a.b.c`` with its import resolved; "" where its head is no import."""
    parts = [node.attr]
    value = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id in judge.env:
        return ""
    target = judge.import_of(value.id)
    return "" if target is None else ".".join([target, *reversed(parts)])


def _own_method(judge: Judge, node: ast.Call, name: str) -> int:
    """``self.name(...)``."""
    owner = judge.owner
    assert owner is not None
    given = evaluated(judge, node)
    if (judge.facts.method(owner, name) is None and (node.args or node.keywords)) or (
        node.args and isinstance(node.args[0], ast.Constant)
    ):
        _registered(judge, node, name, joined_of(given))
    bound = judge.env.get(f"{judge.self_name}.{name}")
    if bound is not None:
        return called(judge, bound, given)
    return typed_method(judge, judge.facts.world.typed(owner), name, given)


def _inherited(judge: Judge, node: ast.Call, owner: ClassInfo, name: str) -> int:
    """``super().name(...)``."""
    given = evaluated(judge, node)
    for base in judge.facts.world.lineage(owner)[0][1:]:
        if name in base.methods:
            return invoke(judge, base.methods[name], given, bound=True)
    return 0 if name == "__init__" else _torch_member(judge, owner, name, given)


def _registered(judge: Judge, node: ast.Call, name: str, joined: int) -> None:
    """``self.register_buffer("x", t)``, ``self.add_state("x", default=t)``."""
    first = node.args[0] if node.args else None
    for keyword in node.keywords:
        if keyword.arg == "name":
            first = keyword.value
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return
    if name in ("register_buffer", "register_parameter"):
        rest = [*node.args[1:2], *(k.value for k in node.keywords if k.arg in ("tensor", "param"))]
        none = rest and all(isinstance(r, ast.Constant) and r.value is None for r in rest)
        judge.write(first.value, joined if none else joined | TENSOR)
    elif name in ("register_module", "add_module"):
        judge.write(first.value, OBJECT | TORCH)
    elif name not in torch_words().members:
        judge.write(first.value, ANY)


def method(judge: Judge, node: ast.Call, owner: ast.expr, grade: int, name: str) -> int:
    """``owner.name(...)`` for an owner of this grade."""
    if name in CASTS or (name in TELLING and (node.args or name not in ("size", "stride"))):
        judge.evident |= parameters_in(grade)
    given = evaluated(judge, node)
    joined = joined_of(given)
    if name in FILLING and matters(joined):
        filled = holding(joined & KNOWN)
        if name in ("extend", "update", "extendleft"):
            filled |= holding(element(joined) & KNOWN)
        if name in ("update", "setdefault"):
            filled |= mapping(joined & KNOWN)
        judge.widen(owner, filled)
    if name == "format" and joined & TENSORS:
        judge.hit()
    if not grade & KNOWN:
        if name in ITERATIONS:
            return _iterations(name)
        if name in TOLD_BY_CALL and not node.args:
            judge.widen(owner, TENSOR)
            return TENSOR
        return 0
    result = 0
    if grade & (TENSOR | WEAK):
        result |= tensor_method(judge, node, name, grade)
    if has_items(grade):
        result |= _container_method(judge, grade, name, joined)
    if grade & OBJECT:
        result |= ANY
    if grade & TORCH:
        if name in ITERATIONS or name == "state_dict":
            result |= _iterations(name)
        else:
            result |= torch_words().members.get(name, 0)
    if grade & TYPED:
        result |= typed_method(judge, grade, name, given)
    return result


def _container_method(judge: Judge, grade: int, name: str, joined: int) -> int:
    if name == "items":
        return holding(holding(element(grade) & KNOWN))
    if name == "keys":
        return holding(iterated(grade) & KNOWN)
    if name == "values":
        return holding(element(grade) & KNOWN)
    if name in ("copy", "union", "difference", "_asdict"):
        return grade & KNOWN & ~TENSOR
    if name in ("sort", "clear", "reverse", "count", "index", "remove"):
        return 0
    return element(grade) & KNOWN | joined & KNOWN | element(joined) & KNOWN


def tensor_method(judge: Judge, node: ast.Call, name: str, grade: int) -> int:
    """A method of a tensor."""
    if name in MOVES:
        if grade & HOST:
            judge.hit()
        return TENSOR
    if name in TENSOR_READS:
        judge.hit()
        return READ | LIST if name != "cpu" else TENSOR | HOST
    if name == "to":
        given = _arguments(judge, node)
        if (grade & HOST and not _to_dtype(node)) or given & CPU:
            judge.hit()
        return TENSOR | given & HOST | (HOST if given & CPU else 0) | grade & (HOST | ROLE)
    if name == "type":
        if (node.args or node.keywords) and not _to_dtype(node):
            judge.hit()
        return TENSOR if node.args or node.keywords else 0
    words = torch_words().methods
    joined = _operation(judge, node, name, words, first=TENSOR)
    if judge.loops and name in PER_PARAMETER and grade & ROLE:
        judge.hit()
    result = words.results.get(name, 0)
    if result & TENSOR:
        result |= (grade | joined) & HOST
        if name in KEEPING_ROLE or name.endswith("_"):
            result |= grade & ROLE
    return result


def _says_cpu(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).startswith("cpu")


def _to_dtype(node: ast.Call) -> bool:
    """``.to(torch.float32)``, ``.to(x.dtype)``: nothing moves."""
    given = [
        *node.args,
        *(k.value for k in node.keywords if k.arg not in ("copy", "memory_format")),
    ]
    for argument in given:
        match argument:
            case ast.Attribute(value=ast.Name(id="torch"), attr=attr) if attr in DTYPES:
                continue
            case ast.Attribute(attr=attr) if attr == "dtype" or attr.endswith("_dtype"):
                continue
            case ast.Name(id=name) if name == "dtype" or name.endswith("_dtype"):
                continue
        return False
    return bool(given)


def _operation(judge: Judge, node: ast.Call, name: str, words: Operations, first: int = 0) -> int:
    """Sites of an operation of torch: reads, dynamic shapes, tensors given for numbers."""
    joined = first
    mask = words.tensors_at.get(name)
    for position, argument in enumerate(node.args):
        grade = judge.grade(argument)
        joined |= grade
        if mask is not None and grade & (TENSOR | ITEM) and not mask >> min(position, 11) & 1:
            judge.hit()
    for keyword in node.keywords:
        grade = judge.grade(keyword.value)
        joined |= grade
        if grade & (TENSOR | ITEM) and keyword.arg in words.number_keywords:
            judge.hit()
    if name in words.costly and joined & TENSORS and _certainly(judge, node, name, first):
        judge.hit()
    return joined


def _certainly(judge: Judge, node: ast.Call, name: str, first: int) -> bool:
    """Operations that are costly only where they are given certain arguments."""
    if name == "where":
        return len(node.args) + len(node.keywords) == 1
    if name in ("narrow", "repeat_interleave"):
        rest = [*node.args[0 if first else 1 :], *(k.value for k in node.keywords)]
        return any(judge.grade(argument) & TENSOR for argument in rest)
    return True


def qualified_call(judge: Judge, node: ast.Call, name: str) -> int:
    """A call of something imported, by its dotted name."""
    top = name.partition(".")[0]
    if top == "torch":
        return _torch_call(judge, node, name)
    if judge.facts.ours(top) or "." not in name:
        return _project_call(judge, node, name)
    given = evaluated(judge, node)
    joined = joined_of(given)
    if top in ("math", "cmath", "numpy", "operator"):
        if joined & TENSORS:
            judge.hit()
        return READ if joined & TENSOR else 0
    if top in ("logging", "warnings"):
        if joined & TENSORS:
            judge.hit()
        return 0
    if top in PASSING:
        return _passing(judge, node, name, joined)
    return 0


def _passing(judge: Judge, node: ast.Call, name: str, joined: int) -> int:
    """Libraries whose functions hand on what they are given."""
    top, short = name.partition(".")[0], name.rpartition(".")[2]
    if top in ("itertools", "collections") and joined & TENSOR:
        judge.hit()
    if top == "functools":
        _passed(judge, node)
        return OBJECT if short in ("partial", "wraps") else ANY
    if short == "cast" and node.args:
        return judge.facts.stated(node.args[0]) or joined & KNOWN
    if short == "defaultdict":
        return 0
    if short == "OrderedDict":
        return mapping(joined & KNOWN | element(joined) & KNOWN) if matters(joined) else 0
    if not matters(joined):
        return 0
    inner = element(joined) & KNOWN
    return joined & KNOWN | inner | holding(inner) | holding(holding(inner))


def _project_call(judge: Judge, node: ast.Call, name: str) -> int:
    facts = judge.facts
    given = evaluated(judge, node)
    found = facts.world.resolve(name, facts.module)
    if found is None:
        return _member_call(judge, node, name, given)
    home, thing = found
    if isinstance(thing, ClassInfo):
        return home.made(thing, joined_of(given))
    if isinstance(thing, FunctionInfo):
        bound = thing.owner is not None and "classmethod" in thing.decorators
        return invoke(judge, thing, given, bound=bound)
    if isinstance(thing, Unread):
        return ANY
    return called(judge, home.global_name(name.rpartition(".")[2]), given)


def _member_call(judge: Judge, node: ast.Call, name: str, given: dict[str | int, int]) -> int:
    """``module.thing.method(...)``."""
    head, _, last = name.rpartition(".")
    world = judge.facts.world
    owner = world.resolve(head, judge.facts.module) if head else None
    if owner is None:
        return 0
    home, thing = owner
    if isinstance(thing, ClassInfo):
        return typed_method(judge, world.typed(thing), last, given)
    if isinstance(thing, Unread):
        return ANY
    if isinstance(thing, list):
        return method(judge, node, node.func, home.global_name(head.rpartition(".")[2]), last)
    return 0


def _torch_call(judge: Judge, node: ast.Call, name: str) -> int:
    short = name.rpartition(".")[2]
    words = torch_words()
    if short in SYNCHRONISING or short in ("equal", "allclose"):
        judge.hit()
    if short == "is_tensor" or short == "is_tensor_like" or short == "_is_tensor":
        if node.args:
            judge.widen(node.args[0], TENSOR)
        return 0
    functions = words.functions
    joined = _operation(judge, node, short, functions)
    if short in functions.tensors_at:
        judge.evident |= parameters_in(joined)
    if short in ("tensor", "as_tensor", "asarray") or short.endswith("Tensor"):
        device = next((k.value for k in node.keywords if k.arg == "device"), None)
        if joined & (TENSOR | ITEM) or ".cuda." in name:
            judge.hit()
        if device is not None and not _says_cpu(device):
            judge.hit()
            return TENSOR
        return TENSOR | HOST
    if short in ("compile", "script"):
        return joined & KNOWN
    if judge.loops and short in PER_PARAMETER and joined & ROLE:
        judge.hit()
    result = _torch_result(name, short, joined, words)
    if result & TENSOR and (joined & HOST or short in functions.factories):
        on = next((k.value for k in node.keywords if k.arg == "device"), None)
        if joined & HOST or on is None or judge.grade(on) & CPU:
            result |= HOST
    if short == "device":
        return joined & CPU
    known = short in functions.results or short in words.classes
    if judge.facts.ours("torch") and not (known and is_public(name)):
        result |= _project_call(judge, node, name)
    return result


def _torch_result(name: str, short: str, joined: int, words: TorchWords) -> int:
    if name == "torch.autograd.grad":
        return holding(TENSOR | ROLE)
    if short in ("Parameter", "Buffer", "Variable", "UninitializedParameter"):
        return TENSOR | ROLE if "Parameter" in short else TENSOR
    if short in HOST_CLASSES:
        return 0
    if short in ("ModuleList", "ModuleDict", "Sequential"):
        inner = element(joined) & KNOWN & ~TENSOR
        return TORCH | holding(inner | TORCH | joined & (OBJECT | TYPED))
    if short in ("ParameterList", "ParameterDict", "BufferDict"):
        return holding(TENSOR | ROLE) | TORCH
    made = of_torch(short) if short in words.classes else 0
    return made | words.functions.results.get(short, 0)
