"""Reads in a row as libcst's nodes, written as one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def one_line(lines: Sequence[cst.SimpleStatementLine], stack: str) -> cst.SimpleStatementLine:
    """``a = x.item()``, ``b = y.item()`` -> ``a, b = torch.stack([x, y]).tolist()``."""
    targets: list[cst.Element] = []
    sources: list[cst.BaseExpression] = []
    for line in lines:
        assign = line.body[0]
        assert isinstance(assign, cst.Assign)
        assert isinstance(assign.value, cst.Call)
        target = assign.targets[0].target
        assert isinstance(target, cst.BaseExpression)
        targets.append(cst.Element(target))
        sources.append(_source(assign.value))
    names = cst.AssignTarget(cst.Tuple(targets, lpar=[], rpar=[]))
    return lines[0].with_changes(body=[cst.Assign([names], _read(sources, stack))])


def read_before(
    line: cst.SimpleStatementLine, facts: Mapping[str, Any]
) -> cst.FlattenSentinel[cst.CSTNode]:
    """``f(x.item(), y.item())`` -> the reads in a line of their own, and what they give in it."""
    replacing = _Replacing(facts["names"])
    changed = line.visit(replacing)
    assert isinstance(changed, cst.SimpleStatementLine)
    read = _read([*replacing.read.values()], facts["stack"])
    names = [cst.Element(cst.Name(name)) for name in replacing.read]
    target = cst.AssignTarget(cst.Tuple(names, lpar=[], rpar=[]))
    before = cst.SimpleStatementLine([cst.Assign([target], read)], leading_lines=line.leading_lines)
    return cst.FlattenSentinel([before, changed.with_changes(leading_lines=[])])


class _Replacing(cst.CSTTransformer):
    """Puts names where reads were; ``read`` holds what each of them stands for."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names
        self.read: dict[str, cst.BaseExpression] = {}

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self._names.get(_normal(original_node))
        if name is None:
            return updated_node
        self.read.setdefault(name, _source(original_node))
        return cst.Name(name)


def _source(read: cst.Call) -> cst.BaseExpression:
    if isinstance(read.func, cst.Attribute):
        return build.bare(read.func.value)
    return build.bare(read.args[0].value)


def _read(sources: Sequence[cst.BaseExpression], stack: str) -> cst.Call:
    items = cst.List([cst.Element(source) for source in sources])
    stacked = cst.Call(build.expression(stack), [cst.Arg(items)])
    return cst.Call(cst.Attribute(stacked, cst.Name("tolist")))


def _normal(node: cst.Call) -> str:
    """The text of a call as `ast.unparse` writes it."""
    bare = node.with_changes(lpar=[], rpar=[])
    return ast.unparse(ast.parse(f"({cst.Module([]).code_for_node(bare)}\n)", mode="eval").body)
