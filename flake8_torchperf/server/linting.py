"""Analyse the text of a file: findings or fixed text out.

The results are those of ``torchperf check`` and ``fix`` for the saved file.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import logging
import os
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from flake8 import utils

from flake8_torchperf.cli.check_options import CHECK
from flake8_torchperf.cli.check_run import read_options
from flake8_torchperf.cli.fix.work import FixWork
from flake8_torchperf.cli.fix.work import Linted as LintedFile
from flake8_torchperf.configuration import configuration_files
from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.documentation import read_documentation
from flake8_torchperf.findings.heat_text import duration, row_of
from flake8_torchperf.fixes.engine.lines.line_length import line_length
from flake8_torchperf.fixes.engine.lines.width import wrapped
from flake8_torchperf.fixes.engine.rounds import Choice, fixed
from flake8_torchperf.judgement.rows import BY_CAUSE
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.options import OptionError
from flake8_torchperf.pipeline import LintText, asking_again
from flake8_torchperf.plugin import TorchPerfPlugin, check_files
from flake8_torchperf.project.files import split_lines
from flake8_torchperf.project.texts import text_search
from flake8_torchperf.reserved import INTERNAL_ERROR, STRAY_CONTRACT
from flake8_torchperf.server.counts import counted
from flake8_torchperf.server.messages import (
    Count,
    Counted,
    Explain,
    Failed,
    FirstReply,
    FixAll,
    FixRequest,
    Lint,
    Note,
    Offer,
    Problem,
    Text,
    TextFindings,
)
from flake8_torchperf.server.saved import Saved
from flake8_torchperf.server.settings import SECTION, used
from flake8_torchperf.values.values import tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.findings.rule import Rule
    from flake8_torchperf.judgement.heat import Measured
    from flake8_torchperf.server.messages import Reply, Request

FACE = replace(CHECK, program="torchperf server", local=False)
# Fixes of every safety are planned: each is offered.
CHOICE = Choice(unsafe=True, suggested=None)
# A copy without compiled parts, as an editor's extension holds one, cannot change source text.
CAN_FIX = find_spec("libcst") is not None
# The sections of a rule's page that describe the problem and its cost.
TOLD = ("What it does", "Why it is slow")
LOG = logging.getLogger(__name__)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_configuration(settings: Mapping[str, object]) -> tuple[FixWork | None, FirstReply]:
    """Return the settings for linting in the current folder, and the files that hold them.

    ``settings`` are the editor's, which win. The result is None if the configuration can't be used;
    `FirstReply` then says why.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            _, options = read_options([], "server", _accept, FACE)
    except SystemExit:
        return None, FirstReply(configuration_files(os.getcwd()), False, said.getvalue().strip())
    try:
        ours = used(settings, TorchPerfPlugin.options())
        if settings:
            check_files(ours, f"{SECTION}.")
    except OptionError as error:
        return None, FirstReply(configuration_files(os.getcwd()), False, str(error))
    files = [path for path in (ours.baseline, ours.profile) if path is not None]
    for folder in ours.rules:
        files += [folder, *folder.glob("*.md"), *folder.glob("*.toml")]
    watched = (*configuration_files(os.getcwd()), *map(str, files))
    return FixWork(options, ours, choice=CHOICE), FirstReply(watched, said=said.getvalue().strip())


def _accept(_options: argparse.Namespace) -> None:
    """Accept the options unchanged: no path that they name is linted here."""


class FolderAnalysis:
    """Answers requests about the files of one folder."""

    def __init__(self, work: FixWork) -> None:
        self._work = work
        self._new_code = replace(work, ours=work.ours.for_new_code())
        self._exclude = [*work.options.exclude, *work.options.extend_exclude]
        self._saved = Saved(work.options, work.ours)

    def answer(self, request: Request) -> Reply:
        """Return the reply to a request."""
        match request:
            case Lint():
                if request.moved:
                    text_search.forget()
                found = self._problems(request.path, request.text)
                return TextFindings(
                    found if CAN_FIX else tuple(replace(one, offers=()) for one in found)
                )
            case Count():
                return Counted(tuple(counted(_name(request.path), request.text, self._work.ours)))
            case FixRequest():
                return self._fixed(request)
            case FixAll():
                # As `torchperf fix`: without the wait before it, a wait that was worth little may
                # be worth telling, and the fix of the first would seem to be no gain.
                of_any_worth = self._new_code.ours.of_any_worth()
                work = replace(self._new_code, ours=of_any_worth)
                linted = LintedFile(_name(request.path), work)
                width = line_length(request.path)
                return Text(fixed(request.text, linted.find, Choice(), width=width).text)
            case Explain():
                return _explained(request.code, self._work)

    def _problems(self, path: str, text: str) -> tuple[Problem, ...]:
        """Return the problems in a text, in its order; those of a saved one may be stored."""
        if self._is_excluded(path):
            return ()
        name = _name(path)
        source = LintText(split_lines(text), name, lambda line: None)
        stored = self._saved.recall(name, text, asking_again(source, self._new_code.ours))
        if stored is not None:
            return stored
        linted = LintedFile(name, self._new_code)
        problems = tuple(self._found(text, linted))
        if not linted.problem:
            self._saved.keep(name, text, problems, linted.reads)
        return problems

    def _found(self, text: str, linted: LintedFile) -> Iterator[Problem]:
        found = linted.find(text)
        if linted.mistake:
            place = (0, 0, 0, 0)
            yield Problem(INTERNAL_ERROR, "file-not-analysed", linted.mistake, "", place)
        lines = split_lines(text)
        for line, column, message in linted.stray:
            end = len(lines[line - 1].rstrip()) if line <= len(lines) else column
            place = (line - 1, column, line - 1, end)
            yield Problem(STRAY_CONTRACT, "stray-contract", message, "", place)
        if found and linted.tree is not None:
            around = _Functions(linted.tree)
            for finding in found:
                yield _problem(finding, around)

    def _is_excluded(self, path: str) -> bool:
        """True if a check of the folder would leave this file out."""
        parts = _name(path).split(os.sep)
        names = (os.path.join(*parts[:end]) for end in range(1, len(parts) + 1) if parts[0])
        return any(utils.matches_filename(name, self._exclude, "%s", LOG) for name in names)

    def _fixed(self, request: FixRequest) -> Reply:
        from flake8_torchperf.fixes.engine.apply import apply_edits  # imports libcst

        place = (request.code, request.line + 1, request.column)
        for finding in LintedFile(_name(request.path), self._new_code).find(request.text):
            if (finding.code, finding.line, finding.column) == place:
                edits = [edit for edit in finding.edits if edit.name == request.name]
                applied = apply_edits(request.text, edits)
                if applied.edits:
                    return Text(wrapped(request.text, applied.text, line_length(request.path))[0])
        return Failed(f"{request.code} {request.name}: the fix cannot be made in this text")


