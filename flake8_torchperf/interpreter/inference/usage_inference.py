"""The types of names by their use in the function's own body.

``tensor`` in ``for grad in grads: for tensor in grad: torch.isinf(tensor)`` is a tensor, so
``grad`` is one too if its ``.device`` is read, and ``grads`` holds tensors. Uses that depend on a
test of the type show nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.inference.tensor_api import (
    MODULE_METHODS,
    SHAPE_ATTRIBUTES,
    SLICED,
    asked_for_type,
    brought,
    foreign,
    loss_of,
    may_tell,
    of_a_size,
    of_no_tensor,
    scaled,
    settled,
    sliced,
    told_by_attribute,
    told_by_call,
    told_by_cast,
    told_by_index,
)
from flake8_torchperf.interpreter.inference.usage import Use, value_of
from flake8_torchperf.knowledge.returns import TensorReturn
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.syntax.traversal import DEFINITIONS, PLAIN, children, put_children
from flake8_torchperf.values.values import NONE, UNKNOWN, Value, union

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.knowledge.table import Op, TorchTable
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap

# Attributes that show a tensor if several are used, or if the elements are tensors.
HINTING = {"device", "dtype", "data", "shape", "ndim"}
SHARED_OWNERS = {"self", "cls"}
# Methods that dicts, lists and strings have as well.
OF_CONTAINERS = frozenset(name for kind in (dict, list, set, str) for name in dir(kind))
ERRORS_OF_TYPE = {"AttributeError", "TypeError", "Exception"}


# The values that a name may have at one point: one for each assignment that may have been last.
Uses: TypeAlias = "tuple[Use, ...]"
Aliases: TypeAlias = "dict[str, Uses]"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The facts by which uses are judged: the function, its module, torch's table."""

    module: ModuleMap
    table: TorchTable
    targets: dict[int, Use]
    flags: dict[str, set[str]]
    function: FunctionNode


@dataclass(frozen=True, slots=True)
class Evidence:
    """The uses of all parameters of one function, and of the names assigned in it."""

    uses: dict[str, Use]
    targets: dict[int, Use]

    def value_of(self, name: str, node: ast.AST | None, *, optional: bool = False) -> Value:
        """Return the value that the uses of a parameter imply."""
        use = self.uses.get(name)
        value = UNKNOWN if use is None else value_of(use, name, node)
        return union((value, NONE)) if optional and value is not UNKNOWN else value

    def value_at(self, target: ast.Name) -> Value:
        """Return the value that the uses of an assigned name imply."""
        use = self.targets.get(id(target))
        return UNKNOWN if use is None else value_of(use, target.id, target)

    def asked(self, name: str) -> str:
        """Return a method of tensors and others that is called on a parameter, or ""."""
        use = self.uses.get(name)
        return "" if use is None else use.method

    def answers(self, name: str) -> str:
        """Return the same method if every use fits a tensor, and the method is none of modules."""
        use = self.uses.get(name)
        own = use is not None and not use.foreign and use.method not in MODULE_METHODS
        return use.method if use is not None and own else ""


# The evidence in a function that shows no name's type.
NOTHING = Evidence({}, {})


def used_as(
    node: FunctionNode, module: ModuleMap, table: TorchTable, *, compiled: bool = False
) -> Evidence:
    """Collect the evidence in a function's body."""
    # In a `forward` and in compiled code, any tensor method called on a parameter counts.
    every = compiled or node.name == "forward"
    if not every and not may_tell(module.nodes(node), module):
        return NOTHING
    spec = node.args
    names = [a.arg for a in named_parameters(spec)]
    if spec.vararg is not None:
        names.append(spec.vararg.arg)
    uses = {name: Use() for name in names if name not in SHARED_OWNERS}
    if spec.vararg is not None:
        uses[spec.vararg.arg].mixed = True
    known = Knowledge(module, table, {}, {}, node)
    _walk(node.body, {name: (use,) for name, use in uses.items()}, known)
    return Evidence(uses, known.targets)


USES: Cache[int, Evidence] = Cache("uses of names")


def evidence_of(node: FunctionNode, module: ModuleMap, analysis: Analysis) -> Evidence:
    """Return the uses of a function's names. Cached."""
    known = USES.table(analysis)
    found = known.get(id(node))
    if found is None:
        code = analysis.compiled
        compiled = code is not None and id(node) in code.entries
        found = used_as(node, module, analysis.table, compiled=compiled)
        known[id(node)] = found
    return found


