"""Combine the settings from all sources: flake8's namespace in, checked ``Options`` out.

Runs at every start of flake8: a pyproject.toml that does not name us is read but not parsed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.findings.chosen import ALL, GROUPS, Chosen, beginning
from flake8_torchperf.options import (
    PREFIX,
    SETTINGS,
    OptionError,
    Options,
    from_namespace,
    from_values,
)
from flake8_torchperf.project.file_index import upwards
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from flake8.options.manager import Option, OptionManager

NAME = "pyproject.toml"
TABLE = "[tool.torchperf]"


# Where flake8 and we look for settings, in a folder and in those above it.
SETTINGS_FILES = ("setup.cfg", "tox.ini", ".flake8", NAME)


def configuration_files(folder: str) -> tuple[str, ...]:
    """Return the files that may hold a folder's configuration, whether they exist or not."""
    found: list[str] = []
    home = os.path.expanduser("~")
    for above in upwards(folder):
        found += (os.path.join(above, name) for name in SETTINGS_FILES)
        if above == home:
            break
    return tuple(found)


class KnownNames(dict[str, "Option"]):
    """flake8's options by name; records looked-up names that begin like ours but match no option.

    flake8 silently ignores such names in its configuration files. We can't read those files
    ourselves: options that flake8 does not pass on decide which files it reads.
    """

    def __init__(self, known: Mapping[str, Option]) -> None:
        super().__init__(known)
        self.missed: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """Return the option of that name."""
        if name not in self and name.startswith(PREFIX.rstrip("-")):
            self.missed.append(name)
        return super().get(name, default)


def settled(manager: OptionManager, namespace: argparse.Namespace, base: Options) -> Options:
    """Return ``base`` with the settings of pyproject.toml, flake8's files and the command line.

    A later source wins. Raises `OptionError` with a single line.
    """
    known = manager.config_options_dict
    if isinstance(known, KnownNames) and known.missed:
        name = known.missed[0]
        raise OptionError(f"flake8's configuration has no option {name}{near(name, PREFIX)}")
    # flake8 removes ``--isolated`` from the arguments before any plugin sees them.
    if not (namespace.isolated or "--isolated" in sys.argv):
        base = _configured(base, manager.parser.prog)
    return overruled(from_namespace(namespace, base), namespace)


def _configured(base: Options, program: str) -> Options:
    """Return ``base`` with the settings of the nearest file that has any, from this folder upwards.

    flake8 looks for its own files in the same way.
    """
    unread = ""
    for path, data in _files(os.getcwd()):
        if b"torchperf" not in data and (unread or b"tool.flake8" not in data):
            continue
        tool = tables(path, data).get("tool", {})
        if not unread and _is_unread(tool.get("flake8"), program):
            unread = path
            _say_unread(path, program)
        if "torchperf" in tool:
            return _options(path, tool["torchperf"], base)
    return base


def _is_unread(table: object, program: str) -> bool:
    """True if this [tool.flake8] concerns us and nothing passes it to flake8.

    For our own commands any [tool.flake8] concerns us; for flake8, only one that mentions us.
    """
    about_us = program != "flake8" or "torchperf" in str(table) or "TPF" in str(table)
    if table is None or not about_us or "pflake8" in sys.modules:
        return False
    from importlib.util import find_spec

    return find_spec("flake8p") is None


def _say_unread(path: str, program: str) -> None:
    from multiprocessing import parent_process

    if parent_process() is None:  # flake8's worker processes parse the options again
        advice = "install Flake8-pyproject, or write its settings into setup.cfg or .flake8"
        print(f"{program}: {path}: flake8 does not read [tool.flake8]; {advice}", file=sys.stderr)


