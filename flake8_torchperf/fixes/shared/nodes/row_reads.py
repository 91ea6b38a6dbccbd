"""Reads of a row as libcst's nodes, written as one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes.reductions import method

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    _Written: TypeAlias = "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel"


def one_line(
    lines: Sequence[cst.SimpleStatementLine], facts: Mapping[str, Any]
) -> cst.SimpleStatementLine:
    """``a = x.item()``, ``b = y.item()`` -> ``a, b = torch.stack([x, y]).tolist()``."""
    targets: list[cst.Element] = []
    sources: list[cst.BaseExpression] = []
    for line, called in zip(lines, facts["methods"], strict=True):
        assign = line.body[0]
        assert isinstance(assign, cst.Assign)
        assert isinstance(assign.value, cst.Call)
        target = assign.targets[0].target
        assert isinstance(target, cst.BaseExpression)
        targets.append(cst.Element(target))
        sources.append(_source(assign.value, called))
    names = cst.AssignTarget(cst.Tuple(targets, lpar=[], rpar=[]))
    return lines[0].with_changes(body=[cst.Assign([names], _read(sources, facts["stack"]))])


def read_before(
    lines: Sequence[cst.SimpleStatementLine], facts: Mapping[str, Any]
) -> list[_Written]:
    """``f(x.item(), y.item())`` -> the reads in a separate line, and their names in ``f``."""
    replacing = _Replacing(facts["names"], facts["methods"])
    changed = [line.visit(replacing) for line in lines]
    first = changed[0]
    assert isinstance(first, cst.SimpleStatementLine)
    target: cst.AssignTarget
    read: cst.BaseExpression
    if facts["stack"]:
        read = _read([*replacing.read.values()], facts["stack"])
        names = [cst.Element(cst.Name(name)) for name in replacing.read]
        target = cst.AssignTarget(cst.Tuple(names, lpar=[], rpar=[]))
    else:
        (name,) = replacing.read
        assert replacing.call is not None
        read, target = replacing.call, cst.AssignTarget(cst.Name(name))
    before = cst.SimpleStatementLine([cst.Assign([target], read)])
    before = before.with_changes(leading_lines=first.leading_lines)
    rest = [] if _is_idle(first) else [first.with_changes(leading_lines=[])]
    written: list[_Written] = [cst.FlattenSentinel([before, *rest])]
    for one in changed[1:]:
        assert isinstance(one, cst.SimpleStatementLine)
        written.append(cst.RemoveFromParent() if _is_idle(one) else one)
    return written


def _is_idle(line: cst.SimpleStatementLine) -> bool:
    """True for ``a = a``."""
    match line.body:
        case [cst.Assign([cst.AssignTarget(cst.Name(target))], cst.Name(value))]:
            return target == value
    return False


class _Replacing(cst.CSTTransformer):
    """Puts names where reads were; ``read`` holds the read for each name."""

    def __init__(self, names: Mapping[str, str], methods: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names
        self._methods = methods
        self.read: dict[str, cst.BaseExpression] = {}
        self.call: cst.BaseExpression | None = None

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        text = _normal(original_node)
        name = self._names.get(text)
        if name is None:
            return updated_node
        self.call = build.bare(original_node)
        self.read.setdefault(name, _source(original_node, self._methods[text]))
        return cst.Name(name)


def _source(read: cst.Call, called: str) -> cst.BaseExpression:
    """Return the tensor that is read, after the method that ``called`` names."""
    given = read.func.value if isinstance(read.func, cst.Attribute) else read.args[0].value
    tensor = build.bare(given)
    return cst.Call(method(tensor, called)) if called else tensor


def _read(sources: Sequence[cst.BaseExpression], stack: str) -> cst.Call:
    items = cst.List([cst.Element(source) for source in sources])
    stacked = cst.Call(build.expression(stack), [cst.Arg(items)])
    return cst.Call(cst.Attribute(stacked, cst.Name("tolist")))


def _normal(node: cst.Call) -> str:
    """Return the text of a call as `ast.unparse` writes it."""
    bare = node.with_changes(lpar=[], rpar=[])
    return ast.unparse(ast.parse(f"({cst.Module([]).code_for_node(bare)}\n)", mode="eval").body)


def read_once(line: cst.SimpleStatementLine, reads: Sequence[cst.CSTNode], name: str) -> _Written:
    """Return a statement that reads into a name, and the statement that uses it for the reads."""
    read = reads[0]
    assert isinstance(read, cst.Call)
    assign = cst.Assign([cst.AssignTarget(cst.Name(name))], build.bare(read))
    before = cst.SimpleStatementLine([assign], leading_lines=line.leading_lines)
    changed = line.visit(_Named(reads, name))
    assert isinstance(changed, cst.SimpleStatementLine)
    return cst.FlattenSentinel([before, changed.with_changes(leading_lines=[])])


class _Named(cst.CSTTransformer):
    """Puts a name in place of expressions of one tree."""

    def __init__(self, reads: Sequence[cst.CSTNode], name: str) -> None:
        super().__init__()
        self._reads = reads
        self._name = name

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Return the name for the expressions, and every other call as it is."""
        known = any(one is original_node for one in self._reads)
        return cst.Name(self._name) if known else updated_node
