"""Copies and waits that their author wrote explicitly.

``x.cpu()`` and ``torch.cuda.synchronize()`` say that the host waits for the device; ``x[mask]`` and
``x.item()`` do not say so. An explicit wait is intended: it only matters if each step repeats it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import (
    ENTRIES,
    head_of,
    takes_step,
)
from flake8_torchperf.judgement.heat import Cost, Level
from flake8_torchperf.judgement.site import JudgedSite
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from flake8_torchperf.syntax.traversal import Nodes


def asked_for(site: JudgedSite) -> Cause | None:
    """Return the cause for which an explicit copy or wait is wanted; None if it is not wanted."""
    if AS_DECLARED in site.traits and _only_given(site):
        return Cause.DECLARED
    return _asked_how(site) if _is_asked_for(site) and not _repeated(site) else None


def _asked_how(site: JudgedSite) -> Cause:
    """Return the cause for which a site that is asked for, and not repeated in steps, is wanted."""
    if site.heat.level < Level.STEP:
        return Cause.COPY_ASKED
    array = site.heat.level is Level.STEP or AS_OUTPUT in site.traits
    return Cause.COPY_TO_ARRAY if array and AS_ARRAY in site.traits else Cause.COPY_IN_LOOP


def _is_asked_for(site: JudgedSite) -> bool:
    match site.kind:
        case SiteKind.TRANSFER:
            # `torch.tensor(data, device=device)` makes a tensor on the device; it moves no tensor.
            return "to-host" in site.traits or _moves_items(site)
        case SiteKind.SYNCHRONIZE:
            return True
        case SiteKind.FORMAT:
            # Text made in a loop of a function that is not known to run often reports progress.
            return site.heat.level is Level.LOOP and site.heat.around is Level.COLD
    return False


def _moves_items(site: JudgedSite) -> bool:
    """True for ``[x.to(device) for x in tables]`` in a function that is not known to run often."""
    cold = site.heat.level is Level.LOOP and site.heat.around is Level.COLD
    return cold and "to-device" in site.traits and site.operation in ("to", "cuda")


def _repeated(site: JudgedSite) -> bool:
    """True if the site is known to run in each step, or once for each element of a step's data."""
    if site.heat.level is not Level.LOOP:
        if site.kind is not SiteKind.TRANSFER:
            return True
        if site.heat.level is Level.STEP:
            return "to-host" not in site.traits or _copied_in_steps(site)
        return not _only_given(site)
    if site.heat.around >= Level.STEP:
        return True
    if site.kind is SiteKind.FORMAT:
        return site.heat.own_text
    if AS_OUTPUT in site.traits and site.heat.cost is not Cost.ELEMENT:
        return False
    return any(_of_the_data(loop.node, site) for loop in site.loops if loop.node is not None)


def _of_the_data(loop: ast.AST, site: JudgedSite) -> bool:
    """True if a loop goes over steps, batches or rows of data, and not over an object's entries.

    The list that a comprehension makes is a result, so a comprehension counts only if it goes over
    a tensor's elements.
    """
    if takes_step(loop) or site.heat.own_text:
        return True
    head = head_of(loop)
    if head is None:
        return isinstance(loop, ast.While)
    return isinstance(loop, (ast.For, ast.AsyncFor)) and not _kept_entries(head.iter)


def _only_given(site: JudgedSite) -> bool:
    """True if nothing but the tensors that it is given shows that the function may run often."""
    return site.heat.level is Level.HOT


def _copied_in_steps(site: JudgedSite) -> bool:
    """True if a step copies data to the host that it could process on the device.

    A copy that becomes an array does not count, because it is made for code that needs an array: a
    solver, a viewer, a store. An array that the step returns under a name shows no such code. An
    array of one number is read like any other number. A function called in a loop is not known to
    run in a step.
    """
    if AS_ARRAY in site.traits:
        return AS_RESULT in site.traits and site.heat.around is Level.STEP
    return site.operation == "tolist" or site.heat.around is Level.STEP


# The trait of a read of one number in a function that is declared to return nothing but named
# numbers: its callers ask for them.
AS_DECLARED = "as-declared"
# The trait of a copy that becomes an array of more than one number.
AS_ARRAY = "as-array"
# The traits of a copy that becomes such an array: a step returns it in a dict, or it is
# an output of a loop in a function without gradients.
AS_RESULT, AS_OUTPUT = "as-result", "as-output"


def returned_by_name(nodes: Nodes) -> frozenset[int]:
    """Return the expressions, by identity, that lead to values of a dict which is returned."""
    returned = [one.value for one in nodes.of(ast.Return)]
    dicts = [value for value in returned if isinstance(value, ast.Dict)]
    named = {value.id for value in returned if isinstance(value, ast.Name)}
    dicts += [value for value in _assigned(nodes, named) if isinstance(value, ast.Dict)]
    values = [value for one in dicts for value in one.values]
    named = {one.id for one in map(_taken_from, values) if isinstance(one, ast.Name)}
    found: set[int] = set()
    for one in (*values, *_assigned(nodes, named)):
        _note_way(one, found)
    return frozenset(found)


def _assigned(nodes: Nodes, names: set[str]) -> list[ast.expr]:
    """Return the expressions that statements assign to some names."""
    return [
        assign.value
        for assign in nodes.of(ast.Assign)
        if any(isinstance(target, ast.Name) and target.id in names for target in assign.targets)
    ]


def _taken_from(value: ast.expr) -> ast.expr:
    """Return ``x`` for ``x[1:]``."""
    while isinstance(value, ast.Subscript):
        value = value.value
    return value


def made_arrays(nodes: Nodes, qualify: Callable[[ast.expr], str]) -> frozenset[int]:
    """Return the calls that lead to an array, by identity: ``x.cpu().float().numpy()``."""
    found: set[int] = set()
    for node in nodes.of(ast.Call):
        match node:
            case ast.Call(func=ast.Attribute(attr="numpy")):
                _note_way(node, found)
            case ast.Call(func=ast.Attribute() as func, args=[made, *_]):
                if qualify(func).startswith("numpy."):
                    found.add(id(node))
                    _note_way(made, found)
    return frozenset(found)


def made_lists(nodes: Nodes) -> frozenset[int]:
    """Return the identities of the expressions that ``.tolist()`` is called on, and of their parts.

    The host has to know the length of a list anyway.
    """
    found: set[int] = set()
    for call in nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=made, attr="tolist")):
                _note_way(made, found)
    return frozenset(found)


def _note_way(node: ast.AST, found: set[int]) -> None:
    """Add to ``found`` an expression and the expressions that it takes its value from."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        found.add(id(node))
        node = node.func if isinstance(node, ast.Call) else node.value


def _kept_entries(iterated: ast.expr) -> bool:
    """True for a loop over an object's entries: ``state.items()``, ``model.named_parameters()``."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and not call.args
        and call.func.attr in ENTRIES
        for call in ast.walk(iterated)
    )
