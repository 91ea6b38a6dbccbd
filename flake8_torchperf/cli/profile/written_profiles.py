"""Profiles on disk, as commands write them: never over something else."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.main import unwritable
from flake8_torchperf.cli.parser import fail
from flake8_torchperf.history.profile import MARK, ProfileError, merge, parse, write
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.history.profile import Profile
    from flake8_torchperf.runtime.workload.ranks.merge import MergedRun


def unsuitable(path: Path) -> str:
    """Return why no profile can be written there, or "": other files are not overwritten."""
    if problem := unwritable(path):
        return problem
    if not path.exists():
        return ""
    try:
        refuse_special(path)
        text = path.read_text(encoding="utf-8")
        if text.strip() and MARK in text:
            parse(text, path)
        elif text.strip():
            return f"{path} holds something else, and is left as it is"
    except UnicodeDecodeError:
        return f"{path} is no profile, and is left as it is"
    except ProfileError as error:
        return str(error)
    except OSError as error:
        return in_words(error)
    return ""


def save_profile(option: str, path: Path, profile: Profile) -> int:
    """Write a profile and say so; returns the exit status."""
    try:
        write(path, profile)
    except OSError as error:
        return fail(f"{option}: {in_words(error)}")
    entries = [entry for listed in profile.files.values() for entry in listed]
    waited = sum(1 for entry in entries if entry.waits)
    words = f"{number(len(entries), 'statement')} in {number(len(profile.files), 'file')}"
    print(f"torchperf: {path}: {words}, {waited} of them waited", file=sys.stderr)
    return 0


def save_profile_of(option: str, path: Path, run: MergedRun) -> int:
    """Write the profile of a run and say so; returns the exit status."""
    from flake8_torchperf.runtime.workload.profiling import profile_of

    # A launcher (torchrun) runs nothing of the user's, and is no run of the program.
    ran = [one for one in run.processes if any(one.executed.values())] or run.processes
    return save_profile(option, path, merge(profile_of(one, os.getcwd()) for one in ran))


def number(count: int, noun: str) -> str:
    """Return a count with its noun: "1 file", "2,000 files"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
