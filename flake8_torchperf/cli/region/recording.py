"""``with torchperf.recording("profile.json"):`` records a region, as ``torchperf run`` a program.

The region runs in the program's own process; what surrounds it costs nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flake8_torchperf.cli.main import save, unwritable
from flake8_torchperf.cli.profile.written_profiles import save_profile_of, unsuitable
from flake8_torchperf.cli.run_report import as_text, judged_report, print_report
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options

if TYPE_CHECKING:
    from types import FrameType

    from flake8_torchperf.runtime.workload.exchange import Plan

COMMAND = "torchperf.recording"


class RecordingError(ValueError):
    """A region that cannot be recorded. The text is one line: what, where, what to do."""


class Recorded:
    """A recorded region: ``report`` is the JSON report of `torchperf run`, empty until its end."""

    def __init__(self) -> None:
        self.report: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The report in words; "" until the region's end."""
        return as_text(self.report) if self.report else ""


_active: list[Recorded] = []


@contextlib.contextmanager
def recording(
    profile: str | os.PathLike[str] | None = None,
    *,
    json: str | os.PathLike[str] | None = None,
    owners: Sequence[str | os.PathLike[str]] = (),
    level: Literal["full", "reads"] = "full",
    report: bool = True,
) -> Iterator[Recorded]:
    """Record what a region counts, and tell it at its end on stderr.

    ``profile`` and ``json`` are files to write, as `torchperf run --save-profile` and `--json` do;
    ``owners`` and ``level`` are those of its options. Without ``report`` nothing is printed.
    Threads that the region starts count, those that ran before do not. Raises RecordingError where
    a file cannot be written, or another region is being recorded.
    """
    from flake8_torchperf.runtime.workload.watching.watch import Watch

    _check(profile, json)
    plan = _plan(owners, level, bool(profile))
    watch, recorded, ended = Watch(plan), Recorded(), "returned"
    _active.append(recorded)
    try:
        with watch.watching(_users_frame()):
            yield recorded
    except BaseException as error:
        ended = type(error).__name__
        raise
    finally:
        _active.remove(recorded)
        _finish(watch.observed(ended), plan, recorded, profile, json)
        if report:
            print_report(recorded.report, sys.stderr)


def _check(profile: str | os.PathLike[str] | None, report: str | os.PathLike[str] | None) -> None:
    if _active:
        raise RecordingError("recording: another region is being recorded; end that one first")
    if profile is not None and (problem := unsuitable(Path(profile))):
        raise RecordingError(f"recording: profile: {problem}")
    if report is not None and (problem := unwritable(Path(report))):
        raise RecordingError(f"recording: json: {problem}")


def _plan(owners: Sequence[str | os.PathLike[str]], level: str, profile: bool) -> Plan:
    from flake8_torchperf.runtime.workload.exchange import Plan
    from flake8_torchperf.runtime.workload.ownership import OwnerError, owner_paths

    try:
        named = tuple(str(path) for one in owners for path in owner_paths(os.fspath(one)))
    except OwnerError as error:
        raise RecordingError(f"recording: {error}") from error
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    folders = [os.getcwd(), *([os.path.dirname(os.path.realpath(script))] if script else [])]
    return Plan(
        script=COMMAND,
        arguments=(),
        is_module=False,
        owners=named,
        defaults=tuple(folders),
        level=level,
        results="",
        profile=profile,
    )


def _users_frame() -> FrameType | None:
    """Return the frame that entered the region."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return frame


def _finish(
    observed: Any,
    plan: Plan,
    recorded: Recorded,
    profile: str | os.PathLike[str] | None,
    report: str | os.PathLike[str] | None,
) -> None:
    """Judge the region, and write what was asked for."""
    from flake8_torchperf.runtime.workload.ranks.merge import bring_together
    from flake8_torchperf.runtime.workload.ranks.recordings import Recording

    run = bring_together([Recording(plan, observed)])
    # A run measures what heat only infers, so it is compared with the findings of every scope.
    recorded.report, _ = judged_report([COMMAND], 0, run, Options(scope=Level.COLD))
    if profile is not None:
        save_profile_of("recording: profile", Path(profile), run)
    if report is not None:
        save("recording: json", Path(report), json.dumps(recorded.report, indent=1) + "\n")
