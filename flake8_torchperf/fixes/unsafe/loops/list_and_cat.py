"""``t = torch.cat([t, piece])`` in a loop -> a list that grows, and one ``torch.cat`` after it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import argument_text, fresh_name, invariant
from flake8_torchperf.fixes.shared.code import names_in as names
from flake8_torchperf.fixes.shared.tensors import is_tensor
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_JOINING = frozenset(f"torch.{name}" for name in methods_of("concatenates"))


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop that only adds to the tensor, sets it, or tests it for None."""
    call = place.site.node
    grown = place.around.statement(call)
    loop = _loop(place)
    if not isinstance(grown, ast.Assign) or grown.value is not call or loop is None:
        return None
    match grown.targets:
        case [ast.Name(id=name)]:
            pass
        case _:
            return None
    uses = _Uses(place, name, loop)
    if not uses.are_known():
        return None
    list_name = fresh_name(place, loop, (f"{name}_pieces", f"{name}_parts", "pieces"))
    start = _start(place, name, loop, uses)
    if not list_name or start is None or not isinstance(call, ast.Call):
        return None
    if not uses.begins_inside and place.around.parent(grown) is not loop:
        own = next(one for one in ast.walk(call) if isinstance(one, ast.Name) and one.id == name)
        if not is_tensor(own, place.around):
            return None  # where nothing is added, it may be None, which `cat` refuses
    given = f", {uses.dim}" if uses.dim else ""
    joined = f"{ast.unparse(call.func)}({list_name}{given})"
    before, otherwise = start
    facts = {
        "tensor": name,
        "list": list_name,
        "before": f"{list_name} = {before}",
        "after": f"{name} = {joined}{otherwise.format(list_name)}",
    }
    return Edit((loop,), facts)


def _loop(place: FixPlace) -> ast.For | ast.While | None:
    loop = place.site.loops[-1].node if place.site.loops else None
    return loop if isinstance(loop, (ast.For, ast.While)) and not loop.orelse else None


def _start(place: FixPlace, name: str, loop: ast.stmt, uses: _Uses) -> tuple[str, str] | None:
    """Return the list before the loop, and a suffix that restores None if nothing was added.

    None where these are not known.
    """
    if not uses.begins_inside:
        return f"[{name}]", ""
    function = place.around.function(loop)
    within = {id(node) for node in below(loop)}
    whole = function or place.around.tree
    before = [
        node
        for node in below(whole)
        if isinstance(node, ast.Name)
        and node.id == name
        and not isinstance(node.ctx, ast.Load)
        and id(node) not in within
        and node.lineno < loop.lineno
    ]
    if function is not None and any(
        one.arg == name for one in ast.walk(function.args) if isinstance(one, ast.arg)
    ):
        return None
    if not before:
        return None if uses.asked else ("[]", "")
    if all(_is_none(place, node) for node in before):
        return "[]", " if {} else None"
    return None


def _is_none(place: FixPlace, target: ast.Name) -> bool:
    match place.around.parent(target):
        case ast.Assign(targets=[_], value=ast.Constant(value=None)):
            return True
    return False


class _Uses:
    """The uses of a growing tensor in a loop.

    ``dim`` is the source text of the dimension's argument; ``begins_inside`` says that the loop
    gives the tensor its first value, ``asked`` that it tests the tensor for None.
    """

    def __init__(self, place: FixPlace, name: str, loop: ast.For | ast.While) -> None:
        self._place = place
        self._name = name
        self._loop = loop
        self._bound = all_bound_by([loop])
        self._known: set[int] = set()
        self._dims: set[str] = set()
        self._changed = _changed_in(loop)
        self.begins_inside = False
        self.asked = False

    @property
    def dim(self) -> str:
        """The argument for the dimension, as every ``cat`` of the loop gives it."""
        (one,) = self._dims
        return one

    def are_known(self) -> bool:
        """True if all uses are additions, first values and tests for None, with one dimension."""
        good = True
        for node in below(self._loop):
            match node:
                case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                    if name == self._name:
                        self._known.add(id(target))
                        good = good and self._assigned(value)
                case ast.Compare(
                    left=ast.Name(id=name) as asked,
                    ops=[ast.Is() | ast.IsNot()],
                    comparators=[ast.Constant(value=None)],
                ) if name == self._name:
                    self._known.add(id(asked))
                    self.asked = self.begins_inside = True
        return good and len(self._dims) == 1 and self._mentions_no_more()

    def _mentions_no_more(self) -> bool:
        return all(
            id(node) in self._known
            for node in below(self._loop)
            if isinstance(node, ast.Name) and node.id == self._name
        )

    def _assigned(self, value: ast.expr) -> bool:
        match value:
            case ast.Call(args=[ast.List(elts=pieces) | ast.Tuple(elts=pieces), *more]) if (
                self._name in names(pieces)
            ):
                return self._added(value, pieces, more)
        self.begins_inside = True
        return self._stays(value)

    def _added(self, call: ast.Call, pieces: Sequence[ast.expr], more: Sequence[ast.expr]) -> bool:
        """True for ``cat([t, *pieces], dim)`` or ``cat([piece, t], dim)``."""
        own = [piece for piece in pieces if isinstance(piece, ast.Name) and piece.id == self._name]
        options = [one for one in call.keywords if one.arg in ("dim", "axis")]
        if (
            len(own) != 1
            or len(more) + len(call.keywords) > 1
            or len(options) != len(call.keywords)
        ):
            return False
        if pieces[0] is not own[0] and (len(pieces) != 2 or pieces[1] is not own[0]):
            return False
        given = [*more, *(one.value for one in options)]
        self._known.add(id(own[0]))
        self._dims.add(f"dim={argument_text(self._place, given[0])}" if given else "")
        constant = all(invariant(one, self._bound) for one in given)
        known = self._place.around.qualified(call.func) in _JOINING
        return constant and known and all(self._stays(one) for one in pieces if one is not own[0])

    def _stays(self, piece: ast.expr) -> bool:
        """True if a piece is made in the round that adds it, and is not changed after that."""
        if isinstance(piece, ast.Starred) or invariant(piece, self._bound):
            return False
        return not names([piece]) & self._changed


def _changed_in(loop: ast.stmt) -> frozenset[str]:
    """Return the names of tensors that a loop may change in place."""
    changed: list[ast.AST] = []
    for node in below(loop):
        match node:
            case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript() as target]):
                changed.append(target)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name.endswith(
                "_"
            ) and not name.endswith("__"):
                changed.append(owner)
            case ast.Call(keywords=keywords):
                changed += [one.value for one in keywords if one.arg == "out"]
    return frozenset(_roots(changed))


def _roots(nodes: Iterable[ast.AST]) -> list[str]:
    found = []
    for node in nodes:
        here = node
        while isinstance(here, (ast.Attribute, ast.Subscript)):
            here = here.value
        if isinstance(here, ast.Name):
            found.append(here.id)
    return found


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Make the list before the loop, add to it in the loop, and join it afterwards."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import new_statements
    from flake8_torchperf.fixes.shared.nodes.growing import into_list

    (loop,) = nodes
    assert isinstance(loop, (cst.For, cst.While))
    facts = edit.facts
    new = [
        *new_statements.parsed(facts["before"]),
        into_list(loop, facts["tensor"], facts["list"]).with_changes(leading_lines=[]),
        *new_statements.parsed(facts["after"]),
    ]
    return [new_statements.with_comments_of(loop, new)]
