"""Tries each fix of one file in the sandbox before it is made.

Must not import torch and never runs the code that it judges: the sandbox's child does.
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.apply import apply_edits
from flake8_torchperf.linter import values_in
from flake8_torchperf.runtime.confirm.report import Circumstances, isolation_notes
from flake8_torchperf.runtime.confirm.sandbox import Answer, Sandbox, SandboxError
from flake8_torchperf.runtime.verify.blocks import changed_alone
from flake8_torchperf.runtime.verify.job import Trial, job_of
from flake8_torchperf.runtime.verify.limits import Limits
from flake8_torchperf.runtime.verify.verdict import UNVERIFIED, VERIFIED, FixVerdict, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.findings.finding import Edit, Finding
    from flake8_torchperf.options import Options
    from flake8_torchperf.values.values import Value

WORK = "flake8_torchperf.runtime.verify.child.compare"
# Importing a package is not part of a function's own time, but may take no longer than this share.
IMPORT_SHARE = 1.5


@dataclass(frozen=True, slots=True)
class Tried:
    """One fix that was tried, and the verdict on it."""

    finding: Finding
    edit: Edit
    verdict: FixVerdict


class Verifier:
    """Tries the fixes of one file; the rounds of fixing call `judge`."""

    def __init__(self, path: str, options: Options, limits: Limits) -> None:
        self._path, self._options, self._limits = path, options, limits
        self._known: dict[tuple[str, ...], FixVerdict] = {}
        self._tried: dict[int, Tried] = {}
        self._refused: list[Tried] = []

    def judge(self, text: str, offered: Sequence[tuple[Finding, Edit]]) -> list[bool]:
        """Run the functions without and with each edit; False for an edit that must not be made."""
        self._refused = []
        trials: list[Trial | None] = []
        for finding, edit in offered:
            applied = apply_edits(text, [edit])
            made = Trial(self._path, finding, edit, text, applied.text) if applied.edits else None
            trials.append(made)
        fresh = {one.key: one for one in trials if one is not None and one.key not in self._known}
        self._known.update(self._run(fresh))
        return [one is not None and self._allowed(one) for one in trials]

    def _allowed(self, trial: Trial) -> bool:
        """Store the verdict, and return whether the edit is made."""
        tried = Tried(trial.finding, trial.edit, self._known[trial.key])
        self._tried[id(trial.edit)] = tried
        wanted = (VERIFIED,) if self._limits.required else (VERIFIED, UNVERIFIED)
        if tried.verdict.status in wanted:
            return True
        self._refused.append(tried)
        return False

    @property
    def tried(self) -> dict[int, Tried]:
        """The fixes that were tried, by the edit's ``id``."""
        return dict(self._tried)

    @property
    def refused(self) -> list[Tried]:
        """The fixes of the last round that must not be made."""
        return list(self._refused)

    @property
    def notes(self) -> list[str]:
        """Notes on the isolation that this machine did not grant."""
        sandbox = _open.get(_key(self._limits))
        if sandbox is None or not self._tried:
            return []
        session = Circumstances(sandbox.torch, self._limits.device, 0, sandbox.isolation)
        return isolation_notes(session)

    def _run(self, trials: dict[tuple[str, ...], Trial]) -> dict[tuple[str, ...], FixVerdict]:
        """Return the verdicts on trials of one text, as one job: it imports the module once."""
        if not trials:
            return {}
        found = self._told(list(trials.values()), alone=False)
        for at, trial in enumerate(trials.values()):
            if found[at].status == UNVERIFIED:
                found[at] = self._told_alone(trial) or found[at]
        return dict(zip(trials, found, strict=True))

    def _told_alone(self, trial: Trial) -> FixVerdict | None:
        """Return the verdict on the changed statements alone; None where that shows nothing."""
        block = changed_alone(trial, partial(self._values, trial.before))
        told = None if block is None else self._told([block], alone=True)[0]
        if told is None or told.status == UNVERIFIED:
            return None
        return replace(told, words=f"{told.words}, for the changed statements alone")

    def _values(self, text: str, line: int) -> dict[str, Value]:
        """Return what is known of the names in a line."""
        known = values_in(text, self._path, line, self._options).values
        return {node.id: value for node, value in known if isinstance(node, ast.Name)}

    def _told(self, trials: Sequence[Trial], *, alone: bool) -> list[FixVerdict]:
        """Return the verdicts on trials of one text; ``alone`` runs no more than their function."""
        limits = self._limits
        jobs = [{**job_of(one, self._options, limits), "seconds": limits.timeout} for one in trials]
        job = {
            **jobs[0],
            "alone": alone,
            "trials": jobs,
            "import_seconds": limits.timeout * IMPORT_SHARE,
        }
        try:
            answer = sandbox_of(limits).run(job, limits.timeout * (len(jobs) + IMPORT_SHARE) + 2)
        except SandboxError as error:
            answer = Answer(None, str(error), 0.0)
        return verdicts([one.finding.rule for one in trials], answer)


# One per process, started when it is first needed: starting one takes as long as importing torch.
_open: dict[tuple[int, Limits], Sandbox] = {}


def _key(limits: Limits) -> tuple[int, Limits]:
    return os.getpid(), limits


def sandbox_of(limits: Limits) -> Sandbox:
    """Return the sandbox of this process. Raises SandboxError where no child can be started."""
    key = _key(limits)
    if key not in _open:
        sandbox = Sandbox(
            limits.timeout, limits.memory, limits.device, work=WORK, inside=limits.folder
        )
        _open[key] = sandbox.__enter__()
    return _open[key]


def close() -> None:
    """End the sandboxes that this process has started."""
    for key in [key for key in _open if key[0] == os.getpid()]:
        _open.pop(key).__exit__(None, None, None)