def _files(folder: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each pyproject.toml from a folder up to below the home folder."""
    home = os.path.expanduser("~")
    for above in upwards(folder):
        if above == home != folder:
            return
        path = os.path.join(above, NAME)
        try:
            refuse_special(path)
            with open(path, "rb") as file:
                yield path, file.read()
        except OSError:
            pass  # missing or unreadable: flake8 skips such files as well


def tables(path: str, data: bytes) -> Mapping[str, Any]:
    """Return the content of a TOML file. Raises `OptionError`."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        # Editors on Windows may begin a file with a byte order mark.
        tables: dict[str, Any] = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise OptionError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise OptionError(f"{path}: no TOML: {' '.join(str(error).split())}") from None
    return tables


def _options(path: str, table: object, base: Options) -> Options:
    """Return the settings of a table, with paths relative to its file."""
    if not isinstance(table, dict):
        raise OptionError(f"{path}: {TABLE}: {table!r} is no table")
    known = {one.name: one for one in SETTINGS}
    values: dict[str, object] = {}
    choosing: dict[str, object] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name in CHOOSING:
            choosing[name] = value
        elif name not in known:
            raise OptionError(f"{path}: {TABLE} has no setting {key!r}{near(key)}")
        else:
            values[name] = _beside(path, value) if known[name].path else value
    options = from_values(values, base, lambda name: f"{path}: {TABLE} {name}")
    return replace(options, chosen=_chosen(path, choosing)) if choosing else options


# Settings that only the table has, each with an example and what it does. On the command line and
# in flake8's own files, flake8's options of the same names say it.
CHOOSING = {
    "select": (
        '["reads", "TPF5"]',
        "the rules to tell: codes, their beginnings, or groups of them",
    ),
    "extend-select": ('["TPF301"]', "rules to tell besides those of select"),
    "ignore": ('["TPF104"]', "rules to leave out"),
    "extend-ignore": ('["TPF303"]', "rules to leave out besides those of ignore"),
    "exclude": ('["scripts", "src/vendored/*"]', "files and folders in which nothing is told"),
    "extend-exclude": ('["examples"]', "files and folders besides those of exclude"),
    "per-file-ignores": ('{ "tests/*" = ["TPF104", "TPF303"] }', "rules to leave out in files"),
}


def _chosen(path: str, values: Mapping[str, object]) -> Chosen:
    """Return the choice that a table states. Raises `OptionError`."""

    def codes(name: str) -> tuple[str, ...]:
        return _codes(f"{path}: {TABLE} {name}", values.get(name, []))

    def globs(name: str) -> tuple[str, ...]:
        listed = _listed(f"{path}: {TABLE} {name}", values.get(name, []))
        return tuple(_placed(path, glob) for glob in listed)

    per_file = values.get("per-file-ignores", {})
    spelt = f"{path}: {TABLE} per-file-ignores"
    if not isinstance(per_file, dict):
        raise OptionError(
            f"{spelt}: {per_file!r} is no table; write {_example('per-file-ignores')}"
        )
    return Chosen(
        codes("select"),
        codes("extend-select"),
        codes("ignore") + codes("extend-ignore"),
        globs("exclude") + globs("extend-exclude"),
        tuple((_placed(path, glob), _codes(spelt, words)) for glob, words in per_file.items()),
    )


def _example(name: str) -> str:
    return f"for example {name} = {CHOOSING[name][0]}"


def _listed(spelt: str, value: object) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise OptionError(f"{spelt}: {value!r} is no list of texts")


def _codes(spelt: str, value: object) -> tuple[str, ...]:
    """Return the beginnings of the codes that a setting names. Raises `OptionError`."""
    from flake8_torchperf.findings.catalogue import load_catalogue
    from flake8_torchperf.reserved import RESERVED

    words = _listed(spelt, value)
    ours = [*RESERVED, *(rule.code for rule in load_catalogue().rules)] if words else []
    for word in words:
        code = beginning(word)
        if not any(one.startswith(code) for one in ours) and not _is_users(code):
            from difflib import get_close_matches  # needed only to report a mistake

            close = get_close_matches(code, [*ours, *GROUPS], n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; groups are {', '.join(GROUPS)}"
            raise OptionError(f"{spelt}: no rule has the code {word}{hint}")
    return tuple(map(beginning, words))


def _is_users(code: str) -> bool:
    """True for a code, or its beginning, that pages of a user's own may have."""
    return len(code) > len(ALL) and code.startswith(ALL) and code[3] in "789" and code[3:].isdigit()


def _placed(path: str, glob: str) -> str:
    """Return a glob with a slash joined to the folder of the file ``path``."""
    if "/" not in glob.rstrip("/"):
        return glob.rstrip("/")
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.normpath(os.path.join(folder, glob)).replace(os.sep, "/")


def near(name: str, prefix: str = "") -> str:
    """Return the end of a message on an unknown setting: the nearest, or all if none is near."""
    import difflib  # needed only to report a mistake

    names = [one.name for one in SETTINGS] + ([] if prefix else list(CHOOSING))
    close = difflib.get_close_matches(name.replace("_", "-").removeprefix(PREFIX), names, n=1)
    if close:
        return f"; did you mean {prefix + close[0]!r}?"
    return f"; known are {', '.join(prefix + one for one in names)}"


def overruled(options: Options, namespace: argparse.Namespace) -> Options:
    """Return the options without what flake8's own ``select`` and ``ignore`` decide.

    ``--select TPF`` chooses among linters, not among our rules, and decides nothing here.
    """
    chosen = options.chosen
    if _names_rules(getattr(namespace, "select", None)):
        chosen = replace(chosen, select=(), extend_select=())
    if _names_rules(getattr(namespace, "ignore", None)):
        chosen = replace(chosen, ignore=())
    return options if chosen is options.chosen else replace(options, chosen=chosen)


def _names_rules(words: object) -> bool:
    return isinstance(words, (list, tuple)) and any(
        str(word).startswith(ALL) and str(word) != ALL for word in words
    )


def _beside(path: str, value: object) -> object:
    """Return ``value`` with each path in it joined to the folder of the file ``path``."""
    if isinstance(value, str):
        return os.path.join(os.path.dirname(path), value) if value else value
    if isinstance(value, list):
        return [_beside(path, one) for one in value]
    return value
