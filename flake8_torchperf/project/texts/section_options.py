"""The literal values that a project's texts give an option in a section of a configuration.

That is ``config.SECTION.NAME``, where a module's own level makes the section empty, and its
options are assigned one by one. Other sections may have options of the same name.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.project.file_index import is_test_path
from flake8_torchperf.project.option_values import (
    IN_SECTION,
    NOT_GIVEN,
    Given,
    code_of,
    of_yaml,
    section_at,
)
from flake8_torchperf.project.texts.settings_files import read_documents, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flake8_torchperf.project.option_values import Literal

# `config.SECTION = Node()` at a module's own level.
_MADE = (
    r"^\w[\w.]*\.{section}[ \t]*=[ \t]*(?:\w+\.)*(?P<made>\w+)\("
    r"(?:new_allowed[ \t]*=[ \t]*\w+)?\)[ \t]*$"
)
# `config.SECTION = other`: an assignment that shows no empty node.
_ASSIGNED = r"\b{section}[ \t]*=(?!=)"
# `config.SECTION.NAME = value`.
_GIVEN = (
    r"\.{section}\.{name}[ \t]*=(?!=)[ \t]*(?:(?P<value>True|False|None"
    r"|-?\d+(?:\.\d*)?(?:e-?\d+)?|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(?=[\n#;]|$))?"
)
# `node.NAME = value`, `NAME=value`, `"NAME": value`, `"NAME"]` and `"SECTION.NAME"`: ways to give
# the option a value that may be meant for another section.
_UNCLEAR = (
    r"(?<![\w.])\w+\.{name}[ \t]*=(?!=)|[(,][ \t\n]*{name}[ \t]*=(?!=)"
    r"|[\"'](?:{section}\.)?{name}[\"']"
)
# `NAME: value` in YAML, at the beginning of a line.
_ENTRY = r"^[ \t-]*{name}[ \t]*:[ \t]*(?P<value>[^\n#]*)"
# `SECTION: {{NAME: value}}` on one line, `"SECTION"` in JSON, and `SECTION: &anchor`.
_OTHER = r"\b{section}\b[^\n]*\b{name}\b|\"{section}\"|\b{section}[ \t]*:[ \t]*[^\s#]"
# `SECTION.NAME value` and `SECTION.NAME=value` of a command line.
_TYPED = r"\b{section}\.{name}\b(?:[= \t]+(?P<value>[^\s\\;&|`]+))?"


def values_in_section(
    dotted: str,
    folder: str,
    texts: Mapping[str, bytes | str],
    that_say: Callable[[str], tuple[str, ...] | None],
) -> Given:
    """Return the values that the texts of a folder give an option of a section.

    Documents count, because they show command lines. ``that_say`` returns the modules among
    ``texts`` that hold a word, None if they are many.
    """
    section, _, name = dotted.rpartition(IN_SECTION)
    held = (texts[path] for path in that_say(section) or () if not is_test_path(path))
    modules = [one.decode("utf-8", "replace") for one in held if isinstance(one, bytes)]
    parts = {"section": re.escape(section), "name": re.escape(name)}
    found = _in_modules(modules, parts, lambda made: that_say(f"class {made}") != ())
    if not found:
        return NOT_GIVEN
    settings = read_settings(folder).that_say(section)
    given = _in_settings(section, settings + read_documents(folder).that_say(dotted), parts)
    return NOT_GIVEN if given is None else Given(frozenset(found | given), whole=True)


def _in_modules(
    modules: Iterable[str], parts: dict[str, str], is_of_project: Callable[[str], bool]
) -> set[Literal]:
    """Return the values that modules assign to an option of a section; none if that is unclear.

    A class of the project may give the section options of its own.
    """
    made: set[str] = set()
    found: set[Literal] = set()
    for text in map(code_of, modules):
        nodes = [m["made"] for m in re.finditer(_MADE.format(**parts), text, re.MULTILINE)]
        is_clear = len(nodes) == len(re.findall(_ASSIGNED.format(**parts), text))
        if not is_clear or re.search(_UNCLEAR.format(**parts), text):
            return set()
        made.update(nodes)
        for match in re.finditer(_GIVEN.format(**parts), text):
            if match["value"] is None:
                return set()
            found.add(ast.literal_eval(match["value"]))
    return set() if not made or any(map(is_of_project, made)) else found


def _in_settings(
    section: str, settings: Iterable[str], parts: dict[str, str]
) -> set[Literal] | None:
    """Return the values that files of settings give an option of a section; None if unclear."""
    found: set[Literal] = set()
    other = re.compile(_OTHER.format(**parts))
    typed = re.compile(_TYPED.format(**parts))
    for text in settings:
        for match in typed.finditer(text):
            if match["value"] is None or "$" in match["value"]:
                return None
            found.add(of_yaml(match["value"].strip("\"'")))
        if other.search(typed.sub("", text)):
            return None
        found.update(
            of_yaml(match["value"].strip().strip("\"'"))
            for match in re.finditer(_ENTRY.format(**parts), text, re.MULTILINE)
            if section_at(text, match.start()) in (section, "")
        )
    return found