def _walk(body: list[ast.stmt], aliases: Aliases, known: Knowledge) -> None:
    for statement in body:
        if isinstance(statement, DEFINITIONS):
            continue
        nodes = _expressions(statement)
        asked = asked_for_type(nodes)
        if known.flags:
            asked |= _asked_before(statement, known)
        clauses = [node for node in nodes if isinstance(node, ast.comprehension)]
        seen = _without(aliases, asked) if asked or clauses else aliases
        for clause in clauses:
            _bind_loop(clause.target, clause.iter, seen, known)
        for name in asked:
            seen.pop(name, None)  # a comprehension's own variable too
        for node in nodes:
            if type(node) in LOOKED_AT:
                _look(node, seen, known)
        if asked and isinstance(statement, ast.Assign) and isinstance(statement.value, ANSWERS):
            known.flags.update(dict.fromkeys(_names(statement.targets), asked))
        _bind(statement, aliases, known)
        _blocks(statement, aliases, asked, known)
        for use in aliases.get(settled(statement), ()) if asked else ():
            use.foreign = True


def _blocks(statement: ast.stmt, aliases: Aliases, asked: set[str], known: Knowledge) -> None:
    """Walk the blocks inside a statement; after it, a name may have the value of any of them."""
    if isinstance(statement, PLAIN_STATEMENTS):
        return
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    handlers = getattr(statement, "handlers", [])
    if isinstance(statement, ast.Match):
        blocks += [case.body for case in statement.cases]
    if not any(blocks):
        return
    hidden = set(aliases) if any(map(_catches_types, handlers)) else asked
    ends = [aliases]
    for block in (*blocks, *(handler.body for handler in handlers)):
        if block:
            inner = _without(aliases, hidden)
            _walk(block, inner, known)
            ends.append(inner)
    for name in {n for end in ends[1:] for n, uses in end.items() if aliases.get(n) is not uses}:
        found = dict.fromkeys(use for end in ends for use in end.get(name, ()))
        aliases[name] = tuple(found)[:MAX_ALIASES]


# Statements without blocks; most statements are of these kinds.
PLAIN_STATEMENTS = (
    ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Assert,
)  # fmt: skip
# If more assignments of a name than this may have been the last, only the first ones count.
MAX_ALIASES = 8


def _without(aliases: Aliases, names: set[str]) -> Aliases:
    return {name: uses for name, uses in aliases.items() if name not in names}


def _catches_types(handler: ast.ExceptHandler) -> bool:
    """True for ``except AttributeError:`` and a bare ``except:``: the body only tries a use."""
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(k is None or (isinstance(k, ast.Name) and k.id in ERRORS_OF_TYPE) for k in kinds)


# Expressions that are type tests themselves or contain them.
ANSWERS = (ast.Call, ast.BoolOp, ast.UnaryOp)