def _name(path: str) -> str:
    """Return the name under which a check of the folder lints a file."""
    inside = os.path.relpath(path) if os.path.isabs(path) else path
    return path if inside.startswith(os.pardir) else inside


def _problem(finding: Finding, around: _Functions) -> Problem:
    site = finding.site
    function, head, whole = around.of(getattr(site.node, "lineno", finding.line))
    notes = (*_reason(finding, whole), *_loops(finding), *_calls(finding))
    return Problem(
        finding.code,
        finding.rule.name,
        finding.message,
        site.heat.told_cost.value,
        (finding.line - 1, finding.column, finding.end_line - 1, finding.end_column),
        finding.rule.path.as_uri(),
        function,
        head,
        notes,
        _measured(site.heat.measured),
        tuple(
            Offer(edit.safety, edit.name, _changes(finding.rule, edit.name))
            for edit in finding.edits
        ),
        row_of(site.heat),
        BY_CAUSE[site.heat.hidden_by].sentence,
        finding.rule.severity,
        " ".join(sorted(features(site, finding.code))),
    )


def _reason(finding: Finding, whole: ast.AST) -> Iterator[Note]:
    """Yield the facts that make the value a tensor, the last first, each with its place."""
    operand = finding.site.operand
    tensor = None if operand is None else tensor_of(operand)
    reason = None if tensor is None else tensor.reason
    inside = {id(node) for node in ast.walk(whole)} if reason is not None else set()
    while reason is not None:
        here = reason.node is not None and id(reason.node) in inside
        yield Note(reason.fact, getattr(reason.node, "lineno", 0) - 1 if here else -1)
        reason = reason.because


def _loops(finding: Finding) -> Iterator[Note]:
    for loop in reversed(finding.site.loops):
        over = f" over {loop.over}" if loop.over else ""
        yield Note(f"repeated by the loop{over}", loop.line - 1)


def _calls(finding: Finding) -> Iterator[Note]:
    """Yield the calls that lead here from a loop or a step, the nearest first."""
    for call in finding.site.heat.calls:
        by = f"by `{call.caller}`" if call.caller else "at module level"
        yield Note(f"called {by}", call.line - 1, call.path and os.path.abspath(call.path))


def _measured(told: Measured | None) -> str:
    """Describe what a profile says of the statement."""
    if told is None:
        return ""
    runs = "" if told.runs == 1 else f" in {told.runs} processes"
    waited = f", {told.waits:,} waits"
    if told.seconds is not None:
        waited += f" of {duration(told.seconds)} in all"
    return f"ran {told.times:,} times{runs}{waited}"


def _changes(rule: Rule, name: str) -> str:
    """Return the rule page's description of what a fix that is not safe changes."""
    return next((fix.changes for fix in read_documentation(rule).fixes if fix.name == name), "")


def _explained(code: str, work: FixWork) -> Reply:
    rule = load_catalogue(work.ours.rules).rule(code)
    if rule is None:
        return Text("")
    sections = read_documentation(rule).sections
    return Text("\n\n".join(sections[name] for name in TOLD if name in sections))


class _Functions:
    """The functions of a module, by the lines that they hold."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    def of(self, line: int) -> tuple[str, int, ast.AST]:
        """Return the innermost function's name as in settings, its ``def``, and the outermost."""
        names: list[str] = []
        head, name = -1, ""
        outermost: ast.AST = self._tree
        below = _holder(self._tree, line)
        while below is not None:
            if isinstance(below, _FUNCTIONS):
                names.append(below.name)
                name, head = ".".join(names), below.lineno - 1
                names.append("<locals>")
                outermost = below if outermost is self._tree else outermost
            elif isinstance(below, ast.ClassDef):
                names.append(below.name)
            below = _holder(below, line)
        return name, head, outermost


def _holder(node: ast.AST, line: int) -> ast.AST | None:
    """Return the statement, handler or case right below a node that holds a line, if any."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            first, last = _lines(child)
            if first <= line <= last:
                return child
    return None


def _lines(node: ast.AST) -> tuple[int, int]:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno, node.body[-1].end_lineno or 0
    return getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
