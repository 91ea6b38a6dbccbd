"""The types of names by their use in the function's own body.

``tensor`` in ``for grad in grads: for tensor in grad: torch.isinf(tensor)`` is a tensor, so
``grad`` is one too if its ``.device`` is read, and ``grads`` holds tensors. Uses that depend on a
test of the type show nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.inference.aliases import Aliases, Uses, place_of
from flake8_torchperf.interpreter.inference.tensor_api import (
    MODULE_METHODS,
    SHAPE_ATTRIBUTES,
    SLICED,
    asked_for_type,
    brought,
    foreign,
    hands_on,
    imports_arrays_alone,
    loss_of,
    may_tell,
    of_a_size,
    of_no_tensor,
    settled,
    sliced,
    told_by_attribute,
    told_by_call,
    told_by_cast,
    told_by_index,
)
from flake8_torchperf.interpreter.inference.usage import Use, value_of
from flake8_torchperf.knowledge.returns import TensorReturn
from flake8_torchperf.syntax.names import given_to, named_parameters
from flake8_torchperf.syntax.traversal import DEFINITIONS, PLAIN, children
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


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The facts by which uses are judged: the function, its module, torch's table."""

    module: ModuleMap
    table: TorchTable
    targets: dict[int, Use]
    flags: dict[str, set[str]]
    function: FunctionNode

    @property
    def indexes_arrays(self) -> bool:
        """True if an index shows no tensor, because the module imports arrays alone."""
        return imports_arrays_alone(self.module)


@dataclass(frozen=True, slots=True)
class UsesOfNames:
    """The uses of all parameters of one function, and of the names assigned in it."""

    uses: dict[str, Use]
    targets: dict[int, Use]

    def value_of(self, name: str, node: ast.AST | None, *, optional: bool = False) -> Value:
        """Return the value that the uses of a parameter imply."""
        use = self.uses.get(name)
        value = UNKNOWN if use is None else value_of(use, name, node)
        return union((value, NONE)) if optional and value is not UNKNOWN else value

    def value_at(self, target: ast.expr) -> Value:
        """Return the value that the uses of an assigned name, attribute or entry imply."""
        use = self.targets.get(id(target))
        return UNKNOWN if use is None else value_of(use, place_of(target) or "", target)

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
NOTHING = UsesOfNames({}, {})


def used_as(
    node: FunctionNode, module: ModuleMap, table: TorchTable, *, compiled: bool = False
) -> UsesOfNames:
    """Collect the evidence in a function's body."""
    # In a `forward` and in compiled code, any tensor method called on a parameter counts.
    every = compiled or node.name == "forward"
    nodes = module.nodes(node)
    if not every and not may_tell(nodes, module) and not hands_on(nodes):
        return NOTHING
    spec = node.args
    names = [a.arg for a in named_parameters(spec)]
    if spec.vararg is not None:
        names.append(spec.vararg.arg)
    uses = {name: Use() for name in names if name not in SHARED_OWNERS}
    if spec.vararg is not None:
        uses[spec.vararg.arg].mixed = True
    known = Knowledge(module, table, {}, {}, node)
    aliases = Aliases({name: (use,) for name, use in uses.items()}, known.targets, table)
    _walk(node.body, aliases, known)
    return UsesOfNames(uses, known.targets)


USES: Cache[int, UsesOfNames] = Cache("uses of names")


def evidence_of(node: FunctionNode, module: ModuleMap, analysis: Analysis) -> UsesOfNames:
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
        seen = aliases.without(asked) if asked or clauses else aliases
        for clause in clauses:
            seen.bind_loop(clause.target, clause.iter)
        for name in asked:
            for use in aliases.named(name):
                use.asked = True
            seen.hide(name)  # a comprehension's own variable too
        for node in nodes:
            if type(node) in LOOKED_AT:
                _look(node, seen, known)
        if asked and isinstance(statement, ast.Assign) and isinstance(statement.value, ANSWERS):
            known.flags.update(dict.fromkeys(_names(statement.targets), asked))
        aliases.bind(statement)
        _blocks(statement, aliases, asked, known)
        for use in aliases.named(settled(statement)) if asked else ():
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
    hides_all = any(map(_catches_types, handlers))
    ends: list[Aliases] = []
    for block in (*blocks, *(handler.body for handler in handlers)):
        if block:
            inner = aliases.without_all() if hides_all else aliases.without(asked)
            _walk(block, inner, known)
            ends.append(inner)
    aliases.meet(ends)


# Statements without blocks; most statements are of these kinds.
PLAIN_STATEMENTS = (
    ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Assert,
)  # fmt: skip


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
            waiting += children(node)
    return found


# The kinds of expressions that may show a type.
EVIDENCE_NODES = frozenset((ast.Call, ast.Attribute, ast.Subscript, ast.Starred, ast.comprehension))


# Expressions whose uses are known.
PLACES = (ast.Name, ast.Attribute, ast.Subscript)
LOOKED_AT = frozenset((ast.Call, ast.Attribute, ast.Starred, ast.Subscript))


