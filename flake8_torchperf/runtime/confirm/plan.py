"""Plans what to run: groups the findings of paths by function, with a job for each group.

Lints as flake8 does. Must not import torch: the jobs are plain data that the sandbox carries.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8_torchperf.findings.documentation import evidence_of
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap, read_module
from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.runtime.confirm.specs.from_types import candidates
from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec
from flake8_torchperf.runtime.rule_pages.use_spans import use_spans
from flake8_torchperf.special_files import refuse_special
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from flake8_torchperf.findings.documentation import EvidenceSpec
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.interpreter.engine.analysis import Analysis

# Kinds of sites that flag a way of looping; its cost is that of the loop's body.
LOOP_KINDS = {SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS}
# Errors of Python's parser; the last two for ten thousand signs or attributes in a row.
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# The most digits of a number on the command line: more than any line or size needs.
MOST_DIGITS = 18


class PlanError(Exception):
    """A path, line or file that can't be used; ``str`` is one line: what, where, what to do."""


@dataclass(frozen=True)
class Request:
    """One ``PATH`` or ``PATH:LINE`` of the command line; ``line`` 0 asks for the whole file."""

    path: Path
    line: int = 0


@dataclass(frozen=True)
class ConfirmSettings:
    """The user's choices that decide how functions are run."""

    sizes: tuple[int, ...]
    device: str
    given: Mapping[str, str] = field(default_factory=dict)
    harness: Path | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, eq=False)
class Target:
    """One finding, the evidence that its page declares, and the lines where that must show.

    ``regions`` is empty where it shows in another function or file.
    """

    id: str
    finding: Finding
    evidence: EvidenceSpec | None
    regions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Group:
    """The findings of one function, which are run together."""

    path: Path
    function: str
    first_line: int
    last_line: int
    targets: tuple[Target, ...]
    job: dict[str, Any]


def parse_request(text: str) -> Request:
    """Parse ``PATH``, ``PATH:LINE``, or ``PATH:LINE:COLUMN`` as flake8 prints it.

    The column is ignored: a request is for all findings of the line. Raises PlanError if the file
    or the line does not exist.
    """
    if not text:
        raise PlanError("'' names no file: write . for this folder")
    path = Path(text)
    if path.suffix == ".ipynb":
        raise PlanError(f"{text} is a notebook, whose functions cannot be run one by one")
    if path.exists():
        return Request(path)
    name, colon, number = text.rpartition(":")
    before, _, line = name.rpartition(":")
    if positive(number) and positive(line) and Path(before).is_file():
        return Request(Path(before), positive(line))
    if colon and positive(number) and Path(name).is_file():
        return Request(Path(name), positive(number))
    if colon and Path(name).is_dir():
        raise PlanError(f"{name} is a folder, which has no line {number}: name a file")
    if colon and Path(name).is_file():
        raise PlanError(f"{number!r} is not a line number: write {name}:12")
    raise PlanError(f"there is no file or folder {text}")


def positive(text: str) -> int:
    """Return the positive number that the user wrote in plain digits; 0 for any other text.

    `int` refuses some digits (²), and numbers of thousands of digits.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else 0


def plan(
    requests: Sequence[Request], settings: ConfirmSettings, tell: Callable[[str], object]
) -> list[Group]:
    """Lint the requested paths. Raises PlanError.

    ``tell`` gets a line for each file of a folder that cannot be linted; the others still are.
    """
    named: dict[tuple[Path, int], bool] = {}
    for request in requests:
        for path in _files(request.path):
            named.setdefault((path, request.line), path == request.path)
    groups: list[Group] = []
    for (path, line), itself in named.items():
        try:
            groups += _plan_file(path, line, settings)
        except PlanError as error:
            if itself:
                raise
            tell(str(error))
    _check_given(groups, settings.given)
    return groups


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    found = sorted(p for p in path.rglob("*.py") if not _hidden(p.relative_to(path)))
    if not found:
        raise PlanError(f"there is no Python file in {path}")
    yield from found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _plan_file(path: Path, line: int, settings: ConfirmSettings) -> list[Group]:
    source = _read(path)
    return grouped(path, source, _findings(path, source, line, settings), settings)


def grouped(
    path: Path, source: str, findings: Sequence[Finding], settings: ConfirmSettings
) -> list[Group]:
    """Return the findings in a file's text by function, each with the job that runs it."""
    if not findings:
        return []
    lines = tuple(source.splitlines(keepends=True))
    tree = ast.parse(source)
    module = read_module(tree, lines, path)
    by_function: dict[str, list[Finding]] = {}
    for finding in findings:
        by_function.setdefault(finding.site.function, []).append(finding)
    machine = _machine(module, settings)
    return [_group(path, name, few, module, machine, settings) for name, few in by_function.items()]


