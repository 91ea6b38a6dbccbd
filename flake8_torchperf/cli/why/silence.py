"""Why nothing is found in a line, in plain values."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.cli.why.chain import Chain, ExpressionPlace
from flake8_torchperf.cli.why.trials import Trials, in_line
from flake8_torchperf.findings.chosen import Chosen
from flake8_torchperf.idioms.allowed_regions import allowed_region
from flake8_torchperf.idioms.module_roles import is_kernel
from flake8_torchperf.interpreter.engine.analysis import MAX_EXPRESSION_DEPTH
from flake8_torchperf.options import Options
from flake8_torchperf.project.function_facts import MAX_SUMMARY_LINES
from flake8_torchperf.values.host_data import PINNED
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Compared, Function, Tensor, UnknownValue, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.linter import LineValues
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.values import Value

NO_TORCH = "the file says nothing of torch, and imports no module of its project that does"
EXCLUDED = "the settings exclude the file"
NO_WAIT = "the values are known, and nothing that the line itself does with them waits for a device"
UNREACHED = "the analysis finds no way through the function that leads to the line"
# Sites that find a way of looping; the body of the loop is told with it.
LOOPING = (SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS)
# The kinds of parts that the blocks of a statement hold.
_PARTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
COPYING_METHODS = ("to", "cuda")


@dataclass(frozen=True)
class Silence:
    """A reason why nothing is found in a line.

    ``kind`` is "no-torch", "settings", "allowed", "elsewhere", "limit", "copy", "unknown",
    "nothing", "unreached" or "known".
    """

    kind: str
    text: str


def silences(trials: Trials, line: int, known: LineValues) -> tuple[Silence, ...]:
    """Return why nothing is found in a line, the reason that explains most first."""
    found = [*_settings(trials, line), *_allowed(line, known, trials.options)]
    if found:
        return tuple(found)
    found += _elsewhere(trials, line, known)
    found += _limits(line, known)
    if found:
        return tuple(found)
    found += _copies(known)
    found += _unknown(known)
    if found:
        return tuple(found)
    return (_plain(line, known),)


def _allowed(line: int, known: LineValues, options: Options) -> Iterator[Silence]:
    region = allowed_region(line, known.module, options.allow_comments)
    if region is not None:
        why = f": {region.reason}" if region.reason else ""
        yield Silence("allowed", f"`{region.name}` allows waits here{why}")


def _settings(trials: Trials, line: int) -> Iterator[Silence]:
    if trials.options.chosen.leaves_out(trials.path):
        yield Silence("settings", EXCLUDED)
        return
    every = trials.everything(chosen=Chosen(), logging=Options().logging)
    codes = sorted({one.code for one in in_line(every, line)})
    if codes:
        yield Silence("settings", f"the settings leave out {', '.join(codes)}, which stands here")


def _elsewhere(trials: Trials, line: int, known: LineValues) -> Iterator[Silence]:
    """Yield what other lines say of this one: its loop, the loop around it, what it calls."""
    every = trials.everything()
    statement = _statement(known.module.tree, line)
    if statement is not None and statement.lineno < line and _own_lines(statement, line):
        yield Silence("elsewhere", f"the statement begins in line {statement.lineno}")
    inside = [one for one in every if any(loop.line == line for loop in one.site.loops)]
    if inside:
        yield Silence("elsewhere", f"the line is the loop of {_named(inside)}")
    around = [one for one in every if _loops_around(one, line, known.module.tree)]
    if around:
        yield Silence("elsewhere", f"the loop around the line is told as a whole: {_named(around)}")
    for function in known.called:
        there = _in_function(function, trials, every)
        if there:
            where = _named(there, "" if function.module is known.module else _path(function))
            yield Silence("elsewhere", f"the line calls `{function.name}`, which has {where}")


def _named(found: list[Finding], path: str = "") -> str:
    """Return "TPF101 in line 5, TPF301 in line 7" for findings."""
    where = f"{path}:" if path else "line "
    return ", ".join(dict.fromkeys(f"{one.code} in {where}{one.line}" for one in found))


def _loops_around(finding: Finding, line: int, tree: ast.Module) -> bool:
    """True if a finding is about the loop whose body holds the line."""
    if finding.site.kind not in LOOPING or finding.line >= line:
        return False
    return any(
        isinstance(node, (ast.For, ast.AsyncFor))
        and node.iter.lineno <= finding.line <= (node.iter.end_lineno or 0)
        and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
        for node in ast.walk(tree)
    )


def _in_function(function: FunctionInfo, trials: Trials, every: list[Finding]) -> list[Finding]:
    """Return the findings in a function, whose module is linted if it is another."""
    node, path = function.node, _path(function)
    if path and os.path.realpath(path) != os.path.realpath(trials.path):
        text = "".join(function.module.lines)
        every = Trials(text, path, trials.options).everything()
    return [one for one in every if node.lineno <= one.line <= (node.end_lineno or 0)]


def _path(function: FunctionInfo) -> str:
    return "" if function.module.path is None else os.path.relpath(function.module.path)


def _limits(line: int, known: LineValues) -> Iterator[Silence]:
    if known.is_spent:
        yield Silence("limit", "the function takes more steps to analyse than the analysis makes")
    statement = _statement(known.module.tree, line)
    if statement is not None and _own_lines(statement, line) and _depth(statement) is None:
        yield Silence(
            "limit",
            f"the line nests more than {MAX_EXPRESSION_DEPTH} expressions, "
            "and the innermost are not analysed",
        )


def _depth(statement: ast.stmt) -> int | None:
    """Return how deep the expressions of a statement are nested; None if too deep to analyse."""
    level: list[ast.AST] = [*_expressions(statement)]
    for depth in range(MAX_EXPRESSION_DEPTH + 1):
        if not level:
            return depth
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None


def _copies(known: LineValues) -> Iterator[Silence]:
    """Yield what is known of copies to a device that do not wait."""
    values = {id(node): value for node, value in known.values}
    for node, _ in known.values:
        match node:
            case ast.Call(func=ast.Attribute(value=copied, attr=method)):
                tensor = tensor_of(values.get(id(copied), UNKNOWN_VALUE))
                if method not in COPYING_METHODS or tensor is None or not _is_free(node):
                    continue
                text = f"`{ast.unparse(node)}` does not wait if the memory of the data is pinned"
                if tensor.memory == PINNED:
                    text = f"`{ast.unparse(node)}` copies from pinned memory, without waiting"
                elif tensor.device == "host":
                    text = f"{text}, of which nothing is known here"
                yield Silence("copy", text)


UNKNOWN_VALUE = UnknownValue()


def _is_free(call: ast.Call) -> bool:
    """True for a call with ``non_blocking=True``."""
    return any(
        one.arg == "non_blocking" and isinstance(one.value, ast.Constant) and one.value.value
        for one in call.keywords
    )


def _unknown(known: LineValues) -> Iterator[Silence]:
    """Yield the innermost expressions whose value is unknown, and why."""
    values = {id(node): value for node, value in known.values}
    told: dict[str, None] = {}
    for node, value in known.values:
        if not _is_unknown(value):
            continue
        if any(_is_unknown(values.get(id(part))) for part in ast.walk(node) if part is not node):
            continue
        told.setdefault(
            f"`{_text(node)}` is unknown: {_why(node, values, known)}{_lost(node, known)}"
        )
    yield from (Silence("unknown", text) for text in told)


def _lost(node: ast.expr, known: LineValues) -> str:
    """Return where the type of an unknown value is lost, as the end of a sentence."""
    chain = Chain(known.analysis, known.program)
    found = chain.break_of(node, ExpressionPlace(known.module, known.info))
    if found is None:
        return ""
    return f"; {found.why if found.node is node else found.describe(known.module)}"


def _is_unknown(value: Value | None) -> bool:
    return isinstance(value, (UnknownValue, Compared))


def _why(node: ast.expr, values: dict[int, Value], known: LineValues) -> str:
    match node:
        case ast.Name(id=name) if known.info is not None and name in _parameters(known.info.node):
            return "no annotation, default, use or call of the parameter says what it is"
        case ast.Name(id=name):
            given = _given_in(name, node, known)
            if given:
                return f"see line {given}, which gives it its value"
            return "nothing that is read says what the name stands for"
        case ast.Call(func=func):
            called = values.get(id(func))
            if isinstance(called, Function) and _length(called) > MAX_SUMMARY_LINES:
                return (
                    f"the function has {_length(called)} lines, and calls of functions of more "
                    f"than {MAX_SUMMARY_LINES} are not followed"
                )
            return "nothing shows what the call returns"
        case ast.Attribute(attr=name):
            return f"nothing shows what `.{name}` holds there"
        case ast.Subscript():
            return "nothing shows what the items are"
    return "nothing shows what the expression gives"


def _given_in(name: str, node: ast.expr, known: LineValues) -> int:
    """Return the last line before a name's own that gives it a value; 0 if none does."""
    root = known.module.tree if known.info is None else known.info.node
    return max(
        (
            one.lineno
            for one in ast.walk(root)
            if isinstance(one, ast.Name)
            and isinstance(one.ctx, ast.Store)
            and one.id == name
            and one.lineno < node.lineno
        ),
        default=0,
    )


