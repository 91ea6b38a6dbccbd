"""Runs one fix in the sandbox of ``fix --verify``, from the two texts of its function."""

from __future__ import annotations

import textwrap
from pathlib import Path

from hangs import HANG
from linting import PRELUDE

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.runtime.confirm.sandbox import Sandbox
from flake8_torchperf.runtime.verify.job import Trial, job_of
from flake8_torchperf.runtime.verify.limits import Limits
from flake8_torchperf.runtime.verify.verdict import FixVerdict, verdicts

OPTIONS = Options(scope=Level.COLD)
LIMITS = Limits(HANG, 2048, "cpu", False, "")


def verdict(
    sandbox: Sandbox,
    tmp_path: Path,
    before: str,
    after: str,
    *,
    safety: str = "safe",
    allows: tuple[str, ...] = (),
    code: str = "",
) -> FixVerdict:
    """Return the verdict on a fix that makes one body of code, behind `PRELUDE`, another one.

    ``code`` chooses the finding; the first one is taken without it.
    """
    texts = [PRELUDE + textwrap.dedent(body) for body in (before, after)]
    path = tmp_path / "verified.py"
    path.write_text(texts[0])
    found = lint(texts[0], str(path), OPTIONS)
    finding = next(one for one in found if one.code == code or not code)
    trial = Trial(str(path), finding, Edit((), safety=safety, name="tested"), *texts)
    job = {**job_of(trial, OPTIONS, LIMITS), "allows": list(allows), "seconds": sandbox.timeout}
    both = {**job, "trials": [job], "import_seconds": sandbox.timeout}
    return verdicts([finding.rule], sandbox.run(both, 2.5 * sandbox.timeout))[0]
