"""Names that hold a value for one later use in the same block: made first, moved later.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.code import names_in
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.siblings import block_of
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.traversal import FUNCTIONS, below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
_LAZY = (*FUNCTIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class HeldNames:
    """The names that a statement uses and that nothing else has used since they were bound.

    ``where`` is evaluated at the earlier statements instead: nothing in between may change it.
    """

    def __init__(self, place: FixPlace, statement: ast.stmt, where: Sequence[ast.expr]) -> None:
        self.assignments: list[ast.Assign] = []
        self._place = place
        self._user = statement
        self._function = place.around.function(statement)
        self._where = where
        self._found: dict[int, ast.expr | None] = {}
        self._fills: dict[int, list[ast.stmt]] = {}

    def value(self, name: ast.Name) -> ast.expr | None:
        """Return the expression that a name is bound to for this use; None if it has other uses."""
        if id(name) not in self._found:
            made = self._assignment(name)
            if made is not None:
                self.assignments.append(made)
            self._found[id(name)] = None if made is None else made.value
        return self._found[id(name)]

    def fills(self, name: ast.Name) -> bool:
        """True if numbers are assigned to elements between the binding of a name and this use."""
        return bool(self._fills.get(id(name)))

    def _assignment(self, name: ast.Name) -> ast.Assign | None:
        function = self._function
        user = self._place.around.statement(name)
        if function is None or user is None or not isinstance(user, (*_SIMPLE, ast.Return)):
            return None
        if self._may_be_caught(user):
            return None
        block = block_of(self._place, user)
        at = next((i for i, one in enumerate(block) if one is user), 0)
        between: list[ast.stmt] = []
        fills = self._fills[id(name)] = list[ast.stmt]()
        for line in reversed(block[:at]):
            match line:
                case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name.id:
                    alone = not _is_used_elsewhere(name, user, function, [line.value, *fills])
                    return line if alone and self._stays(between) else None
            if self._fills_elements(line, name.id):
                fills.append(line)
            elif not isinstance(line, _SIMPLE) or name.id in names_in([line]):
                return None
            between.append(line)
        return None

    def _fills_elements(self, line: ast.stmt, name: str) -> bool:
        """True for ``x[i, 1:] = 0.5``: a device does it as the host does, and nothing waits.

        The number for a single element would be copied from the host.
        """
        match line:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=filled), slice=index)],
                value=ast.Constant(value=int() | float())
                | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())),
            ) if filled == name:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                sliced = any(isinstance(one, ast.Slice) for one in parts)
                return sliced and all(self._is_basic(one, name) for one in parts)
        return False

    def _is_basic(self, part: ast.expr, name: str) -> bool:
        """True for a slice of ints, an int, None and ``...``, without the filled name itself."""
        if name in names_in([part]):
            return False
        if isinstance(part, ast.Slice):
            bounds = (part.lower, part.upper, part.step)
            return all(one is None or is_whole(one, self._place.around) for one in bounds)
        if isinstance(part, ast.Constant) and part.value in (None, ...):
            return True
        return is_whole(part, self._place.around)

    def _stays(self, between: Sequence[ast.stmt]) -> bool:
        """True if the place to move to is the same before the statements in between."""
        if names_in(self._where) & all_bound_by(between):
            return False
        # A call may move an object to another device, but a tensor keeps its own.
        parts = [one for where in self._where for one in ast.walk(where)]
        inner = any(isinstance(one, ast.Attribute) and one.attr != "device" for one in parts)
        if not inner and "self" not in names_in(self._where):
            return True
        calls = [one for line in between for one in ast.walk(line) if isinstance(one, ast.Call)]
        return all(self._place.around.qualified(c.func).startswith("torch.") for c in calls)

    def _may_be_caught(self, statement: ast.stmt) -> bool:
        """True if a ``try`` or ``with`` around a statement may catch an error and use its names."""
        here = self._place.around.parent(statement)
        while here is not None and here is not self._function:
            if isinstance(here, (ast.Try, ast.With, ast.AsyncWith)) and not _is_torch_with(here):
                return True
            here = self._place.around.parent(here)
        return False


def _is_torch_with(node: ast.AST) -> bool:
    """True for ``with torch.no_grad():``, which does not catch errors."""
    if not isinstance(node, ast.With):
        return False
    return all(
        isinstance(one.context_expr, ast.Call)
        and isinstance(one.context_expr.func, ast.Attribute)
        and one.context_expr.func.attr in ("no_grad", "enable_grad", "inference_mode")
        for one in node.items
    )


def _is_used_elsewhere(
    name: ast.Name, user: ast.stmt, function: ast.AST, allowed: Sequence[ast.AST]
) -> bool:
    """True if the value bound to a name is read by anything but one use and what is allowed.

    A use that binds the name again is the last.
    """
    rebinds = isinstance(user, ast.Assign) and any(
        isinstance(one, ast.Name) and one.id == name.id for one in user.targets
    )
    for node in below(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name.id in node.names:
            return True
        if isinstance(node, _LAZY) and node is not function and name.id in names_in([node]):
            return True
    before = {id(one) for part in allowed for one in ast.walk(part)}
    return any(
        isinstance(one, ast.Name)
        and one.id == name.id
        and isinstance(one.ctx, ast.Load)
        and one is not name
        and id(one) not in before
        for one in ast.walk(user if rebinds else function)
    )
