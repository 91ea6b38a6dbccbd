"""Calls of helpers that copy to the host because the call names it: ``todevice(x, "cpu")``.

The helper itself may move its argument anywhere, so the copy is recorded at the call.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls import summaries
from flake8_torchperf.interpreter.events.recording import emit_read
from flake8_torchperf.interpreter.events.waiting_wrappers import NAMED_HOST
from flake8_torchperf.interpreter.inference.call_literals import settled_by
from flake8_torchperf.project.function_facts import IS_OF_HELPER_SIZE
from flake8_torchperf.syntax.names import given_to
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.devices import is_host_name
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Device, Scalar, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context, Site
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.values import Function


def note_copies(function: Function, arguments: Arguments, ctx: Context) -> None:
    """Record the first copy that a helper makes to the host that a call names."""
    if ctx.compiled:
        return
    named = _given_the_host(function, arguments)
    if not named:
        return
    for site in _sites_of(function, arguments, ctx):
        copies = site.kind is SiteKind.TRANSFER and "to-host" in site.traits
        if copies and site.operand is not None and _names(site.node, named):
            traits = site.traits & {"to-host", "non-blocking"} | {NAMED_HOST}
            given = next(iter(arguments.all())).node
            emit_read(
                ctx,
                SiteKind.TRANSFER,
                site.operation,
                arguments.node,
                site.operand,
                operand_node=given,
                traits=traits,
            )
            return


def _given_the_host(function: Function, arguments: Arguments) -> frozenset[str]:
    """Return the parameters for which a call names the host."""
    info = function.info
    spec = info.tree.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    if summaries.takes_bound(info, function.bound):
        names = names[1:]
    given = arguments.by_parameter(names)
    return frozenset(name for name, argument in given.items() if _is_host(argument.value))


def _is_host(value: Value) -> bool:
    match value:
        case Scalar(kind="str", value=text):
            return is_host_name(text)
        case Device(kind="host", stated=True):
            return True
    return False


def _names(call: ast.AST, names: frozenset[str]) -> bool:
    """True if a call is given one of these names."""
    if not isinstance(call, ast.Call):
        return False
    given = given_to(call)
    return any(isinstance(node, ast.Name) and node.id in names for node in walk(given))


def _sites_of(function: Function, arguments: Arguments, ctx: Context) -> list[Site]:
    """Return the sites in the body of a short function as one call runs it."""
    info, bound = function.info, function.bound
    sites: list[Site] = []
    far = summaries.out_of_reach(info, ctx) and not summaries.over_elements(info, arguments, ctx)
    if not far and IS_OF_HELPER_SIZE.of(info):
        env = summaries.entry(info, bound, arguments, ctx)
        skip = summaries.takes_bound(info, bound)
        settled = settled_by(info, arguments, env, skip=skip)
        summaries.interpret(info, info.node.body, env, None, ctx.but(settled=settled), sites)
    return sites
