"""Where a copy on the host goes: to other operations, or out of the function.

Enters a function and the expression that copies; leaves whether the copy is computed with, and
whether what is read may be a number already. By syntax alone; must not know values or rules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

# Parts of an expression around a number that are still that number, or hold it.
THROUGH = (ast.UnaryOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.keyword,
           ast.FormattedValue, ast.JoinedStr, ast.IfExp, ast.Await)  # fmt: skip
# What is asked about a tensor and not of its elements.
ABOUT = frozenset(("shape", "size", "ndim", "dim", "numel", "dtype", "device", "stride"))
# Names that a number passes on its way.
MAX_NAMES = 3


class Handed:
    """One function, asked what becomes of what it takes to the host.

    ``works`` says of what is called whether it works on tensors of a device as well.
    """

    def __init__(self, function: ast.AST, works: Callable[[ast.expr], bool]) -> None:
        self._works = works
        self._names: dict[tuple[str, int], bool] = {}
        self._parents = {
            id(child): parent
            for parent in ast.walk(function)
            for child in ast.iter_child_nodes(parent)
        }
        self._uses: dict[str, list[ast.Name]] = {}
        for inner in ast.walk(function):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                self._uses.setdefault(inner.id, []).append(inner)

    def made_a_number(self, node: ast.AST, read: str) -> bool:
        """``if isinstance(n, Tensor): n = n.item()``: may a caller give the number itself?"""
        parent = self._parents.get(id(node))
        while isinstance(parent, (ast.Call, ast.Attribute)):
            node, parent = parent, self._parents.get(id(parent))
        if isinstance(parent, ast.IfExp):
            return parent.body is node and _asks_for_tensor(parent.test, read)
        if not isinstance(parent, ast.Assign):
            return False
        branch = self._parents.get(id(parent))
        return (
            isinstance(branch, ast.If)
            and any(statement is parent for statement in branch.body)
            and _asks_for_tensor(branch.test, read)
        )

    def worked_on(self, node: ast.AST, named: int = 0) -> bool:
        """Is a copy an operand, or given to a function that works on tensors as well?"""
        parent = self._parents.get(id(node))
        while parent is not None:
            match parent:
                case ast.BinOp() | ast.Compare():
                    return True
                case ast.Call(func=func) if node is not func:
                    return self._works(func)
                case ast.Assign(targets=[ast.Name(id=name)]):
                    return named < MAX_NAMES and self._holder_worked_on(name, named + 1)
                case ast.Subscript(slice=index) if index is node:
                    return False
                case ast.Attribute(attr=name) if name in ABOUT:
                    return False
                case ast.Attribute() | ast.Call() | ast.Subscript() | ast.keyword():
                    pass
                case _ if not isinstance(parent, THROUGH):
                    return False
            node, parent = parent, self._parents.get(id(parent))
        return False

    def _holder_worked_on(self, name: str, named: int) -> bool:
        """The same of what a name holds, wherever it is used; each name is followed once."""
        key = (name, named)
        if key not in self._names:
            uses = self._uses.get(name, ())
            self._names[key] = any(self.worked_on(use, named) for use in uses)
        return self._names[key]


def _asks_for_tensor(test: ast.expr, read: str) -> bool:
    """``isinstance(x, torch.Tensor)``, ``torch.is_tensor(x)`` of what is read."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, _]):
            return ast.unparse(asked) == read
        case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[asked]):
            return ast.unparse(asked) == read
    return False


def _is_class(name: str) -> bool:
    plain = name.lstrip("_")
    return plain[:1].isupper() and not plain.isupper()
