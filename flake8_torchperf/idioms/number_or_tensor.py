"""Values that may be a number or a tensor: the caller decides which one it passes.

The analysis is by syntax alone.
"""

from __future__ import annotations

import ast

from flake8_torchperf.syntax.traversal import children, walk


class NumberOrTensor:
    """The reads of one function that make a number of a value that may be a number already."""

    def __init__(self, function: ast.AST) -> None:
        self._parents = {
            id(child): parent for parent in walk([function]) for child in children(parent)
        }

    def made_a_number(self, node: ast.AST, read: str) -> bool:
        """True for ``if isinstance(n, Tensor): n = n.item()``: a caller may pass the number."""
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
    """True for ``if not is_tensor(t): t = torch.tensor([t])``: a caller may pass the tensor."""
    if isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1:
        data = data.elts[0]
    if not isinstance(data, ast.Name):
        return False
    return any(
        isinstance(call, ast.Call) and _asks_for_tensor(call, data.id) for call in walk([function])
    )


def _asks_for_tensor(test: ast.expr, read: str) -> bool:
    """True for ``isinstance(x, torch.Tensor)`` or ``torch.is_tensor(x)`` of the value read."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, _]):
            return ast.unparse(asked) == read
        case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[asked]):
            return ast.unparse(asked) == read
    return False
