"""The fixes of one file, each tried in the sandbox before it is made.

Must not import torch and never runs the code it judges: the sandbox's child does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.apply import apply_edits
from flake8_torchperf.runtime.confirm.plan import PlanError
from flake8_torchperf.runtime.confirm.report import Session, isolation_notes
from flake8_torchperf.runtime.confirm.sandbox import Sandbox, SandboxError
from flake8_torchperf.runtime.verify.plan import Trial, job_of
from flake8_torchperf.runtime.verify.verdict import UNVERIFIED, VERIFIED, Verdict, judge

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit, Finding
    from flake8_torchperf.options import Options

WORK = "flake8_torchperf.runtime.verify.child.compare"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a person chose: seconds and MiB for each fix, where tensors are, what is written.

    ``required`` leaves unverified fixes unwritten. ``folder`` is where the children work.
    """

    timeout: float
    memory: int
    device: str
    required: bool
    folder: str


@dataclass(frozen=True, slots=True)
class Tried:
    """One fix that was tried, and the verdict on it."""

    finding: Finding
    edit: Edit
    verdict: Verdict


class Verifier:
    """Tries the fixes of one file; `judge` is what the rounds of fixing ask."""

    def __init__(self, path: str, options: Options, limits: Limits) -> None:
        self._path, self._options, self._limits = path, options, limits
        self._known: dict[tuple[str, ...], Verdict] = {}
        self._tried: dict[int, Tried] = {}
        self._text = ""
        self._refused: list[Tried] = []

    def judge(self, text: str, finding: Finding, edit: Edit) -> bool:
        """Run the function without and with one edit; False where that must not be made."""
        if text != self._text:
            self._text, self._refused = text, []
        applied = apply_edits(text, [edit])
        if not applied.edits:
            return False
        trial = Trial(self._path, finding, edit, text, applied.text)
        key = trial.key
        verdict = self._known.get(key) or self._run(trial)
        self._known[key] = verdict
        tried = Tried(finding, edit, verdict)
        self._tried[id(edit)] = tried
        wanted = (VERIFIED,) if self._limits.required else (VERIFIED, UNVERIFIED)
        if verdict.status not in wanted:
            self._refused.append(tried)
        return verdict.status in wanted

    @property
    def tried(self) -> dict[int, Tried]:
        """What was tried, by the edit's ``id``."""
        return dict(self._tried)

    @property
    def refused(self) -> list[Tried]:
        """What was not made, in the text as it was left."""
        return list(self._refused)

    @property
    def notes(self) -> list[str]:
        """What this machine did not let the code give up."""
        sandbox = _open.get(_key(self._limits))
        if sandbox is None or not self._tried:
            return []
        session = Session(sandbox.torch, self._limits.device, 0, sandbox.isolation)
        return isolation_notes(session)

    def _run(self, trial: Trial) -> Verdict:
        try:
            job = job_of(trial, self._options, self._limits.device)
            answer = sandbox_of(self._limits).run(job)
        except (SandboxError, PlanError) as error:
            return Verdict(UNVERIFIED, str(error))
        return judge(trial.finding.rule, answer)


# One per process, started when it is first needed: starting one takes as long as importing torch.
_open: dict[tuple[int, Limits], Sandbox] = {}


def _key(limits: Limits) -> tuple[int, Limits]:
    return os.getpid(), limits


def sandbox_of(limits: Limits) -> Sandbox:
    """The sandbox of this process. Raises SandboxError where no child can be had."""
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
