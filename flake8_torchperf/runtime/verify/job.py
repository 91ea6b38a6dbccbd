"""Makes the child's job for one fix, from its finding and the texts before and after.

Must not import torch: the job is plain data that the sandbox carries.
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8_torchperf.findings.documentation import read_documentation
from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.history.data_files import relative
from flake8_torchperf.history.kept_inputs import calls_of
from flake8_torchperf.project.import_roots import project_folder
from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, grouped
from flake8_torchperf.runtime.confirm.specs.from_calls import calls_in, wanted_of
from flake8_torchperf.runtime.verify.definitions import definitions
from flake8_torchperf.runtime.verify.unproved import NO_ERROR, moves_error, unshown

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Edit, Finding
    from flake8_torchperf.options import Options
    from flake8_torchperf.runtime.verify.limits import Limits

# Calls of a function from recorded runs, of one process or of several.
MOST_RECORDED = 3
# The default sizes of `confirm`: three sizes show how counts grow.
SIZES = (16, 64, 256)


@dataclass(frozen=True, slots=True)
class Trial:
    """One fix to be tried: the finding, the edit, and the file's text without and with it."""

    path: str
    finding: Finding
    edit: Edit
    before: str
    after: str

    @property
    def key(self) -> tuple[str, ...]:
        """The function in both texts, and the fix: trials with the same key need only one run."""
        name = self.finding.site.function
        texts = (_function(self.before, name)[2], _function(self.after, name)[2])
        return (self.path, name, self.finding.code, self.edit.name, *texts)


def job_of(trial: Trial, options: Options, chosen: Limits) -> dict[str, Any]:
    """Return the job that compares both texts. Raises KeptInputsError."""
    path, finding, device = Path(trial.path), trial.finding, chosen.device
    settings = ConfirmSettings(SIZES, device, dict(chosen.given), chosen.harness, options)
    job = grouped(path, trial.before, [finding], settings)[0].job
    name = finding.site.function
    first, last, after = _function(trial.after, name)
    safe = trial.edit.safety == SAFE
    in_loop = bool(finding.site.loops)
    if in_loop:  # only a loop of several rounds shows what moves out of it
        job["targets"] = [{**one, "rounds": 2} for one in job["targets"]]
    return {
        **job,
        "explain": False,
        "callers": _callers(trial, str(job["root"])),
        "kept": _recorded(trial, chosen.kept),
        "before": trial.before,
        "after": trial.after,
        "after_first": first,
        "after_last": last,
        "safety": trial.edit.safety,
        "in_loop": in_loop,
        # A safe fix needs no proof by calls: it is right wherever it is offered.
        "definitions": [] if safe else _definitions_of(trial),
        "unshown": "" if safe else unshown(_function(trial.before, name)[2], after, device),
        # Said only if no call raises: then nothing shows that the fix tests the same.
        "unraised": NO_ERROR if moves_error(_function(trial.before, name)[2], after) else "",
        "allows": sorted(_allowed(trial)),
    }


def _callers(trial: Trial, root: str) -> list[dict[str, Any]]:
    """Return the arguments that callers in the project pass to the function."""
    wanted = wanted_of(ast.parse(trial.before), trial.finding.site.function)
    folder = project_folder(root)
    return calls_in(Path(folder), wanted) if wanted is not None and folder else []


def _recorded(trial: Trial, folder: Path | None) -> list[dict[str, Any]]:
    """Return the calls of the function that a run has kept, as many as are tried."""
    if folder is None:
        return []
    path = relative(os.path.realpath(trial.path), os.path.realpath(os.getcwd()))
    outermost = trial.finding.site.function.partition(".<locals>")[0]
    return [
        {"file": str(folder / one.file), "modules": dict(one.modules), "autograd": one.autograd}
        for one in calls_of(folder, path, outermost)
        if one.file
    ][:MOST_RECORDED]


def _definitions_of(trial: Trial) -> list[dict[str, object]]:
    first, last, _ = _function(trial.before, trial.finding.site.function)
    tree = ast.parse(trial.before)
    for node in ast.walk(tree):
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, functions) and (node.lineno, node.end_lineno) == (first, last):
            found = definitions(trial.before, trial.after, node)
            return [one.to_dict(number) for number, one in enumerate(found)]
    return []


def _allowed(trial: Trial) -> frozenset[str]:
    """Return the changes of behaviour that the page allows for the fix."""
    for fix in read_documentation(trial.finding.rule).fixes:
        if fix.name == trial.edit.name:
            return fix.allows
    return frozenset()


def _function(text: str, qualname: str) -> tuple[int, int, str]:
    """Return the first and last line, and the text, of the outermost function with this name."""
    lines = text.splitlines(keepends=True)
    body: list[ast.stmt] = ast.parse(text).body
    found: ast.stmt | None = None
    for part in qualname.partition(".<locals>")[0].split("."):
        named = [one for one in _definitions(body) if one.name == part]
        found = named[-1] if named else None
        if not named:
            break
        body = named[-1].body
    if found is None:
        return 1, max(1, len(lines)), text
    last = found.end_lineno or found.lineno
    return found.lineno, last, "".join(lines[found.lineno - 1 : last])


def _definitions(
    body: list[ast.stmt],
) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Return the definitions in a body, including those in ``if``, ``try`` and ``with``."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
    for one in body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append(one)
        elif isinstance(one, (ast.If, ast.Try, ast.With)):
            found += _definitions([n for n in ast.iter_child_nodes(one) if isinstance(n, ast.stmt)])
    return found
