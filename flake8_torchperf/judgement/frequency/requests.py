"""Functions that a server calls for each request, in programs that don't train."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import serves
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.judgement.frequency.protocols import protocols
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.protocols import Protocol
    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo

# The rate of code that answers requests, each of which is a step.
PER_REQUEST = Cost.REQUEST.value
# The library whose calls are given functions that answer requests, and the keyword for these.
GIVEN_BY, FUNCTION_SLOT = "gradio", "fn"


def request_heat(info: FunctionInfo) -> Heat:
    """Return the heat of a function that answers requests: each is a step of its program."""
    return Heat(Level.STEP, Cause.STEP_ROOT, info.name, around=Level.STEP, rate=PER_REQUEST)


def rate_at(site: CallSite, above: str) -> str:
    """Return the rate of a call in a step: "per request", or "" for any other.

    ``above`` is the rate of its caller.
    """
    if site.loops:
        return PER_REQUEST if serves(site.loops[-1]) else ""
    return above if above == PER_REQUEST else ""


class Requests:
    """Tells which functions answer requests."""

    def __init__(self, analysis: Analysis, program: Program) -> None:
        self._analysis = analysis
        self._program = program

    def are_answered_by(self, info: FunctionInfo) -> bool:
        """True if a server calls a function for each request, in a program that doesn't train."""
        if not (self._is_route(info) or self._is_handler(info) or self._is_given(info)):
            return False
        return not self._program.is_in_training_program(info.module)

    def _is_route(self, info: FunctionInfo) -> bool:
        """True if an object from elsewhere registers a function for a path: ``@app.post("/x")``."""
        verbs = names_of("route-decorators")
        if not any(_called(one) in verbs for one in info.tree.decorator_list):
            return False
        return any(
            one.method in verbs and one.text.startswith("/")
            for one in self._program.registrations(info)
        )

    def _is_handler(self, info: FunctionInfo) -> bool:
        """True for a method that a server calls, by the base from elsewhere of its class."""
        if info.owner is None or info.name.startswith("_"):
            return False
        rows = [one for one in protocols() if _names(one, info)]
        return bool(rows) and any(self._follows(info.owner, one) for one in rows)

    def _follows(self, owner: ClassInfo, protocol: Protocol) -> bool:
        """True if a class has one of a protocol's bases, from elsewhere or generated code."""
        for base in lineage(owner, self._analysis)[1:]:
            name = base if isinstance(base, str) else f"{base.module.name}.{base.name}"
            if isinstance(base, str) or protocol.takes:
                last = name.split(".")[-2:]
                if any(fnmatchcase(".".join(last), f"*{one}") for one in protocol.bases):
                    return True
        return False

    @cached_property
    def _giving(self) -> tuple[str, ...]:
        """The modules that may give functions to a library which shows a page."""
        return self._analysis.project.all_modules_that_say(GIVEN_BY) or ()

    def _is_given(self, info: FunctionInfo) -> bool:
        """True for a function that a library which shows a page is given, to answer its events."""
        if info.owner is not None:
            return False
        paths = self._giving
        calls = self._program.given(info, paths, FUNCTION_SLOT) if paths else ()
        events = names_of("request-events")
        return any(
            one.startswith(f"{GIVEN_BY}.") and one.rpartition(".")[2] in events for one in calls
        )


def _names(protocol: Protocol, info: FunctionInfo) -> bool:
    """True if a protocol says of a method of that name that it answers requests."""
    if protocol.takes and len(named_parameters(info.tree.args)) != protocol.takes + 1:
        return False
    return any(fnmatchcase(info.name, one) for one in protocol.requests)


def _called(decorator: ast.expr) -> str:
    """Return the method that a decorator calls; "" if it is no call of one."""
    match decorator:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""
