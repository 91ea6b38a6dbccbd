"""Decides where an expression needs brackets to be one operand of the expression around it.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast

# From the loosest to the tightest; comparisons are looser than all of them.
_LEVELS: tuple[tuple[type[ast.operator], ...], ...] = (
    (ast.BitOr,),
    (ast.BitXor,),
    (ast.BitAnd,),
    (ast.LShift, ast.RShift),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult),
)
_SIGN, _CLOSED = len(_LEVELS) + 1, len(_LEVELS) + 2


def needs_brackets(inner: ast.expr, place: ast.AST, above: ast.AST | None) -> bool:
    """True if ``inner`` needs brackets to be one operand in place of a node below ``above``."""
    level = _level(inner)
    match above:
        case ast.Attribute() | ast.Await():
            return level < _CLOSED
        case ast.Subscript(value=value):
            return value is place and level < _CLOSED
        case ast.Call(func=func):
            return func is place and level < _CLOSED
        case ast.UnaryOp(op=op):
            return not isinstance(op, ast.Not) and level < _SIGN
        case ast.Compare():
            return level == 0
        case ast.BinOp(op=ast.Pow()):
            return level < _CLOSED
        case ast.BinOp(left=left):
            outer = _level(above)
            return level < outer or (level == outer and place is not left)
    return False


def _level(node: ast.AST) -> int:
    match node:
        case ast.BinOp(op=op):
            found = (at for at, kinds in enumerate(_LEVELS, 1) if isinstance(op, kinds))
            return next(found, _SIGN)
        case ast.UnaryOp(op=op):
            return 0 if isinstance(op, ast.Not) else _SIGN
        case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript() | ast.Constant():
            return _CLOSED
    return 0
