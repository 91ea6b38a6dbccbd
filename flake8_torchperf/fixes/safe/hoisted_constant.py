"""``for ...: std = torch.tensor([0.2], device=x.device)`` -> made once, before the loop.

Here, where nothing can fail if the loop runs no round: the numbers are written there, and the
device is that of a tensor.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import names_bound
from flake8_torchperf.fixes.safe.fill_on_device import plan as filled
from flake8_torchperf.fixes.shared.code import fresh_name, names_in
from flake8_torchperf.fixes.shared.evaluation import is_lazy
from flake8_torchperf.fixes.shared.host_data import (
    HostData,
    cannot_fail,
    host_data,
    keeps_default_dtype,
)
from flake8_torchperf.fixes.shared.siblings import block_of, statements_before
from flake8_torchperf.fixes.shared.tensors import (
    has_one_value,
    is_tensor,
    is_tensor_for_all,
    only_value,
)
from flake8_torchperf.fixes.shared.uses import Uses
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.syntax.traversal import FUNCTIONS, below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_NAMES: dict[type[ast.AST], str] = {ast.Mult: "factor", ast.Div: "divisor", ast.Add: "offset",
                                    ast.Sub: "offset", ast.Compare: "bound"}  # fmt: skip
# Contexts that change neither the tensors made in them nor their device.
_CONTEXTS = frozenset(("torch.no_grad", "torch.enable_grad", "torch.autocast",
                       "torch.amp.autocast", "torch.cuda.amp.autocast"))  # fmt: skip
_LAZY = (*FUNCTIONS, ast.Lambda, ast.GeneratorExp)
_LOOPS = (ast.For, ast.While)


@dataclass(frozen=True, slots=True)
class _Hoist:
    """The node to move from a loop to before it, and the name that its value gets."""

    node: ast.AST
    name: str


def plan(place: Place) -> Edit | None:
    """Apply where every caller gets the same tensor and the same errors."""
    return hoisted(place, for_all=True)


def hoisted(place: Place, *, for_all: bool) -> Edit | None:
    """The edit that makes data before the outermost loop that doesn't change it.

    ``for_all`` requires proofs that hold for all arguments of callers, and that nothing can fail.
    """
    around = place.around
    made = host_data(place.site.node, around, "as-another" in place.site.traits)
    if made is None or filled(place) is not None:
        return None  # a fill does not wait
    statement = around.statement(made.call)
    if statement is None or around.function(made.call) is None:
        return None
    if _is_put_off(place, made.call) or (for_all and not cannot_fail(made, around)):
        return None
    if not for_all and is_lazy(place, made.call, statement):
        return None  # the code before it may test whether there is a device
    chosen: ast.stmt | None = None
    for loop in _loops(place, statement, for_all):
        if not _Loop(place, loop, for_all).lets_out(made):
            break
        chosen = loop
    hoist = _what(place, made, statement, for_all)
    if chosen is None or hoist is None:
        return None
    return Edit((chosen, hoist.node), {"name": hoist.name})


def _is_put_off(place: Place, node: ast.expr) -> bool:
    """True if an expression runs only when a lambda, function or generator around it runs."""
    here: ast.AST | None = node
    while isinstance(here, (ast.expr, ast.comprehension, ast.keyword)):
        if isinstance(here, _LAZY):
            return True
        here = place.around.parent(here)
    return isinstance(here, FUNCTIONS)


def _loops(place: Place, statement: ast.stmt, for_all: bool) -> Iterator[ast.stmt]:
    """Yield the loops around a statement, innermost first, up to code that may catch its errors.

    Data that is not proved for all callers is not moved out of the ``if`` around it.
    """
    inner: ast.stmt = statement
    while True:
        here = place.around.parent(inner)
        if isinstance(here, _LOOPS):
            if any(one is inner for one in here.body):
                yield here
        elif not (for_all and isinstance(here, ast.If)) and not _is_plain_with(place, here):
            return
        assert isinstance(here, ast.stmt)
        inner = here


def _is_plain_with(place: Place, node: ast.AST | None) -> bool:
    return isinstance(node, ast.With) and all(
        isinstance(one.context_expr, ast.Call)
        and place.around.qualified(one.context_expr.func) in _CONTEXTS
        for one in node.items
    )


class _Loop:
    """Tells whether a tensor is the same if it is made before a loop."""

    def __init__(self, place: Place, loop: ast.stmt, for_all: bool) -> None:
        self._place = place
        self._loop = loop
        self._for_all = for_all
        self._bound = names_bound(loop)

    def lets_out(self, made: HostData) -> bool:
        """True if nothing in the loop changes the data, dtype or device of the tensor."""
        if any(name in self._bound for name in names_in(made.parts())):
            return False
        if not self._is_known_before(names_in(made.parts())):
            return False
        if not all(self._is_plain(one) for one in (*made.dtypes, made.device) if one is not None):
            return False
        if not self._for_all:
            return all(self._stays(one) for one in made.elements())
        return self._is_of_tensor(made) and (keeps_default_dtype(made) or self._calls_torch())

    def _is_known_before(self, names: frozenset[str]) -> bool:
        """True if each name that the function binds is bound when the loop begins."""
        function = self._place.around.function(self._loop)
        assert isinstance(function, FUNCTIONS)
        given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
        local = frozenset(names_bound(function)) - given
        before = set(given)
        here: ast.AST | None = self._loop
        while isinstance(here, ast.stmt) and here is not function:
            for one in statements_before(here, self._place.around):
                before |= _bound_for_sure(one)
            inner, here = here, self._place.around.parent(here)
            if isinstance(here, ast.For) and any(one is inner for one in here.body):
                before |= names_in([here.target])
        return all(name in before for name in names & local)

    def _is_plain(self, node: ast.expr) -> bool:
        """True for names and attributes that no statement of the loop sets, and for constants."""
        match node:
            case ast.Constant() | ast.Name():
                return True
            case ast.Attribute(value=inner, attr=name):
                set_here = any(
                    isinstance(one, ast.Attribute)
                    and one.attr in (name, "data")
                    and not isinstance(one.ctx, ast.Load)
                    for one in below(self._loop)
                )
                return not set_here and self._is_plain(inner)
        return False

    def _is_of_tensor(self, made: HostData) -> bool:
        """True if the device is that of an expression that is a tensor for every caller."""
        device, around = made.device, self._place.around
        if isinstance(device, ast.Name) and not made.as_another:
            device = only_value(device, around)
        match device:
            case ast.Name() if made.as_another:
                return is_tensor_for_all(device, around)
            case ast.Attribute(value=ast.Name() as owner, attr="device"):
                return is_tensor_for_all(owner, around)
        return False

    def _calls_torch(self) -> bool:
        """True if nothing that is called in the loop can set the default dtype."""
        for one in below(self._loop):
            if isinstance(one, (ast.Yield, ast.YieldFrom)):
                return False
            if not isinstance(one, ast.Call):
                continue
            name = self._place.around.qualified(one.func)
            if name.startswith(("torch.", "builtins.")):
                if name.startswith("torch.set_"):
                    return False
            elif name or not _is_method(one.func):
                return False
        return True

    def _stays(self, element: ast.expr) -> bool:
        """True for numbers, and for names that the loop does nothing with but read."""
        if isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.USub):
            element = element.operand
        match element:
            case ast.Constant(value=value):
                return isinstance(value, (bool, int, float))
            case ast.Name(id=name):
                uses = Uses(self._place.around, lambda one: is_tensor(one, self._place.around))
                return all(
                    uses.only_read(one) or self._is_data(one)
                    for one in below(self._loop)
                    if isinstance(one, ast.Name) and one.id == name
                )
        return False

    def _is_data(self, name: ast.Name) -> bool:
        """True if a name is given to `torch.tensor`, in lists or by itself."""
        here = self._place.around.parent(name)
        while isinstance(here, (ast.List, ast.Tuple, ast.UnaryOp)):
            here = self._place.around.parent(here)
        known = isinstance(here, ast.Call)
        return known and self._place.around.qualified(here.func) == "torch.tensor"  # type: ignore[union-attr]


def _is_method(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and load().method(func.attr) is not None


def _bound_for_sure(statement: ast.stmt) -> frozenset[str]:
    """The names that a simple statement binds."""
    match statement:
        case ast.Assign(targets=targets):
            names = [one for target in targets for one in ast.walk(target)]
        case ast.AnnAssign(target=target, value=ast.expr()):
            names = [target]
        case ast.Import() | ast.ImportFrom():
            return frozenset(names_bound(statement))
        case _:
            return frozenset()
    return frozenset(
        one.id for one in names if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    )


def _what(place: Place, made: HostData, statement: ast.stmt, for_all: bool) -> _Hoist | None:
    """The statement that binds the tensor to a name, or the call in an expression; if only read."""
    around = place.around

    def is_known(node: ast.expr) -> bool:
        return is_tensor_for_all(node, around) if for_all else is_tensor(node, around)

    uses = Uses(around, is_known)
    match statement:
        case ast.Assign(targets=[ast.Name() as target], value=value) if _shows(value, made.call):
            names = _read_behind(place, target, statement)
            if statement.type_comment or not names or not all(map(uses.only_read, names)):
                return None
            return _Hoist(statement, "")
    if not uses.only_read(made.call):
        return None
    name = fresh_name(place, statement, (*_wanted(place, made.call), "constant", "constants"))
    return _Hoist(made.call, name) if name else None


def _shows(value: ast.expr, call: ast.Call) -> bool:
    """True for a call, and for views of its result: ``call.view(1, 3)``, ``call[:, None]``."""
    while value is not call:
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args, keywords=[]):
                op = load().method(name)
                if op is None or not op.view or op.in_place or not all(map(_is_constant, args)):
                    return False
            case ast.Subscript(value=inner, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if not all(_is_constant(one) or _is_full(one) for one in parts):
                    return False
            case _:
                return False
        value = inner
    return True


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant)


def _is_full(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)


def _read_behind(place: Place, target: ast.Name, statement: ast.stmt) -> list[ast.Name]:
    """The uses of a name; none where one may see another value, or may come after the loop."""
    function = place.around.function(target)
    if function is None or not has_one_value(target, place.around):
        return []
    names = [one for one in below(function) if isinstance(one, ast.Name)]
    if any(one.id == "locals" for one in names):
        return []
    block = block_of(place, statement)
    at = next((i for i, one in enumerate(block) if one is statement), len(block))
    behind = [one for line in block[at + 1 :] for one in ast.walk(line)]
    later = {id(one) for one in behind if isinstance(one, ast.Name)}
    inner = [one for one in behind if isinstance(one, _LAZY)]
    kept = {id(one) for lazy in inner for one in ast.walk(lazy)}
    uses = [one for one in names if one.id == target.id and one is not target]
    fits = all(id(one) in later and id(one) not in kept for one in uses)
    return uses if fits else []


def _wanted(place: Place, call: ast.Call) -> Iterator[str]:
    """Names that say what the tensor is for."""
    parent = place.around.parent(call)
    match parent:
        case ast.keyword(arg=str(name)) if not hasattr(builtins, name):
            yield name
        case ast.BinOp(op=op) if type(op) in _NAMES:
            yield _NAMES[type(op)]
        case ast.Compare():
            yield _NAMES[ast.Compare]
        case ast.Subscript():
            yield "positions"


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Put the statement before the loop, and take it out of there."""
    from flake8_torchperf.fixes.shared.nodes.before_loop import moved_out

    loop, node = nodes
    return [moved_out(loop, node, edit.facts["name"]), node]