def _read(path: Path) -> str:
    try:
        refuse_special(path)
        with tokenize.open(path) as file:
            return file.read()
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} cannot be read: {error}") from error


def _findings(path: Path, source: str, line: int, settings: ConfirmSettings) -> list[Finding]:
    options = settings.options.of_any_worth()
    if line:
        options = replace(options, scope=Level.COLD)
    try:
        found = lint(source, str(path), options)
    except UNPARSABLE as error:
        raise PlanError(unparsable(path, error)) from error
    if not line:
        passed_over = allowed_lines(str(path))
        return [one for one in found if one.line not in passed_over]
    chosen = [one for one in found if one.line <= line <= one.end_line]
    if not chosen:
        where = ", ".join(str(n) for n in sorted({one.line for one in found}))
        others = f"there are findings on lines {where}" if where else "the file has none"
        raise PlanError(f"no finding at {path}:{line}; {others}")
    return chosen


def unparsable(path: Path, error: Exception) -> str:
    """Return one line that says where Python's parser stopped and why.

    ``error`` is one of `UNPARSABLE`.
    """
    if isinstance(error, (RecursionError, MemoryError)):
        return f"{path} cannot be parsed: it is nested too deeply for Python's parser"
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{path}:{error.lineno} cannot be parsed: {error.msg}"
    return f"{path} cannot be parsed: {error}"


def _machine(module: ModuleMap, settings: ConfirmSettings) -> Analysis:
    """Return the interpreter's shared state for one file, as the pipeline sets it up."""
    from flake8_torchperf.findings.catalogue import load_catalogue
    from flake8_torchperf.interpreter.driver.function_analysis import module_constant
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.knowledge.conventions import load_conventions
    from flake8_torchperf.knowledge.table import load
    from flake8_torchperf.project.resolver import Project

    catalogue = load_catalogue(settings.options.rules)
    machine = Analysis(load(), Project(module), module_constant, catalogue.called_functions)
    machine.conventions = load_conventions(settings.options.rules)
    return machine


def _group(
    path: Path,
    name: str,
    findings: list[Finding],
    module: ModuleMap,
    machine: Analysis,
    settings: ConfirmSettings,
) -> Group:
    info = _function(module, name.partition(".<locals>")[0])
    targets = tuple(_target(str(i), one, module.tree) for i, one in enumerate(findings))
    first, last = _span(info, module)
    params, unsure = _candidates(info, machine)
    inner = _nested(info, name) if "<locals>" in name and info is not None else None
    depth = len(module.package.split(".")) if module.package else 0
    resolved = path.resolve()
    given = {k: text for k, text in settings.given.items() if k in params or k == "self"}
    job = {
        "path": str(resolved),
        "module": module.name or path.stem,
        "root": str(resolved.parents[depth] if depth < len(resolved.parents) else resolved.parent),
        "function": name,
        "first_line": first,
        "last_line": last,
        "params": params,
        "unsure": list(unsure),
        "inner": _candidates(inner, machine)[0],
        "given": given,
        "harness": str(settings.harness.resolve()) if settings.harness else "",
        "sizes": list(settings.sizes),
        "device": settings.device,
        "explain": _asks_for("graph_breaks", targets),
        "busy": _asks_for("early_reads", targets),
        "targets": [
            {
                "id": one.id,
                "first": one.finding.line,
                "last": one.finding.end_line,
                "column": one.finding.column,
                "rounds": _rounds(one),
                "end_column": one.finding.end_column,
                "regions": [list(region) for region in one.regions],
            }
            for one in targets
        ],
    }
    return Group(path, name, first, last, targets, job)