def _length(function: Function) -> int:
    node = function.info.node
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in every if one is not None}


def _plain(line: int, known: LineValues) -> Silence:
    """Return the reason for a line of which all is known, or in which nothing is computed."""
    if known.values:
        tensors = [tensor_of(value) for _, value in known.values]
        on_host = [one.device == "host" for one in tensors if isinstance(one, Tensor)]
        where = "; its tensors lie on the host" if on_host and all(on_host) else ""
        return Silence("known", NO_WAIT + where)
    statement = _statement(known.module.tree, line)
    if statement is None or not _own_lines(statement, line) or not _expressions(statement):
        return Silence("nothing", "nothing is computed in the line")
    if known.info is not None and is_kernel(known.info):
        return Silence("unreached", "the function is a kernel, which is compiled for the device")
    return Silence("unreached", UNREACHED)


def _statement(tree: ast.Module, line: int) -> ast.stmt | None:
    """Return the innermost statement whose lines hold this one."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            found = node  # outer statements are walked first
    return found


def _own_lines(statement: ast.stmt, line: int) -> bool:
    """True if a line belongs to the statement itself: a simple one, or the head of a block."""
    if not isinstance(getattr(statement, "body", None), list):
        return True
    head = [one for one in ast.iter_child_nodes(statement) if not isinstance(one, _PARTS)]
    ends = [getattr(node, "end_lineno", None) or 0 for one in head for node in ast.walk(one)]
    return line <= max([statement.lineno, *ends])


def _expressions(statement: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a statement that are evaluated where it stands."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return []
    found = [one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.expr)]
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return [] if is_text else found


def _text(node: ast.expr) -> str:
    return " ".join(ast.unparse(node).split())
