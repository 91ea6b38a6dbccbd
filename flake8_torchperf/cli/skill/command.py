"""``torchperf skill``: prints the skill for coding agents, or writes it where an agent finds it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from flake8_torchperf.cli.parser import add_parser, fail
from flake8_torchperf.digest import digest
from flake8_torchperf.findings.catalogue import pages_folder
from flake8_torchperf.fixes.engine.source_files import FileText, NotWrittenError, read_source, write

# The format wants the skill in a folder of its own name, wherever it is installed.
PLACE = Path("torchperf", "SKILL.md")
# The last line of an installed file. A copy that still has this digest was not edited since.
_MARK = re.compile(r"<!-- torchperf skill --install: ([0-9a-f]{32}) -->\n\Z")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``skill``."""
    parser = add_parser(
        commands,
        "skill",
        "print the steps for coding agents, a file SKILL.md, or install it",
        "torchperf skill --install .claude/skills",
    )
    parser.add_argument(
        "--install",
        type=Path,
        metavar="DIR",
        help=f"write DIR/{PLACE.as_posix()}; a copy that was not edited is replaced",
    )
    parser.set_defaults(run=lambda arguments: skill(arguments.install))


def skill(folder: Path | None) -> int:
    """Print the skill, or write it below a folder; return the exit status."""
    try:
        text = skill_text()
        if folder is None:
            print(text, end="")
        else:
            print(f"{folder / PLACE}: {_install(folder / PLACE, text)}")
    except NotWrittenError as error:
        return fail(f"skill: {error}")
    return 0


def skill_text() -> str:
    """Return the skill of the installed package. Raises NotWrittenError if it is missing."""
    path = pages_folder().with_name("skills") / PLACE
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"{path} cannot be read; install flake8-torchperf again"
        raise NotWrittenError(problem) from error


def installed_text(text: str) -> str:
    """Return a skill's text with the last line that shows later whether somebody edited it."""
    return f"{text}<!-- torchperf skill --install: {digest(text.encode())} -->\n"


def _install(path: Path, text: str) -> str:
    """Write a skill's file and return what was done. Raises NotWrittenError if it can't be."""
    new = installed_text(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(new)
    except FileExistsError:
        if not path.parent.is_dir():
            raise NotWrittenError(f"{path.parent} is no folder; name another DIR") from None
        return _replace(path, text, new)
    except OSError as error:
        raise NotWrittenError(f"{path} cannot be written: {error.strerror}") from error
    return "written"


def _replace(path: Path, text: str, new: str) -> str:
    try:
        old = read_source(str(path))
        if old.text == new:
            return "is up to date"
        if old.text != text and not _is_unedited(old):
            raise NotWrittenError("was edited, or is not ours; move it away, and install again")
        write(old, new)
    except NotWrittenError as error:
        raise NotWrittenError(f"{path} {error}") from error
    return "replaced"


def _is_unedited(source: FileText) -> bool:
    """True for a file that `--install` of any version wrote and that nobody changed."""
    mark = _MARK.search(source.text)
    return mark is not None and mark[1] == digest(source.text[: mark.start()].encode())