def _asks_for(counter: str, targets: Sequence[Target]) -> bool:
    return any(one.evidence is not None and one.evidence.counter == counter for one in targets)


def _target(number: str, finding: Finding, tree: ast.Module) -> Target:
    spec = evidence_of(finding.rule)
    if spec is not None and spec.shows == "use":
        return Target(number, finding, spec, use_spans(finding, tree))
    return Target(number, finding, spec, _regions(finding, tree))


def _function(module: ModuleMap, qualname: str) -> FunctionInfo | None:
    """Return the last definition of that name, which is the one that a caller gets."""
    found = [one for one in module.defined if one.qualname == qualname]
    return found[-1] if found else None


def _nested(outer: FunctionInfo, qualname: str) -> FunctionInfo | None:
    name = qualname.rpartition(".")[2]
    for node in ast.walk(outer.node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return FunctionInfo(name, qualname, node, None, outer.module)
    return None


def _span(info: FunctionInfo | None, module: ModuleMap) -> tuple[int, int]:
    if info is None:
        return 1, max(1, len(module.lines))
    return info.node.lineno, info.node.end_lineno or info.node.lineno


def _candidates(
    info: FunctionInfo | None, machine: Analysis
) -> tuple[dict[str, list[InputSpec]], tuple[str, ...]]:
    return ({}, ()) if info is None else candidates(info, machine)


def _regions(finding: Finding, tree: ast.Module) -> tuple[tuple[int, int], ...]:
    """Return the finding's own lines; for a kind of looping, the loop's."""
    own = ((finding.line, finding.end_line),)
    if finding.site.kind is SiteKind.NUMBER_USE:
        return (_consumer(finding, tree),)
    if finding.site.kind not in LOOP_KINDS:
        return own
    loops: list[tuple[int, int]] = []
    for node in ast.walk(tree):
        match node:
            case ast.For() | ast.AsyncFor():
                iterated: list[ast.expr] = [node.iter]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                iterated = [generator.iter for generator in node.generators]
            case _:
                continue
        if any(_holds(one, finding) for one in iterated):
            loops.append((node.lineno, node.end_lineno or node.lineno))
    return (min(loops, key=lambda span: span[1] - span[0]),) if loops else own


def _rounds(target: Target) -> int:
    """Return how often a call should run the flagged expression to show how its counts grow.

    A loop's iterable is evaluated once; the loop grows with it.
    """
    spec, loops = target.evidence, target.finding.site.kind in LOOP_KINDS
    return 2 if spec is not None and spec.law == "element" and not loops else 1


def _consumer(finding: Finding, tree: ast.Module) -> tuple[int, int]:
    """Return the indexing or call that reads the number, which may begin on an earlier line."""
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Subscript, ast.Call)) and _holds(node, finding)
    ]
    own = (finding.line, finding.end_line)
    return min(spans, key=lambda span: span[1] - span[0]) if spans else own


def _holds(node: ast.expr, finding: Finding) -> bool:
    """True if a node encloses a finding's place.

    Columns of the ast count bytes, which only matters on a line with several loops.
    """
    start = (node.lineno, node.col_offset)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return start <= (finding.line, finding.column) < end


def _check_given(groups: list[Group], given: Mapping[str, str]) -> None:
    known = {name for group in groups for name in group.job["params"]} | {"self"}
    for name in given:
        if groups and name not in known:
            names = ", ".join(sorted({name for group in groups for name in group.job["params"]}))
            problem = f"--inputs: no function with a finding has a parameter {name}"
            raise PlanError(f"{problem}; they have {names or 'none'}")