def _look(node: ast.AST, aliases: Aliases, known: Knowledge) -> None:
    match node:
        case ast.Call(func=func):
            if isinstance(func, ast.Attribute):
                uses = aliases.of(func.value)
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
                for use in () if loss is None else aliases.of(loss):
                    use.single, use.told = True, use.told or "`.backward()` goes through it"
            _passed(func, node, aliases, known)
        case ast.Attribute(value=ast.Name(id=name)) if name not in aliases:
            pass
        case ast.Attribute(ctx=ast.Load()):
            _look_at_attribute(node, aliases, known)
        case ast.Starred(value=value):
            for use in aliases.of(value):
                use.starred = True
        case ast.Subscript(slice=ast.UnaryOp(op=ast.Invert(), operand=mask)):
            uses = aliases.of(mask)
            if uses and not known.indexes_arrays:
                _tell(uses, "its inverse is used as an index", mask=True)
        case ast.Subscript(value=base, slice=ast.Constant(value=str())):
            for use in aliases.of(base):
                use.foreign = True
        case ast.Subscript(value=base):
            uses = aliases.of(base)
            told = told_by_index(node, known.module) if uses else ""
            if told and not known.indexes_arrays:
                _tell(uses, told)
            elif uses and sliced(node.slice):
                for use in uses:
                    use.note_part(SLICED)


def _told_by(node: ast.Call, known: Knowledge) -> str:
    return told_by_call(node, known.table, known.module, known.function)


def _look_at_attribute(node: ast.Attribute, aliases: Aliases, known: Knowledge) -> None:
    base, attr = node.value, node.attr
    if foreign(attr, known.table):
        for use in (*aliases.of(base), *_made_of(base, aliases, known)):
            use.foreign = True
        return
    cast = told_by_cast(node, known.table)
    if cast is not None:
        _tell(aliases.of(cast[0]), cast[1])
    for use in aliases.of(base):
        if told_by_attribute(attr, known.module) and not of_a_size(node):
            _tell((use,), f"`.{attr}` is asked for")
        elif attr in HINTING:
            use.hints.add(attr)
            if attr in SHAPE_ATTRIBUTES:
                use.note_part(f"`.{attr}` is asked for")
        elif not use.method and attr not in OF_CONTAINERS and known.table.method(attr) is not None:
            use.method = attr


def _made_of(node: ast.expr, aliases: Aliases, known: Knowledge) -> Uses:
    """Return the uses of ``x`` in ``x.cholesky()``, whose result is a tensor if ``x`` is one."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=attr)):
            op = known.table.method(attr)
            if op is not None and isinstance(op.resolve(()), TensorReturn):
                return aliases.of(base)
    return ()


def _tell(uses: Uses, told: str, *, mask: bool = False) -> None:
    for use in uses:
        use.told = use.told or told
        use.mask = use.mask or mask


def _passed(func: ast.expr, call: ast.Call, aliases: Aliases, known: Knowledge) -> None:
    """Note that ``x`` of ``torch.isinf(x)`` is a tensor if every overload takes a tensor there."""
    given = given_to(call)
    if not [one for one in given if isinstance(one, PLACES)]:
        return  # no use is recorded for these arguments
    name = known.module.qualify(func)
    if not name.startswith("torch."):
        if isinstance(func, (ast.Name, ast.Attribute)):
            _handed_on(func, call, aliases)
        return
    op = known.table.function(name)
    if op is None or name.endswith("set_rng_state"):
        return  # a generator's state lies on the host
    for position, argument in enumerate(call.args):
        uses = aliases.of(argument)
        part = aliases.of(argument.value) if _takes_a_part(argument) else ()
        if not uses and not part:
            continue
        types = _types(op, position)
        _given(uses, types, name)
        if "T" in types <= NUMBER_LETTERS:
            _tell(part, f"a part of it is passed to `{name}`")
    for keyword in call.keywords:
        uses = aliases.of(keyword.value) if keyword.arg in REQUIRED else ()
        if uses:
            types = {p.type for o in op.overloads for p in o.params if p.name == keyword.arg}
            _given(uses, types, name)


# Kinds of parameters that take a tensor or a number; a part as ``x[:, None]`` is never a number.
NUMBER_LETTERS = {"T", "n", "i", "f", "b"}


def _takes_a_part(node: ast.expr) -> TypeGuard[ast.Subscript]:
    """True for ``x[:, None]``: no container takes a slice among several indices."""
    return isinstance(node, ast.Subscript) and sliced(node.slice)


def _handed_on(func: ast.expr, call: ast.Call, aliases: Aliases) -> None:
    """Note the functions that names are passed to: their parameters show the names' types."""
    places: list[tuple[int | str, ast.expr]] = []
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            break
        places.append((position, argument))
    places += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    for place, argument in places:
        for use in aliases.of(argument) if isinstance(argument, PLACES) else ():
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
