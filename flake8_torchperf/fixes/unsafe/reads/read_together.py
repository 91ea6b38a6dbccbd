"""``a = x.item()``, ``b = y.item()`` -> ``a, b = torch.stack([x, y]).tolist()``.

For reads in one statement or in consecutive statements, of 0-d values that are all floats, all
ints, or all of one tensor: one copy to the host and one wait for each group. Vectors of one element
are joined by ``torch.cat``. Tensors of which neither is known are left alone. A value that is read
twice is read once: ``x_value = x.item()``.
"""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import named_after, names_in
from flake8_torchperf.fixes.shared.effects import (
    acting_before,
    appending_call,
    is_pure,
    place_of_end,
    stored_by,
)
from flake8_torchperf.fixes.shared.evaluation import is_lazy
from flake8_torchperf.fixes.shared.kinds import averaged, has_float64, kind_of, may_be_number
from flake8_torchperf.fixes.shared.siblings import block_of, index_of
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.traversal import below, once
from flake8_torchperf.values.site import SIZED_KINDS
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings
    from flake8_torchperf.judgement.judged_site import JudgedSite

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# The most consecutive statements whose reads are joined; more are hard to follow.
_MOST = 24
# Reductions that arrays lack.
_OF_TENSORS = frozenset(("nanmean", "nanmedian", "nansum", "norm"))
# The functions that make a vector of 0-d tensors, and of vectors of one element.
_JOINING = ("torch.stack", "torch.cat")


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of one number: its call, the statement around it, and the tensor that it reads.

    ``method`` is the method to call before the tensors are joined: ``double`` where it is converted
    to a float and may have another dtype. ``rank`` is its number of dimensions, 0 or 1.
    """

    call: ast.Call
    statement: ast.stmt
    tensor: ast.expr
    kind: str
    method: str
    rank: int


def plan(place: FixPlace) -> Edit | None:
    """Apply to consecutive assignments, and to reads in consecutive statements."""
    around = place.around
    statement = around.statement(place.site.node)
    if statement is None or around.function(statement) is None:
        return None
    reads = _alike(_behind(place, statement), around)
    stack = around.reach(_JOINING[reads[0].rank], place.site.node) if reads else None
    if stack is None:
        return None
    names = {"stack": stack[0]}
    lines = _assignments(reads, place)
    free = [] if len(lines) == len(reads) else _movable(reads, place)
    touched = _statements(free, place)
    values = _names(free, touched, around)
    if len(lines) > 1 and len(lines) >= len(free):
        facts: dict[str, Any] = {
            **names,
            "form": "lines",
            "methods": tuple(one.method for one in lines),
        }
        return Edit(tuple(one.statement for one in lines), facts, stack[1])
    if len(free) < 2 or free[0] is not reads[0]:
        return None
    if len(values) == 1:  # one value, read twice
        names["stack"] = ""
    methods = {ast.unparse(one.call): one.method for one in free}
    whole: dict[str, Any] = {**names, "form": "statements", "names": values, "methods": methods}
    return Edit(tuple(touched), whole, stack[1])


def _behind(place: FixPlace, statement: ast.stmt) -> list[_Read]:
    """Return the read of a finding, with those in its statement and in the statements after it."""
    around = place.around
    block, first = block_of(place, statement), index_of(statement, around)
    found: list[_Read] = []
    for site in itertools.chain([place.site], around.reported_behind(place.site)):
        line = around.statement(site.node)
        if not isinstance(line, _SIMPLE) or block_of(place, line) is not block:
            break
        if not 0 <= first <= index_of(line, around) < first + _MOST:
            break
        read = _read(site, line, around)
        if read is not None:
            found.append(read)
        elif site is place.site:
            break
    return found


def _read(site: JudgedSite, line: ast.stmt, around: Surroundings) -> _Read | None:
    call, operand = site.node, site.operand
    if not isinstance(call, ast.Call) or not isinstance(operand, Tensor) or call.keywords:
        return None
    tensor = _source(call)
    if tensor is None or operand.dtype == "complex" or _waits(tensor, around):
        return None
    rank = 0 if operand.scalar is True or _is_reduced(tensor) else operand.rank
    if rank not in (0, 1):
        return None
    kind = kind_of(tensor, operand.dtype, around)
    called = call.func.id if isinstance(call.func, ast.Name) else ""
    if operand.partly or (called and may_be_number(tensor, around)):
        return None  # `float` takes both, `torch.stack` only tensors
    if called in ("int", "bool"):
        return _Read(call, line, tensor, kind, "", rank) if kind == called else None
    method = ""
    made_float = called == "float" or _is_made_float(call, around)
    if made_float and kind not in ("float", "int" if called == "" else "float"):
        # Python rounds a large int as float64 does, which MPS does not have.
        if not has_float64(around):
            return None
        kind, method = "float", "double"
    return _Read(call, line, tensor, kind, method, rank)


def _waits(tensor: ast.expr, around: Surroundings) -> bool:
    """True if Python waits for the size of what a tensor is made of."""
    sized = around.known(_sized)
    return bool(sized) and any(id(part) in sized for part in ast.walk(tensor))


def _sized(around: Surroundings) -> frozenset[int]:
    """Return the identities of the expressions whose size only the device knows."""
    return frozenset(id(site.node) for site in around.reported(*SIZED_KINDS))


def _is_reduced(tensor: ast.expr) -> bool:
    """True for a reduction to one element by a method that arrays lack."""
    match tensor:
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
            return name in _OF_TENSORS
    return False


def _is_made_float(call: ast.Call, around: Surroundings) -> bool:
    """True for the ``t.item()`` of ``float(t.item())``."""
    above = around.parent(call)
    return isinstance(above, ast.Call) and around.qualified(above.func) == "builtins.float"


def _source(call: ast.Call) -> ast.expr | None:
    """Return the tensor of ``t.item()``, ``float(t)``, ``int(t)`` or ``bool(t)``."""
    match call:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
            return tensor
        case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[tensor]):
            return tensor
    return None


def _alike(reads: Sequence[_Read], around: Surroundings) -> list[_Read]:
    """Return the reads that fit into one tensor with the first."""
    # `mean` takes no ints, so its operand holds floats.
    floats = {like for one in reads if (like := averaged(one.tensor, around))}
    kinds = ["float" if one.kind in floats else one.kind for one in reads]
    return [
        one
        for one, kind in zip(reads, kinds, strict=True)
        if kind and kind == kinds[0] and one.rank == reads[0].rank
    ]


def _assignments(reads: Sequence[_Read], place: FixPlace) -> list[_Read]:
    """Return the first of the reads and those directly after it that each fill a name alone."""
    found: list[_Read] = []
    filled: set[str] = set()
    for read in reads:
        line = read.statement
        if not isinstance(line, ast.Assign) or line.value is not read.call:
            break
        target = line.targets[0]
        if len(line.targets) > 1 or not isinstance(target, ast.Name):
            break
        if found and not _follows(line, found[-1].statement, place):
            break
        if any(isinstance(n, ast.Name) and n.id in filled for n in ast.walk(read.tensor)):
            break
        filled.add(target.id)
        found.append(read)
    acting = [one for one in found[1:] if not is_pure(one.tensor, place.around)]
    return found[: found.index(acting[0])] if acting else found


def _follows(line: ast.stmt, other: ast.stmt, place: FixPlace) -> bool:
    block = block_of(place, other)
    at = next((i for i, one in enumerate(block) if one is other), len(block)) + 1
    return at < len(block) and block[at] is line


def _movable(reads: Sequence[_Read], place: FixPlace) -> list[_Read]:
    """Return the reads, from the first on, whose tensors can be computed before all statements."""
    free = [one for one in reads if _is_free(one, place)]
    while len(free) > 1 and not _can_move(free, place):
        free.pop()
    return free


def _is_free(read: _Read, place: FixPlace) -> bool:
    """True if a read, and every call of the same text, is evaluated exactly once."""
    text = ast.dump(read.call)
    calls = (one for one in ast.walk(read.statement) if isinstance(one, ast.Call))
    same = [one for one in calls if ast.dump(one) == text]
    return not any(is_lazy(place, one, read.statement) for one in same)


def _statements(reads: Sequence[_Read], place: FixPlace) -> list[ast.stmt]:
    """Return the statements from the first of the reads to the last one."""
    if not reads:
        return []
    block = block_of(place, reads[0].statement)
    at = [i for i, one in enumerate(block) if any(read.statement is one for read in reads)]
    return block[at[0] : at[-1] + 1]


def _can_move(reads: Sequence[_Read], place: FixPlace) -> bool:
    """True if all tensors can be computed before the first of the statements, in their order."""
    lines = _statements(reads, place)
    stored = stored_by(lines[:-1], place.around)
    if stored is None or any(names_in([one.tensor]) & stored for one in reads):
        return False
    acting = acting_before(lines, place_of_end(reads[-1].call), place.around)
    appending = {id(one) for line in lines if (one := appending_call(line, place.around))}
    acting = [one for one in acting if id(one) not in appending]
    first = reads[0]
    if getattr(first.statement, "value", None) is first.call:  # it comes first anyway
        own = {id(one) for one in ast.walk(first.tensor)}
        acting = [one for one in acting if id(one) not in own]
    return not acting


def _names(
    reads: Sequence[_Read], lines: Sequence[ast.stmt], around: Surroundings
) -> dict[str, str]:
    """Return a name for the result of each read, by the text of the read.

    It is the one that its statement binds, or one that the file does not use.
    """
    used = set(_names_used(around.tree))
    names: dict[str, str] = {}
    for read in reads:
        text = ast.unparse(read.call)
        if text in names:
            continue
        name = _bound_alone(read, lines)
        if name:
            names[text] = name
            continue
        name = f"{_key(read, around) or named_after(read.tensor, around)}_value"
        while name in used:
            name += "_read"
        used.add(name)
        names[text] = name
    return names


@once
def _names_used(tree: ast.AST) -> frozenset[str]:
    """Return the names and the parameters of a module."""
    names = {node.id for node in below(tree) if isinstance(node, ast.Name)}
    return frozenset(names | {node.arg for node in below(tree) if isinstance(node, ast.arg)})


def _bound_alone(read: _Read, lines: Sequence[ast.stmt]) -> str:
    """Return the name that a statement only binds to a number; "" where another one uses it."""
    match read.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is read.call:
            before = [one for one in lines if one.lineno < read.statement.lineno]
            behind = [one for one in lines if one.lineno > read.statement.lineno]
            free = name not in names_in([read.tensor, *before])
            bound = all_bound_by(behind)
            return name if free and name not in bound else ""
    return ""


def _key(read: _Read, around: Surroundings) -> str:
    """Return a name made of the key under which a number is kept in a dict; "" if there is none."""
    key: ast.expr | None = None
    match read.statement, around.parent(read.call):
        case ast.Assign(targets=[ast.Subscript(slice=key)], value=value), _ if value is read.call:
            pass
        case _, ast.Dict(keys=keys, values=values):
            key = next((k for k, v in zip(keys, values, strict=True) if v is read.call), None)
        case _, ast.keyword(arg=str(name)) as given:
            call = around.parent(given)
            of_dict = isinstance(call, ast.Call) and around.qualified(call.func) == "builtins.dict"
            return name if of_dict else ""
    if isinstance(key, ast.JoinedStr) and key.values:
        key = key.values[-1]
    text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
    name = re.sub(r"\W+", "_", text).strip("_").lower()
    return name if name.isidentifier() else ""


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel]:
    """Stack the tensors and read them at once."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import row_reads

    lines = [node for node in nodes if isinstance(node, cst.SimpleStatementLine)]
    if edit.facts["form"] == "lines":
        first = row_reads.one_line(lines, edit.facts)
        return [first, *(cst.RemoveFromParent() for _ in lines[1:])]
    return row_reads.read_before(lines, edit.facts)
