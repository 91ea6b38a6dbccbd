"""``torchperf init``: writes a section with every setting, and a hook for pre-commit.

Existing lines are not changed. A commented line is a setting with an example.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from textwrap import indent, wrap
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import add_parser, fail
from flake8_torchperf.configuration import CHOOSING, NAME, TABLE, tables
from flake8_torchperf.fixes.engine.source_files import NotWrittenError, read_source, write
from flake8_torchperf.options import SETTINGS, OptionError

if TYPE_CHECKING:
    import argparse

    from flake8_torchperf.fixes.engine.source_files import FileText

HOOKS = ".pre-commit-config.yaml"
HOOK = """\
- repo: local
  hooks:
    - id: torchperf
      name: torchperf
      entry: torchperf check --exit-zero-on-nothing
      language: python
      additional_dependencies: [flake8-torchperf]
      types: [python]
      require_serial: true
"""
_WIDTH = 96
# A key of the outermost table, and the first item of the list below ``repos:``.
_TOP_KEY = re.compile(r"^[A-Za-z_\"'].*?:")
_ITEM = re.compile(r"^( *)- ")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``init``."""
    parser = add_parser(
        commands,
        "init",
        f"write a commented {TABLE} into {NAME}, and a hook into {HOOKS} where there is one",
        "torchperf init",
    )
    parser.set_defaults(run=lambda arguments: init())


def init() -> int:
    """Write into the files of the current folder and print the result; return the exit status."""
    try:
        external = _add_external()
        _add_section(Path(NAME), alone=not external)
        _add_hook(Path(HOOKS))
    except (OptionError, NotWrittenError) as error:
        return fail(f"init: {error}")
    return 0


def section() -> str:
    """Return the table with each setting as a comment, below its explanation."""
    lines = [TABLE, "# Settings of torchperf and of the flake8 plugin; flake8's own files win."]
    for one in SETTINGS:
        lines += [f"# {line}" for line in wrap(one.help[0].upper() + one.help[1:], _WIDTH)]
        lines.append(f"# {one.name} = {one.example}")
    for name, (example, help_) in CHOOSING.items():
        lines += [f"# {help_[0].upper()}{help_[1:]}", f"# {name} = {example}"]
    return "\n".join(lines) + "\n"


def _add_external() -> bool:
    """Let ruff keep our `# noqa` comments, where it has settings; return whether that changed them.

    Raises OptionError if they can't be changed.
    """
    from flake8_torchperf.cli.noqa.ruff_file import ruff_file

    found = ruff_file("")
    if found is None or found.knows_ours or not (found.removes_ours or "lint" in found.settings):
        return False
    source = _read(Path(found.path))
    try:
        longer = found.with_external(source.text)
    except OptionError as error:
        print(f"torchperf: init: {error}", file=sys.stderr)
        return False
    _write(source, longer)
    print(f'{found.path}: wrote external = ["TPF"] into [{found.lint_table}]\n')
    return True


def _add_section(path: Path, *, alone: bool) -> None:
    """Append the section. Raises OptionError if it can't be appended.

    So does one that exists, unless something else was written.
    """
    text = section()
    if not os.path.lexists(path):
        _create(path, text)
    else:
        source = _read(path)
        if "torchperf" in _tool(path, source.data) and not alone:
            print(f"{path}: has a {TABLE} already, left as it is", file=sys.stderr)
            return
        if "torchperf" in _tool(path, source.data):
            raise OptionError(f"{path} has a {TABLE} already; nothing was written")
        longer = _with_newline(source.text, text, "\n")
        try:
            _tool(path, source.encoded(longer))["torchperf"]
        except (OptionError, KeyError):
            # ``tool`` is an inline table, to which nothing can be added.
            problem = f"no {TABLE} can be appended; write its settings into tool by hand"
            raise OptionError(f"{path}: {problem}") from None
        _write(source, longer)
    print(f"{path}: wrote\n\n{text}")


def _tool(path: Path, data: bytes) -> dict[str, object]:
    tool = tables(str(path), data).get("tool", {})
    return tool if isinstance(tool, dict) else {}


def _add_hook(path: Path) -> None:
    """Add the hook to the list of repositories, or say what to add where that list is."""
    if not os.path.lexists(path):
        print(f"For pre-commit, add to `repos` in {path}:\n\n{HOOK}", end="")
        return
    source = _read(path)
    if "torchperf" in source.text:
        print(f"{path}: names torchperf already, left as it is", file=sys.stderr)
        return
    longer, hook = with_hook(source.text)
    if longer:
        _write(source, longer)
        print(f"{path}: wrote\n\n{hook}", end="")
    else:
        print(f"{path}: has no list `repos` to append to; add there:\n\n{HOOK}", end="")


def with_hook(text: str) -> tuple[str, str]:
    """Return the text of pre-commit's file with the hook at the end of its list, and the addition.

    Both are "" if the list is not written with an item a line. A comment does not end the list.
    """
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith("repos:")), None)
    if first is None or lines[first].partition("#")[0].strip() != "repos:":
        return "", ""
    rest = enumerate(lines[first + 1 :], first + 1)
    end = next((i for i, line in rest if _TOP_KEY.match(line)), len(lines))
    items = [found for line in lines[first + 1 : end] if (found := _ITEM.match(line))]
    if not items:
        return "", ""
    while not lines[end - 1].strip() or lines[end - 1].startswith("#"):
        end -= 1
    hook = indent(HOOK, items[0][1])
    return _with_newline("".join(lines[:end]), hook) + "".join(lines[end:]), hook


def _with_newline(text: str, more: str, between: str = "") -> str:
    """Return ``more`` appended to ``text``, with the line ends of ``text``."""
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    return text + (between * bool(text) + more).replace("\n", end)


def _create(path: Path, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}") from error


def _read(path: Path) -> FileText:
    try:
        return read_source(str(path))
    except NotWrittenError as error:
        raise OptionError(f"{path} {error}") from error


def _write(source: FileText, text: str) -> None:
    try:
        write(source, text)
    except NotWrittenError as error:
        raise OptionError(f"{source.path} {error}") from error