def _names(targets: list[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _asked_before(statement: ast.stmt, known: Knowledge) -> set[str]:
    """Return the names whose type a flag in the statement's test shows: ``if is_tuple: ...``."""
    test = getattr(statement, "test", None)
    flags = ast.walk(test) if isinstance(test, ast.expr) else ()
    names = (flag.id for flag in flags if isinstance(flag, ast.Name))
    return {asked for name in names for asked in known.flags.get(name, ())}


def _expressions(statement: ast.stmt) -> list[ast.AST]:
    """Return the expressions of a statement that may show a type, except in nested blocks."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [
        one for one in children(statement) if isinstance(one, (ast.expr, ast.withitem))
    ]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind in EVIDENCE_NODES:
            found.append(node)
        if kind not in PLAIN and kind is not ast.Lambda:
            put_children(node, waiting)
    return found


# The kinds of expressions that may show a type.
EVIDENCE_NODES = frozenset((ast.Call, ast.Attribute, ast.Subscript, ast.Starred, ast.comprehension))


def _bind(statement: ast.stmt, aliases: Aliases, known: Knowledge) -> None:
    match statement:
        case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
            _bind_loop(target, iterated, aliases, known)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _assign(target, value, aliases, known)
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            if isinstance(statement, ast.AnnAssign):
                aliases.pop(name, None)
            else:
                _take_part(aliases.get(name, ()), "computed with in place")


def _assign(target: ast.expr, value: ast.expr | None, aliases: Aliases, known: Knowledge) -> None:
    match target, value:
        case ast.Name(id=name), _:
            found = () if value is None else _use_of(value, aliases)
            if scaled(name, value):
                for use in aliases.get(name, ())[:1]:
                    known.targets.setdefault(id(target), use)
                return
            if not found:
                found = (known.targets.setdefault(id(target), Use()),)
                moved = None if value is None else brought(value)
                if moved is not None:
                    found[0].moved = True
                    before = _use_of(moved, aliases)
                    found += before if len(before) == 1 else ()  # the move does not change the type
            aliases[name] = found
        case ((ast.Tuple(elts=parts) | ast.List(elts=parts)), (ast.Tuple(elts=values))):
            if len(parts) == len(values):
                for part, one in zip(parts, values, strict=True):
                    _assign(part, one, aliases, known)
                return
            _unpack(parts, aliases, known)
        case ((ast.Tuple(elts=parts) | ast.List(elts=parts)), _):
            if value is not None and any(isinstance(p, (ast.Tuple, ast.List)) for p in parts):
                # `logits, (h, c) = out`: a value with nested parts is no tensor.
                for use in _use_of(value, aliases):
                    use.foreign = True
            _unpack(parts, aliases, known)


def _unpack(parts: list[ast.expr], aliases: Aliases, known: Knowledge) -> None:
    """Give each target of an unpacking a use of its own, since the parts may differ in kind."""
    for part in parts:
        _assign(part.value if isinstance(part, ast.Starred) else part, None, aliases, known)


def _bind_loop(target: ast.expr, iterated: ast.expr, aliases: Aliases, known: Knowledge) -> None:
    sources = [iterated]
    targets = [target]
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
        if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple) and iterated.args:
            sources, targets = [iterated.args[0]], [target.elts[-1]]
        elif iterated.func.id == "zip" and isinstance(target, ast.Tuple):
            sources, targets = list(iterated.args), list(target.elts)
        elif iterated.func.id in ("list", "tuple", "reversed", "iter") and iterated.args:
            sources = [iterated.args[0]]
    match iterated, target:
        case (
            ast.Call(func=ast.Attribute(value=mapping, attr="values"), args=[]),
            ast.Name(id=name),
        ) | (
            ast.Call(func=ast.Attribute(value=mapping, attr="items"), args=[]),
            ast.Tuple(elts=[_, ast.Name(id=name)]),
        ):
            aliases[name] = tuple(use.under_keys() for use in _use_of(mapping, aliases))
            return
    for one, source in zip(targets, sources, strict=False):
        uses = _use_of(source, aliases)
        if isinstance(one, ast.Name) and uses:
            aliases[one.id] = tuple(use.inside() for use in uses)
        else:
            _assign(one, None, aliases, known)


def _use_of(node: ast.expr, aliases: Aliases) -> Uses:
    """Return the uses of an expression: a name, a part of it by slices, an element by integer."""
    match node:
        case ast.Name(id=name):
            return aliases.get(name, ())
        case ast.Subscript(value=base, slice=ast.Constant(value=int())):
            return tuple(use.inside() for use in _use_of(base, aliases) if not use.mixed)
        case ast.Subscript(value=base, slice=ast.Slice()):
            return _use_of(base, aliases)
    return ()


LOOKED_AT = frozenset((ast.Call, ast.Attribute, ast.Starred, ast.Subscript))


def _look(node: ast.AST, aliases: Aliases, known: Knowledge) -> None:
    match node:
        case ast.Call(func=func):
            if isinstance(func, ast.Attribute):
                uses = _use_of(func.value, aliases)
                if uses and of_no_tensor(node, known.table):
                    for use in uses:
                        use.foreign = True
                told = _told_by(node, known) if uses else ""
                if told:
                    _tell(uses, told, mask=func.attr in ("any", "all"))
                if uses and brought(node) is not None:
                    for use in uses:
                        use.moved = True
                loss = loss_of(node, known.table, known.function)
                for use in () if loss is None else _use_of(loss, aliases):
                    use.single, use.told = True, use.told or "`.backward()` goes through it"
            _passed(func, node, aliases, known)
        case ast.Attribute(value=ast.Attribute()):
            pass
        case ast.Attribute(value=ast.Name(id=name)) if name not in aliases:
            pass
        case ast.Attribute(ctx=ast.Load()):
            _look_at_attribute(node, aliases, known)
        case ast.Starred(value=value):
            for use in _use_of(value, aliases):
                use.starred = True
        case ast.Subscript(slice=ast.UnaryOp(op=ast.Invert(), operand=mask)):
            _tell(_use_of(mask, aliases), "its inverse is used as an index", mask=True)
        case ast.Subscript(value=base, slice=ast.Constant(value=str())):
            for use in _use_of(base, aliases):
                use.foreign = True
        case ast.Subscript(value=base):
            uses = _use_of(base, aliases)
            told = told_by_index(node, known.module) if uses else ""
            if told:
                _tell(uses, told)
            elif uses and sliced(node.slice):
                _take_part(uses, SLICED)


def _take_part(uses: Uses, how: str) -> None:
    for use in uses:
        use.part = use.part or how


def _told_by(node: ast.Call, known: Knowledge) -> str:
    return told_by_call(node, known.table, known.module, known.function)


def _look_at_attribute(node: ast.Attribute, aliases: Aliases, known: Knowledge) -> None:
    base, attr = node.value, node.attr
    if foreign(attr, known.table):
        for use in (*_use_of(base, aliases), *_made_of(base, aliases, known)):
            use.foreign = True
        return
    cast = told_by_cast(node, known.table)
    if cast is not None:
        _tell(_use_of(cast[0], aliases), cast[1])
    for use in _use_of(base, aliases):
        if told_by_attribute(attr, known.module) and not of_a_size(node):
            _tell((use,), f"`.{attr}` is asked for")
        elif attr in HINTING:
            use.hints.add(attr)
            if attr in SHAPE_ATTRIBUTES:
                _take_part((use,), f"`.{attr}` is asked for")
        elif not use.method and attr not in OF_CONTAINERS and known.table.method(attr) is not None:
            use.method = attr


def _made_of(node: ast.expr, aliases: Aliases, known: Knowledge) -> Uses:
    """Return the uses of ``x`` in ``x.cholesky()``, whose result is a tensor if ``x`` is one."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=attr)):
            op = known.table.method(attr)
            if op is not None and isinstance(op.resolve(()), TensorReturn):
                return _use_of(base, aliases)
    return ()


def _tell(uses: Uses, told: str, *, mask: bool = False) -> None:
    for use in uses:
        use.told = use.told or told
        use.mask = use.mask or mask


def _passed(func: ast.expr, call: ast.Call, aliases: Aliases, known: Knowledge) -> None:
    """Note that ``x`` of ``torch.isinf(x)`` is a tensor if every overload takes a tensor there."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not any(isinstance(one, (ast.Name, ast.Subscript)) for one in given):
        return  # no use is recorded for these arguments
    name = known.module.qualify(func)
    if not name.startswith("torch."):
        if isinstance(func, ast.Name) or _is_own(func):
            _handed_on(func, call, aliases)
        return
    op = known.table.function(name)
    if op is None or name.endswith("set_rng_state"):
        return  # a generator's state lies on the host
    for position, argument in enumerate(call.args):
        uses = _use_of(argument, aliases)
        part = _use_of(argument.value, aliases) if _takes_a_part(argument) else ()
        if not uses and not part:
            continue
        types = _types(op, position)
        _given(uses, types, name)
        if "T" in types <= NUMBER_LETTERS:
            _tell(part, f"a part of it is passed to `{name}`")
    for keyword in call.keywords:
        uses = _use_of(keyword.value, aliases) if keyword.arg in REQUIRED else ()
        if uses:
            types = {p.type for o in op.overloads for p in o.params if p.name == keyword.arg}
            _given(uses, types, name)


# Kinds of parameters that take a tensor or a number; a part as ``x[:, None]`` is never a number.
NUMBER_LETTERS = {"T", "n", "i", "f", "b"}


def _takes_a_part(node: ast.expr) -> TypeGuard[ast.Subscript]:
    """True for ``x[:, None]``: no container takes a slice among several indices."""
    return isinstance(node, ast.Subscript) and sliced(node.slice)


def _is_own(func: ast.expr) -> bool:
    """True if this is a method of the same object."""
    match func:
        case ast.Attribute(value=ast.Name(id=owner)):
            return owner in SHARED_OWNERS
    return False


def _handed_on(func: ast.expr, call: ast.Call, aliases: Aliases) -> None:
    """Note the functions that names are passed to: their parameters show the names' types."""
    places: list[tuple[int | str, ast.expr]] = []
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            break
        places.append((position, argument))
    places += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    for place, argument in places:
        if isinstance(argument, ast.Name):
            for use in aliases.get(argument.id, ()):
                use.given.append((func, place))


# Parameters of torch's functions that may not be None.
REQUIRED = {"input", "other", "target", "tensor", "tensors", "mat2", "condition", "src", "index"}


def _given(uses: Uses, types: set[str], name: str) -> None:
    if types == {"T"}:
        _tell(uses, f"passed to `{name}`")
    elif types == {"Tl"}:
        _tell(tuple(use.inside() for use in uses), f"passed to `{name}`")


def _types(op: Op, position: int) -> set[str]:
    return {
        slots[position].type
        for overload in op.overloads
        if position < len(slots := [p for p in overload.params if p.form == "positional"])
    }
