"""Sites in branches that no value takes which the project gives an option, an argument or a field.

The values are followed to where they are written, so only sites that would be told are asked for.
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.interpreter.events.option_tests import Asker, is_never_taken
from flake8_torchperf.interpreter.inference.parameters import literal_default
from flake8_torchperf.judgement.heat import Heat, Level
from flake8_torchperf.judgement.worth.features import OFF_BY_DEFAULT
from flake8_torchperf.program.origins.comparisons import asked_by, may_be, parts, passes_none
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.traversal import PLAIN
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.judged_site import Judged
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.judgement.review.package_heats import PackageHeats
    from flake8_torchperf.program.origins.comparisons import Asked
    from flake8_torchperf.program.runs import Run
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

# Tests with the outcome that leads on.
_Tests: TypeAlias = "tuple[tuple[ast.expr, bool], ...]"
# The most tests that are looked at for one site, nearest first: nobody reads deeper code.
MAX_TESTS = 16
# Decorators of methods that run without an object of the class.
OF_NO_OBJECT = frozenset(("staticmethod", "classmethod"))
# The most functions and classes leading to one function that are looked at; it counts as run if
# there are more.
MAX_LEADING = 60
# Statements that end a block, so that those after a test run only where it fails.
_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)


class Switches:
    """Decides which branches of a function no value leads to."""

    def __init__(self, analysis: Analysis, callers: PackageCallers, package: PackageHeats) -> None:
        self._analysis = analysis
        self._callers = callers
        self._package = package
        self._off: set[FunctionInfo] = set()
        self._taken: set[FunctionInfo | ClassInfo] = set()
        self._tests: dict[FunctionInfo, dict[int, _Tests]] = {}

    def reviewed(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites, those cold that stand in a branch which is never taken.

        A branch takes no arguments of calls in set-up code.
        """
        if Cause.SWITCHED_OFF in self._analysis.ignored:
            return result
        warm = [site for site in result.sites if site.heat.level is not Level.COLD]
        if not warm:
            return result

        def counts(run: Run) -> bool:
            return not self._package.is_set_up(self._callers.site_at(run))

        whole = self._is_never_run(info)
        above = self._tests_in(info)
        off = {
            id(site)
            for site in warm
            if whole
            # A loop over elements is told wherever it runs, so set-up code counts for it.
            or self._pass_none(
                above.get(id(site.node), ()),
                info.module,
                info,
                None if site.heat.own_text else counts,
            )
        }
        by_default = {
            id(site.node)
            for site in warm
            if any(_fails_by_default(test, info) for test in above.get(id(site.node), ()))
        }
        cold = Heat(Level.COLD, Cause.SWITCHED_OFF, "", loops=False)
        return result.having(
            one.heated(cold)
            if id(one) in off
            else one.showing((OFF_BY_DEFAULT,))
            if id(one.node) in by_default
            else one
            for one in result.sites
        )

    def _is_never_run(self, info: FunctionInfo) -> bool:
        """True if all that leads to a function stands in branches that are never taken."""
        if (
            info not in self._off
            and info not in self._taken
            and _Above(self, self._taken).is_off(info)
        ):
            self._off.add(info)
        return info in self._off

    def places(self, info: FunctionInfo) -> list[Run] | None:
        """Return the places that run a function; None if there may be others.

        A place that takes another entry of the dict that holds the function doesn't run it.
        """
        program = self._callers.program
        runs = program.all_places(info)
        return [run for run in runs if not program.takes_another(run, info)] if runs else None

    def makings(self, owner: ClassInfo) -> list[Run]:
        """Return the places that make objects of a class; none if there may be others."""
        return self._callers.program.all_makings(owner)

    def caller(self, run: Run) -> FunctionInfo | None:
        """Return the function around a place; None at a module level."""
        return self._callers.site_at(run).caller

    def stands_off(self, run: Run) -> bool:
        """True if a place stands in a branch that is never taken, at a module level too."""
        info = self.caller(run)
        if info is None:
            tests, module = self._callers.site_at(run).tests, self._callers.module_of(run)
            asker = Asker(module, None, None)
        else:
            above = self._tests_in(info)
            found = (above.get(id(node), ()) for node in self._callers.nodes_at(run))
            tests, module = max(found, key=len, default=()), info.module
            asker = Asker(module, info.node, info.owner)
        if is_never_taken(tests, asker, self._analysis):
            return True
        return self._pass_none(tests, module, info, None)

    def _tests_in(self, info: FunctionInfo) -> dict[int, _Tests]:
        """Return the tests on the way to each node of a function, those that leave it included."""
        if info not in self._tests:
            self._tests[info] = _tests_above(info.node)
        return self._tests[info]

    def _pass_none(
        self,
        above: Iterable[tuple[ast.expr, bool]],
        module: ModuleMap,
        info: FunctionInfo | None,
        counts: Callable[[Run], bool] | None,
    ) -> bool:
        """True if no value of an expression passes all tests of it on the way to a place.

        ``info`` is the function around the place; None at a module level.
        """
        asked: dict[str, tuple[Asked, list[tuple[ast.expr, bool]]]] = {}
        for test, holds in chain.from_iterable(parts(*one) for one in above):
            about = asked_by(test)
            if about is not None:
                asked.setdefault(ast.unparse(about), (about, []))[1].append((test, holds))
        for about, tests in asked.values():
            values = self._callers.program.values_of(about, module, counts)
            # Between two tests, the value may have changed.
            is_kept = info is not None and _is_kept(about, info)
            apart = [tests] if is_kept else [[one] for one in tests]
            if values and any(passes_none(values, one) for one in apart):
                return True
        return False


