"""The tools of ``torchperf mcp``: each runs one command of ``torchperf`` and returns its text.

No tool writes a file or runs the code that it reads: there is none for ``run``, ``confirm`` and
``fix`` without ``--diff``. A tool's docstring is what an agent reads about it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from flake8_torchperf.own_process import own_command

# As of the commands: nothing is left to tell, or something is; all others are mistakes.
_ANSWERS = (0, 1)
# The findings that `check` returns by default: each takes some 300 words of an agent's context.
SHOWN = 20


class NotAnsweredError(Exception):
    """A command could not answer; the message is what it wrote to standard error."""


def check(
    paths: Sequence[str] = (".",),
    top: int = SHOWN,
    profile: str = "",
    diff_base: str = "",
) -> str:
    """Find the places in Python files or folders where PyTorch code makes the accelerator wait.

    Returns JSON, the ``top`` findings by worth (0: all): each with its line, rule, cost, reason,
    and the diff of a safe fix. ``profile`` is a file of ``torchperf run --save-profile``, which
    adds measured counts; with ``diff_base``, a git revision, only lines changed since are told.
    """
    words = ["--format=json", "--sort=worth", *([f"--top={top}"] if top else [])]
    words += [f"--profile={profile}"] if profile else []
    words += [f"--diff-base={_plain(diff_base)}", "--exit-zero-on-nothing"] if diff_base else []
    return _answer("check", *words, *map(_plain, paths))


def why(line: str) -> str:
    """Say why a line, such as ``src/train.py:41``, is reported or is not.

    Names the evidence, the calls that lead there, and what is known of each value.
    """
    return _answer("why", _plain(line))


def explain(code: str) -> str:
    """Show the page of a rule, such as ``TPF206``: why the code is slow, and what to write."""
    return _answer("explain", _plain(code))


def fix(paths: Sequence[str] = (".",), unsafe: bool = False) -> str:
    """Show as a diff what ``torchperf fix`` would change; nothing is written.

    Without ``unsafe``, only fixes that hold for every caller.
    """
    words = ["--diff", *(["--unsafe"] if unsafe else [])]
    return _answer("fix", *words, *map(_plain, paths))


def profile(file: str) -> str:
    """List the statements that cost most in a run that was recorded earlier.

    The file is one of ``torchperf run --save-profile``. Nothing is run.
    """
    return _answer("profile", "show", _plain(file))


def compare(before: str, after: str) -> str:
    """Tell which statements wait more or less often than before, from two reports.

    The files are those of ``torchperf run --json``. Nothing is run.
    """
    return _answer("compare", _plain(before), _plain(after))


TOOLS = (check, why, explain, fix, profile, compare)


def _plain(word: str) -> str:
    """Return a word that is no option. Raises NotAnsweredError for one that would be."""
    if not word or word.startswith("-"):
        raise NotAnsweredError(f"{word!r} is no name; write ./{word} for a file of that name")
    return word


def _answer(*words: str) -> str:
    """Return what a command printed. Raises NotAnsweredError with its one line if it failed."""
    done = subprocess.run(
        own_command("flake8_torchperf.cli.main", *words),
        stdin=subprocess.DEVNULL,  # the protocol's messages come on ours
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode not in _ANSWERS:
        raise NotAnsweredError("\n".join(filter(None, (done.stderr.strip(), done.stdout.strip()))))
    return done.stdout or done.stderr or "nothing found"
