"""A number made of what may be one already, or a tensor: the caller decides what it gives.

By syntax alone.
"""

from __future__ import annotations

import ast

from flake8_torchperf.syntax.traversal import children, walk


class NumberOrTensor:
    """One function, asked which of its reads make a number of what may be one."""

    def __init__(self, function: ast.AST) -> None:
        self._parents = {
            id(child): parent for parent in walk([function]) for child in children(parent)
        }

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


def made_a_tensor(data: ast.expr, function: ast.AST) -> bool:
    """``if not is_tensor(t): t = torch.tensor([t])``: may a caller give the tensor itself?"""
    if isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1:
        data = data.elts[0]
    if not isinstance(data, ast.Name):
        return False
    return any(
        isinstance(call, ast.Call) and _asks_for_tensor(call, data.id) for call in walk([function])
    )


def _asks_for_tensor(test: ast.expr, read: str) -> bool:
    """``isinstance(x, torch.Tensor)``, ``torch.is_tensor(x)`` of what is read."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, _]):
            return ast.unparse(asked) == read
        case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[asked]):
            return ast.unparse(asked) == read
    return False