class _Above:
    """A look at all that leads to a function: what runs it, and what makes objects of its class.

    A function that runs itself is not run by that. The functions that something may run, and the
    classes of which it may make objects, are added to ``taken``.
    """

    def __init__(self, switches: Switches, taken: set[FunctionInfo | ClassInfo]) -> None:
        self._switches = switches
        self._open: set[FunctionInfo | ClassInfo] = set()
        self._off: set[FunctionInfo | ClassInfo] = set()
        self._met = 0
        self._taken = taken

    def is_off(self, info: FunctionInfo) -> bool:
        """True if branches that are never taken hold all that leads to a function."""
        return self._once(info, lambda: self._is_never_run(info))

    def _is_never_run(self, info: FunctionInfo) -> bool:
        owner = info.owner if OF_NO_OBJECT.isdisjoint(info.decorators) else None
        if owner is not None and self._once(
            owner, lambda: self._all_off(self._switches.makings(owner))
        ):
            return True
        places = self._switches.places(info)
        return places == [] or (places is not None and self._all_off(places))

    def _all_off(self, runs: list[Run]) -> bool:
        callers = [(run, self._switches.caller(run)) for run in runs]
        apart = [(run, one) for run, one in callers if one is None or one not in self._open]
        return bool(apart) and all(
            self._switches.stands_off(run) or (caller is not None and self.is_off(caller))
            for run, caller in apart
        )

    def _once(self, one: FunctionInfo | ClassInfo, answer: Callable[[], bool]) -> bool:
        if one in self._off:
            return True
        if one in self._taken or one in self._open or self._met >= MAX_LEADING:
            return False
        self._met += 1
        self._open.add(one)
        found = answer()
        self._open.discard(one)
        if found:
            self._off.add(one)
        else:
            self._off.clear()  # what is off only if this is off is not known any more
            self._taken.add(one)
        return found


def _fails_by_default(above: tuple[ast.expr, bool], info: FunctionInfo) -> bool:
    """True if the default of what a test asks about leads elsewhere."""
    for test, holds in parts(*above):
        default = _default_of(asked_by(test), info)
        if default is not None and not may_be(test, default.value, holds):
            return True
    return False


def _default_of(asked: Asked | None, info: FunctionInfo) -> ast.Constant | None:
    """Return the default of a parameter, also of one that a constructor keeps as an attribute."""
    match asked:
        case ast.Name(id=name):
            return literal_default(name, info.node)
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if info.owner is not None:
            maker = info.owner.methods.get("__init__")
            if maker is None:
                return None
            for node in maker.nodes.of(ast.Assign):
                match node:
                    case ast.Assign(
                        targets=[ast.Attribute(value=ast.Name(id="self"), attr=kept)],
                        value=ast.Name(id=given),
                    ) if kept == name:
                        return literal_default(given, maker.node)
    return None


def _is_kept(asked: Asked, info: FunctionInfo) -> bool:
    """True for a name that a function does not bind anew."""
    return isinstance(asked, ast.Name) and asked.id not in bound_in(info.node)


def _tests_above(function: ast.AST) -> dict[int, _Tests]:
    """Return the nearest tests on the way to the nodes of a function, by the identity of the node.

    Each comes with the outcome that leads on.
    """
    found: dict[int, _Tests] = {}
    waiting: list[tuple[ast.AST, _Tests]] = [(function, ())]
    while waiting:
        node, tests = waiting.pop()
        found[id(node)] = tests
        if type(node) not in PLAIN and node._fields:
            waiting += _children(node, tests[-MAX_TESTS:])
    return found


def _children(node: ast.AST, tests: _Tests) -> Iterator[tuple[ast.AST, _Tests]]:
    """Yield the children of a node, each with the tests on the way to it."""
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            yield test, tests
            yield from _block(body, (*tests, (test, True)))
            yield from _block(orelse, (*tests, (test, False)))
        case ast.While(test=test, body=body, orelse=orelse):
            yield test, tests
            yield from _block(body, (*tests, (test, True)))
            yield from _block(orelse, tests)
        case ast.IfExp(test=test, body=first, orelse=second):
            yield test, tests
            yield first, (*tests, (test, True))
            yield second, (*tests, (test, False))
        case ast.BoolOp(op=operator, values=values):
            for one in values:
                yield one, tests
                tests = (*tests, (one, isinstance(operator, ast.And)))[-MAX_TESTS:]
        case ast.Match(subject=subject, cases=cases):
            yield subject, tests
            for case in cases:
                yield case, (*tests, *_as_test(subject, case, holds=True))
                tests = (*tests, *_as_test(subject, case, holds=False))[-MAX_TESTS:]
        case _:
            for _, value in ast.iter_fields(node):
                if isinstance(value, list):
                    yield from _block(value, tests)
                elif isinstance(value, ast.AST):
                    yield value, tests


def _block(nodes: list[Any], tests: _Tests) -> Iterator[tuple[ast.AST, _Tests]]:
    """Yield the nodes of a list; statements behind a test that leaves the block run if it fails."""
    for one in nodes:
        if isinstance(one, ast.AST):
            yield one, tests
        if isinstance(one, ast.If) and not one.orelse and isinstance(one.body[-1], _LEAVING):
            tests = (*tests, (one.test, False))[-MAX_TESTS:]


def _as_test(
    subject: ast.expr, case: ast.match_case, *, holds: bool
) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the comparison that a case with literals makes, with an outcome."""
    if case.guard is not None and not holds:
        return  # the guard may fail
    patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
    values: list[ast.expr] = []
    for one in patterns:
        match one:
            case ast.MatchValue(value=ast.Constant() as value):
                values.append(value)
            case ast.MatchSingleton(value=single):
                values.append(ast.Constant(single))
            case _:
                return
    yield ast.Compare(subject, [ast.In()], [ast.Tuple(values, ast.Load())]), holds
