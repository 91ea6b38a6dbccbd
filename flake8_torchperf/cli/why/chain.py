"""The place where the type of a value is lost, on the way backwards from the value."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.driver.watched_values import values_in_line
from flake8_torchperf.interpreter.inference.from_callees import Caller, callees_of
from flake8_torchperf.interpreter.inference.parameters import parameters_of
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.values.named_types import builtin_name
from flake8_torchperf.values.values import NDArray, NoneValue, Scalar, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.values.values import Value

# The most expressions on the way to the place where a value's type is lost.
MAX_STEPS = 20
# Values of which no part can be unknown.
KNOWN_WHOLE = (Tensor, Scalar, NDArray, NoneValue)
# Calls whose result only their arguments decide, when the program runs.
AT_RUN_TIME = frozenset(("eval", "getattr", "exec", "__import__", "import_module", "globals"))
# Longer expressions are written with dots in place of their arguments.
LONGEST = 40


@dataclass(frozen=True)
class ExpressionPlace:
    """Where an expression stands: its module, and the function around it, if any."""

    module: ModuleMap
    info: FunctionInfo | None


@dataclass(frozen=True)
class Break:
    """The first expression, backwards from a value, of which nothing is known, and why."""

    node: ast.expr
    place: ExpressionPlace
    why: str

    def describe(self, here: ModuleMap) -> str:
        """Return the break in words, as read in a line of the module ``here``."""
        line = self.node.lineno
        path = "" if self.place.module.path is None else os.path.relpath(self.place.module.path)
        where = f"line {line}" if self.place.module is here or not path else f"{path}:{line}"
        return f"known until `{short(self.node)}` in {where}, {self.why}"


def short(node: ast.expr) -> str:
    """Return an expression as text, a long call without its arguments."""
    text = " ".join(ast.unparse(node).split())
    if isinstance(node, ast.Call) and len(text) > LONGEST:
        return f"{short(node.func)}(...)"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


class Chain:
    """Follows values backwards: assignments, unpackings, calls of the project, and its callers."""

    def __init__(self, analysis: Analysis, program: Program) -> None:
        self._analysis = analysis
        self._program = program
        self._seen: set[int] = set()
        # By module and line: the values of the expressions there, by identity.
        self._values: dict[tuple[str, int], dict[int, Value]] = {}

    def break_of(self, node: ast.expr, place: ExpressionPlace) -> Break | None:
        """Return where the type of a value is lost; None if the way leads in a circle."""
        if id(node) in self._seen or len(self._seen) > MAX_STEPS:
            return None
        self._seen.add(id(node))
        if self._is_known(node, place):
            return None
        match node:
            case ast.Name():
                return self._of_name(node, place)
            case ast.Call():
                return self._of_call(node, place)
            case ast.Attribute():
                return self._of_attribute(node, place)
            case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Await(value=inner):
                return self.break_of(inner, place)
            case ast.IfExp(body=body, orelse=other):
                return self._first([body, other], place)
            case ast.BoolOp(values=values):
                return self._first(values, place)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                return self._first(parts, place)
            case ast.BinOp(left=left, right=right):
                return self._first([left, right], place)
        return Break(node, place, "whose type nothing shows")

    def _is_known(self, node: ast.expr, place: ExpressionPlace) -> bool:
        """True if the function in which an expression stands shows its type by itself."""
        if isinstance(node, ast.Constant):
            return True
        key = place.module.name, node.lineno
        if key not in self._values:
            _, watched = values_in_line(place.module, node.lineno, self._analysis)
            self._values[key] = {id(one): value for one, value in watched.values()}
        return isinstance(self._values[key].get(id(node)), KNOWN_WHOLE)

    def _first(self, nodes: list[ast.expr], place: ExpressionPlace) -> Break | None:
        found = (self.break_of(one, place) for one in nodes)
        return next((one for one in found if one is not None), None)

    def _of_name(self, node: ast.Name, place: ExpressionPlace) -> Break | None:
        given = _given(node, place)
        if given is not None:
            return self.break_of(given, place)
        if _is_parameter(node.id, place):
            return self._of_parameter(node, place)
        assigned = place.module.constants.get(node.id, [])
        if assigned:
            return self.break_of(assigned[-1], ExpressionPlace(place.module, None))
        return Break(node, place, self._of_other_code(node, place))

    def _of_other_code(self, node: ast.expr, place: ExpressionPlace) -> str:
        """Return why nothing is known of a name that the project does not assign."""
        name = ast.unparse(node)
        if name.partition(".")[0] in place.module.imports:
            dotted = place.module.qualify(node)
            return f"which is not read: `{dotted}` is not in the project"
        return "which nothing that is read gives a value"

    def _of_parameter(self, node: ast.Name, place: ExpressionPlace) -> Break | None:
        """Follow a parameter to what the callers of its function pass."""
        info = place.info
        if info is None:
            return None
        calls = [*self._calls(info)]
        called = info.name
        if called == "__init__" and info.owner is not None:
            called = info.owner.name
        if not calls:
            elsewhere = self._program.runs_of(info).open
            if elsewhere:
                return Break(
                    node, place, f"a parameter: no call of `{called}` is seen: {elsewhere}"
                )
            return Break(node, place, f"a parameter: nothing in the project calls `{called}`")
        for call, caller in calls:
            given = _argument(call, node.id, info)
            if given is None:
                continue
            found = self.break_of(given, caller)
            if found is not None:
                return found
        return Break(node, place, f"a parameter: no call of `{called}` shows what it is")

    def _calls(self, info: FunctionInfo) -> Iterator[tuple[ast.Call, ExpressionPlace]]:
        for run in self._program.runs_of(info).outside_tests:
            module = self._program.module_at(run.path)
            if module is None:
                continue
            inside = [one for one in module.defined if _holds(one.node, run.line)]
            place = ExpressionPlace(module, inside[-1] if inside else None)
            roots: list[ast.AST] = [inside[-1].node] if inside else [module.tree]
            for node in (one for root in roots for one in ast.walk(root)):
                if isinstance(node, ast.Call) and _begins(node, run.line, run.column, info):
                    yield node, place
                    break

    def _of_call(self, call: ast.Call, place: ExpressionPlace) -> Break | None:
        function = call.func
        last = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        if last in AT_RUN_TIME:
            return Break(call, place, f"which is decided when the program runs: `{last}`")
        for callee in self._callees(function, place):
            return self._of_results(callee)
        if isinstance(function, ast.Name):
            if builtin_name(function.id) and not _is_bound(function.id, place):
                return self._first(call.args, place)
            if not _is_bound(function.id, place) and function.id not in place.module.constants:
                return Break(call, place, self._of_other_code(function, place))
        elif isinstance(function, ast.Attribute):
            root = dotted_name(function).partition(".")[0]
            if root in place.module.imports and not _is_bound(root, place):
                return Break(call, place, self._of_other_code(function, place))
        holder = function.value if isinstance(function, ast.Attribute) else function
        return Break(call, place, self._of_no_class(holder, place, call))

    def _of_no_class(self, holder: ast.expr, place: ExpressionPlace, call: ast.Call) -> str:
        """Return why the class of an object is not known, which is called or whose method is."""
        origin = self.break_of(holder, place)
        head = "" if holder is call.func else f"a method of `{short(holder)}`, "
        head = f"{head}whose class is not known"
        if origin is None:
            return head
        if isinstance(origin.node, ast.Call) and short(origin.node.func) in AT_RUN_TIME:
            return f"{head}: `{short(origin.node.func)}`"
        if ast.dump(origin.node) == ast.dump(holder):
            return f"{head}: {origin.why}"
        return f"{head}: `{short(origin.node)}`, {origin.why}"

    def _callees(self, function: ast.expr, place: ExpressionPlace) -> list[FunctionInfo]:
        if place.info is None:
            return []
        caller = Caller(place.info.node, place.module, place.info.owner)
        return callees_of(function, caller, self._analysis)

    def _of_results(self, callee: FunctionInfo) -> Break | None:
        """Follow the result of a function of the project: what it returns or yields."""
        if callee.name == "__init__":
            return None
        results = [one.value for one in callee.nodes.of(ast.Return)]
        results += [one.value for one in callee.nodes.of(ast.Yield)]
        values = [one for one in results if one is not None]
        return self._first(values, ExpressionPlace(callee.module, callee))

    def _of_attribute(self, node: ast.Attribute, place: ExpressionPlace) -> Break | None:
        owner = None if place.info is None else place.info.owner
        if owner is None or not isinstance(node.value, ast.Name) or node.value.id != "self":
            found = self.break_of(node.value, place)
            if found is None:
                return Break(node, place, f"of which nothing shows what `.{node.attr}` holds")
            return Break(node, place, self._words(node.value, found))
        for base in lineage(owner, self._analysis):
            for writer in () if isinstance(base, str) else base.written_by.get(node.attr, ()):
                value = _written(node.attr, writer)
                if value is not None:
                    return self.break_of(value, ExpressionPlace(writer.module, writer))
        return Break(node, place, f"an attribute that no method of `{owner.name}` sets")

    def _words(self, holder: ast.expr, found: Break) -> str:
        if ast.dump(found.node) == ast.dump(holder):
            return f"of `{short(holder)}`, {found.why}"
        return f"of `{short(holder)}`, which is `{short(found.node)}`, {found.why}"


def _given(node: ast.Name, place: ExpressionPlace) -> ast.expr | None:
    """Return the last expression above a name that is assigned to it, unpacked or iterated."""
    if place.info is None:
        return None
    found: tuple[int, ast.expr] | None = None
    for one in ast.walk(place.info.node):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        match one:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                pairs = [(target, value)]
            case ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case ast.With(items=items) | ast.AsyncWith(items=items):
                pairs = [(i.optional_vars, i.context_expr) for i in items if i.optional_vars]
        for target, value in pairs:
            line = target.lineno
            before = line < node.lineno and (found is None or line >= found[0])
            if before and any(
                isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(target)
            ):
                found = line, value
    return None if found is None else found[1]


def _written(attribute: str, writer: FunctionInfo) -> ast.expr | None:
    """Return what a method assigns to an attribute of its object, unpacked or not."""
    for one in writer.nodes.of(ast.Assign):
        for target in one.targets:
            named = (n.attr for n in ast.walk(target) if isinstance(n, ast.Attribute))
            if attribute in named:
                return one.value
    return None


def _argument(call: ast.Call, name: str, info: FunctionInfo) -> ast.expr | None:
    """Return what a call passes for a parameter; None if its text does not show it."""
    named = next((one.value for one in call.keywords if one.arg == name), None)
    if named is not None:
        return named
    names = [one.arg for one, _ in parameters_of(info.tree.args)]
    bound = info.owner is not None and "staticmethod" not in info.decorators
    place = names.index(name) - bound if name in names else len(call.args)
    plain = call.args[: place + 1]
    shown = 0 <= place < len(plain) and not any(isinstance(one, ast.Starred) for one in plain)
    return plain[place] if shown else None


def _begins(call: ast.Call, line: int, column: int, info: FunctionInfo) -> bool:
    """True for the call at a place; that of a method is the one that names the method."""
    if (call.lineno, call.col_offset) != (line, column):
        return False
    return not isinstance(call.func, ast.Attribute) or call.func.attr in (info.name, "__init__")


def _holds(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return bool(first <= line <= last)


def _is_parameter(name: str, place: ExpressionPlace) -> bool:
    return place.info is not None and any(
        one.arg == name for one, _ in parameters_of(place.info.tree.args)
    )


def _is_bound(name: str, place: ExpressionPlace) -> bool:
    """True if a function binds a name itself."""
    if _is_parameter(name, place):
        return True
    names = () if place.info is None else place.info.nodes.of(ast.Name)
    return any(one.id == name and isinstance(one.ctx, ast.Store) for one in names)
