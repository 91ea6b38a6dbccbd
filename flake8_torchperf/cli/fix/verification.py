"""The options of ``--verify``, and its verdicts in words. Nothing here runs the code of a fix."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cli.settings.inputs_by_hand import check_harness, parse_inputs
from flake8_torchperf.history.kept_inputs import folder_beside, kept_calls

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from flake8_torchperf.fixes.engine.rounds import FixedText
    from flake8_torchperf.runtime.verify.limits import Limits
    from flake8_torchperf.runtime.verify.session import Tried, Verifier

VERIFICATION_STATUSES = ("verified", "withdrawn", "unverified")
# As for `confirm`: a day, and more memory than machines have.
_BOUNDS = {"timeout": (1.0, 86_400.0), "memory": (64, 2**24)}
_MISSING_TORCH = "--verify runs code and needs torch: pip install flake8-torchperf[confirm]"


@dataclass(frozen=True)
class Verified:
    """One verdict, with the place of its finding, the fix, and whether the fix was made."""

    line: int
    column: int
    code: str
    name: str
    safety: str
    status: str
    words: str
    made: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only a command line can give: configuration files cannot."""
    group = parser.add_argument_group("verify", "Run what is fixed, in a child with limits.")
    group.add_argument(
        "--verify",
        action="store_true",
        help="run each function before and after its fix; withdraw fixes that change results",
    )
    group.add_argument(
        "--require-verified",
        action="store_true",
        help="with --verify: leave out fixes that could not be run, too",
    )
    group.add_argument(
        "--inputs",
        default="",
        metavar="TEXT",
        help='with --verify: parameters by hand, as for confirm: "grads=[torch.randn(n)], eps=0.1"',
    )
    group.add_argument(
        "--harness",
        type=Path,
        metavar="FILE",
        help="with --verify: a file defining inputs(n) -> dict",
    )
    group.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    group.add_argument(
        "--timeout", type=float, default=40.0, metavar="S", help="seconds a fix (default: 40)"
    )
    group.add_argument(
        "--memory", type=int, default=2048, metavar="MB", help="for each fix (default: 2048)"
    )


def check(options: argparse.Namespace) -> None:
    """Raise ValueError, with one line, if the code can't be run as the options ask."""
    if options.require_verified and not options.verify:
        raise ValueError("--require-verified needs --verify")
    for name in ("inputs", "harness"):
        if getattr(options, name) and not options.verify:
            raise ValueError(f"--{name} needs --verify")
    if not options.verify:
        return
    if os.name != "posix":
        raise ValueError("--verify needs Linux or macOS: elsewhere code has no limits")
    if find_spec("torch") is None:
        raise ValueError(_MISSING_TORCH)
    for name, (least, most) in _BOUNDS.items():
        given = getattr(options, name)
        if not least <= given <= most:
            raise ValueError(f"--{name}: {given:g} is not between {least:g} and {most:g}")
    if options.device == "cuda" and not _has_cuda():
        raise ValueError("--device cuda: torch finds no CUDA device here")
    parse_inputs(options.inputs)
    if options.harness is not None:
        check_harness(options.harness)
    if (kept := _kept(options)) is not None:
        kept_calls(kept)


def _kept(options: argparse.Namespace) -> Path | None:
    """Return the folder of the inputs kept beside the profile that is used; None without any."""
    profile = options.torchperf_profile
    folder = folder_beside(Path(profile).resolve()) if profile else None
    return folder if folder is not None and folder.is_dir() else None


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def limits(options: argparse.Namespace, folder: str) -> Limits | None:
    """Return the limits chosen for the child processes; None if nothing is to be run."""
    if not options.verify:
        return None
    from flake8_torchperf.runtime.verify.limits import Limits

    return Limits(
        options.timeout,
        options.memory,
        options.device,
        options.require_verified,
        folder,
        given=tuple(parse_inputs(options.inputs).items()),
        harness=options.harness,
        kept=_kept(options),
    )


def close(limits: Limits | None) -> None:
    """End the children that this process has started."""
    if limits is not None:
        from flake8_torchperf.runtime.verify.session import close

        close()


def verdicts(outcome: FixedText, verifier: Verifier | None) -> tuple[Verified, ...]:
    """Return the verdicts on the fixes that were made, then on those that were not."""
    if verifier is None:
        return ()
    tried = verifier.tried
    made = [tried[id(change.edit)] for change in outcome.changes]
    return (
        *(_verified(one, True) for one in made),
        *(_verified(one, False) for one in verifier.refused),
    )


def _verified(one: Tried, made: bool) -> Verified:
    finding, edit, verdict = one.finding, one.edit, one.verdict
    place = (finding.line, finding.column, finding.code)
    return Verified(*place, edit.name, edit.safety, verdict.status, verdict.words, made)


def line_of_text(filename: str, one: Verified, verb: str = "fixed") -> str:
    """Return one verdict in a line, in the form that editors and CI understand."""
    place = f"{filename}:{one.line}:{one.column + 1}: {one.code}"
    if one.made:
        return f"{place} {verb} ({one.name}, {one.safety}), {one.status}: {one.words}"
    done = "withdrawn" if one.status == "withdrawn" else "not fixed"
    status = "" if one.status == "withdrawn" else f" {one.status},"
    return f"{place} {done} ({one.name}, {one.safety}):{status} {one.words}"


def summary(all_verified: Sequence[Verified]) -> str:
    """Return the number of verdicts of each status, as text."""
    counts = Counter(one.status for one in all_verified)
    return ", ".join(f"{counts[status]} {status}" for status in VERIFICATION_STATUSES)
