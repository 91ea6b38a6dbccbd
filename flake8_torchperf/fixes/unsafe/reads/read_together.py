"""``a = x.item()``, ``b = y.item()`` -> ``a, b = torch.stack([x, y]).tolist()``.

For reads in one statement and in statements behind each other, of values without dimensions that
are all floats, all ints, or all of one tensor: one copy to the host, one wait for each of these.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.values import Tensor
from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.pieces.evaluation import is_lazy
from flake8_torchperf.fixes.shared.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.absint.domain.site import Site
    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# How Python's own types are called that `tolist` gives for a class of dtypes.
_KINDS = {"float": "float", "int": "int", "unknown": ""}


def plan(place: Place) -> Edit | None:
    """Apply to assignments one after the other, and to reads in one statement."""
    around = place.around
    stack = around.reach("torch.stack", place.site.node)
    statement = around.statement(place.site.node)
    if stack is None or statement is None or around.function(statement) is None:
        return None
    names = {"stack": stack[0]}
    lines = _assignments(place.site, around)
    if len(lines) > 1:
        return Edit(tuple(lines), {**names, "form": "lines"}, stack[1])
    inside = _inside(place.site, statement, around)
    if len(inside) < 2 or not isinstance(statement, _SIMPLE):
        return None
    if not all(_is_free(read, statement, place) for read in inside):
        return None
    values = _names(inside, around)
    if len(values) < 2:
        return None  # one value, read twice
    return Edit((statement,), {**names, "form": "statement", "names": values}, stack[1])


def _inside(first: Site, statement: ast.stmt, around: Surroundings) -> list[ast.AST]:
    """The first of the reads and those behind it in its statement that are of its kind."""
    sites = [first]
    for site in around.reported_behind(first):
        if around.statement(site.node) is not statement:
            break
        sites.append(site)
    kind = _kind(first, around)
    return [site.node for site in sites if kind and _kind(site, around) == kind]


def _kind(site: Site, around: Surroundings) -> str:
    """What the values must agree in to be put into one tensor; "" where nothing tells."""
    source = _source(site)
    dtype = site.operand.dtype if isinstance(site.operand, Tensor) else ""
    return "" if source is None else kind_of(source, dtype, around)


def _source(site: Site) -> ast.expr | None:
    """The tensor of ``t.item()``, or of ``float(t)`` where that changes no type."""
    operand = site.operand
    if not isinstance(operand, Tensor) or operand.scalar is not True:
        return None
    match site.node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor
        case ast.Call(func=ast.Name(id=called), args=[tensor], keywords=[]):
            return tensor if called == _KINDS.get(operand.dtype) else None
    return None


def _assignments(first: Site, around: Surroundings) -> list[ast.stmt]:
    """The first of the reads and those right behind it, as far as each fills a name alone."""
    found: list[ast.Assign] = []
    filled: set[str] = set()
    kind = _kind(first, around)
    for site in itertools.chain([first], around.reported_behind(first)):
        line = around.statement(site.node)
        source = _source(site)
        if not isinstance(line, ast.Assign) or line.value is not site.node or source is None:
            break
        target = line.targets[0]
        if len(line.targets) > 1 or not isinstance(target, ast.Name):
            break
        if found and not _follows(line, found[-1], around):
            break
        if any(isinstance(n, ast.Name) and n.id in filled for n in ast.walk(source)):
            break
        if not kind or _kind(site, around) != kind:
            break
        filled.add(target.id)
        found.append(line)
    return list(found)


def _follows(line: ast.stmt, other: ast.stmt, around: Surroundings) -> bool:
    above = around.parent(other)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(above, field, None)
        if isinstance(block, list) and other in block:
            index = block.index(other) + 1
            return index < len(block) and block[index] is line
    return False


def _is_free(read: ast.AST, statement: ast.stmt, place: Place) -> bool:
    """Is it evaluated in any case, and of a tensor that may be evaluated before all else?"""
    return not is_lazy(place, read, statement) and _is_plain(_read_of(read))


def _read_of(read: ast.AST) -> ast.expr:
    """The tensor that ``t.item()`` and ``float(t)`` read."""
    assert isinstance(read, ast.Call)
    return read.func.value if isinstance(read.func, ast.Attribute) else read.args[0]


def _is_plain(node: ast.expr) -> bool:
    """A name, an attribute, and what methods without arguments make of one: ``t.detach()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = [*node.args, *(one.value for one in node.keywords)]
        return _is_plain(node.func.value) and all(isinstance(one, ast.Constant) for one in given)
    return repeatable(node)


def _names(reads: Sequence[ast.AST], around: Surroundings) -> dict[str, str]:
    """A name that the file does not use for what each read gives, by the text of the read."""
    used = {node.id for node in ast.walk(around.tree) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(around.tree) if isinstance(node, ast.arg)}
    names: dict[str, str] = {}
    for read in reads:
        text = ast.unparse(read)
        if text in names:
            continue
        name = f"{_called(_read_of(read))}_value"
        while name in used:
            name += "_read"
        used.add(name)
        names[text] = name
    return names


def _called(node: ast.expr) -> str:
    """What an expression is called by the names and methods in it."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower() or "x"
        case ast.Subscript(slice=ast.Constant(value=str(name))) if name.isidentifier():
            return name.lower()
        case ast.Subscript(value=inner):
            return _called(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)):
            return _called(inner) if method in _SAME else f"{_called(inner)}_{method}"
    return "x"


# Methods that keep the value of a tensor.
_SAME = ("detach", "cpu", "clone", "squeeze")


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel]:
    """Stack the tensors and read them at once."""
    import libcst as cst

    from flake8_torchperf.fixes.shared import rows

    lines = [node for node in nodes if isinstance(node, cst.SimpleStatementLine)]
    if edit.facts["form"] == "lines":
        first = rows.one_line(lines, edit.facts["stack"])
        return [first, *(cst.RemoveFromParent() for _ in lines[1:])]
    return [rows.read_before(lines[0], edit.facts)]
