"""The literal values that a project's texts give an option, by the option's name.

An option is a parameter, a field of a configuration or an argument of a command line. It is
searched for as text, because a project passes its options on through many functions and files.
"""

from __future__ import annotations

import ast
import re
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from flake8_torchperf.project.stores.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Literal: TypeAlias = "bool | int | float | str | None"

_LITERAL = (
    r"(?P<value>True|False|None|-?\d+(?:\.\d*)?(?:e-?\d+)?|\"[^\"\n]*\"|'[^'\n]*')"
    r"[ \t]*(?=[,)\]}\n#;]|$)"
)
# `name = value`, `name: type = value`, `self.name = value`, `config["name"] = value` and
# `"name": value`; `field(default=value)` in the place of the value; and other values.
_GIVEN = (
    r"\b{name}(?:[ \t]*(?::[ \t]*[\w\[\]|., ]{{1,60}})?=(?!=)|[\"']\][ \t]*=(?!=)"
    r"|[\"'][ \t]*:)[ \t]*(?:(?:\w+\.)?[fF]ield\([^)]{{0,200}}?default[ \t]*=[ \t]*)?"
    r"(?:{literal}|(?P<other>[^,)\n#]*))"
)
# The same for the parsed arguments of a command line: `args.name = value`, and the arguments of
# `set_defaults` and `Namespace`.
_GIVEN_PARSED = (
    r"(?:(?<!\bself)\.{name}[ \t]*=(?!=)[ \t]*"
    r"|\b(?:set_defaults|Namespace)\([^()]{{0,400}}?(?<![\w.]){name}[ \t]*=(?!=)[ \t]*)"
    r"(?:{literal}|(?P<other>[^,)\n#]*))"
)
# The same for items of a dict: entries of one that is written out, assignments to an item, and
# `name=value` as an argument of a call.
_GIVEN_ITEM = (
    r"(?:[\"']{name}[\"'](?:\][ \t]*=(?!=)|[ \t]*:)[ \t]*|(?<![\w.]){name}=(?!=))"
    r"(?:{literal}|(?P<other>[^,)\n#]*))"
)
# Sets attributes or items by names that are made at run time, of any object but that of a method.
_KEY = r"\[[^]\n]*\][ \t]*=(?!=)"
SETTING = re.compile(
    rf"setattr\((?!self\b)|(?<!self\.)__dict__(?:\.update|{_KEY})"
    rf"|vars\([^()\n]*\)(?:\.update|{_KEY})"
    r"|set_defaults\(\*\*|Namespace\(\*\*|\bnamespace[ \t]*="
)
SETTING_WORDS = ("setattr", "__dict__", "vars", "set_defaults", "Namespace", "namespace")
# `config.get("name", value)` and `getattr(config, "name", value)`.
_LOOKED_UP = r"[\"']{name}[\"'][ \t]*,[ \t]*{literal}"
# `add_argument("--name", ...)` up to the next argument.
_ARGUMENT = r"[\"']--{dashed}[\"'](?P<rest>(?:(?!add_argument)[^#]){{0,400}})"
_DEFAULT = re.compile(r"default[ \t]*=[ \t]*" + _LITERAL)
# `name: value` in YAML, and `"name": value` in JSON.
_ENTRY = (
    r"(?:^[ \t-]*{name}[ \t]*:[ \t]*(?P<value>[^\n#]*)"
    r"|\"{name}\"[ \t]*:[ \t]*(?P<json>[^,\n}}]*))"
)
# `section:` in YAML, and `settings["section"]["name"]`.
_SECTION = re.compile(r"(?P<indent>[ \t]*)(?P<name>[\w-]+)[ \t]*:[ \t]*(?:#.*)?$")
_KEY_OF_SECTION = r"\[[\"'](?P<section>[\w-]+)[\"']\]\[[\"']{name}[\"']\]"
# An item of a dict, as `settings["name"]` and `settings.get("name")`.
_ITEM = r"(?:\[|\bget\()[\"']{name}[\"']"
# `--name value`, `--name=value`, `--name` and `section.name=value` of a command line.
_TYPED = (
    r"(?<![\w-])(?:--{dashed}(?![\w-])(?:[= \t]+(?P<value>[^\s\\;&|-][^\s\\;&|]*))?"
    r"|(?:[+~]*[\w.]+\.)?{name}=(?P<set>[^\s\\;&|]*))"
)
_OF_YAML = {"true": True, "false": False, "null": None, "~": None, "": None}


# Comments, and strings by their quotes; triple quotes that begin a line are those of a docstring.
_TEXT = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<docstring>(?:(?<=\n)|\A)[ \t]*[rRuU]?(?P<quotes>\"{3}|'{3})(?:\\.|[^\\])*?(?P=quotes))"
    r"|(?P<other>\"{3}|'{3})(?:\\.|[^\\])*?(?P=other)"
    r"|\"(?:\\.|[^\\\"\n])*\"|'(?:\\.|[^\\'\n])*'",
    re.DOTALL,
)
# The bytes of text that stay in memory without their docstrings, because several options are looked
# for in the modules of one program. What is kept is the text itself, and what is left of it.
STRIPPED = 3_000_000
_STRIPPED: Kept[str, str] = Kept(STRIPPED)

# Another option, or a field of a configuration.
_OTHER_OPTION = re.compile(r"[A-Za-z_][\w.]*\s*")


class Given(NamedTuple):
    """The literals that texts give an option, and the ``others`` whose values it is given.

    Not ``whole`` if the value is computed somewhere.
    """

    values: frozenset[Literal]
    whole: bool
    others: frozenset[str] = frozenset()


# Begins the name of an option that is read from the parsed arguments of a command line.
OF_COMMAND_LINE = "--"
# Begins the name of an option that is read as an item of a dict.
OF_ITEM = "["
# Stands between a section of a configuration and the name of an option in it.
IN_SECTION = "."
NOT_GIVEN = Given(frozenset(), False)


def word_of(name: str) -> str:
    """Return the name of an option without what begins it."""
    return name.removeprefix(OF_COMMAND_LINE).removeprefix(OF_ITEM)


def given_as_data(given: Given) -> list[Any]:
    """Return what an option is given as JSON can hold it."""
    return [sorted(map(repr, given.values)), given.whole, sorted(given.others)]


def given_from_data(data: Sequence[Any]) -> Given:
    """Return what `given_as_data` turned into JSON. Raises TypeError or ValueError."""
    values, whole, others = data
    return Given(frozenset(map(_literal_of, values)), whole is True, frozenset(others))


def _literal_of(text: str) -> Literal:
    """Return the literal of a text. Raises TypeError or ValueError for anything else."""
    try:
        value = ast.literal_eval(text)
    except SyntaxError as error:
        raise ValueError(text) from error
    if not isinstance(value, (bool, int, float, str, NoneType)):
        raise TypeError(text)
    return value


def code_of(text: str) -> str:
    """Return a module's text without comments and docstrings, which give an option no value."""
    return _STRIPPED.made(
        text,
        len(text),
        lambda: _TEXT.sub(lambda m: "" if m["comment"] or m["docstring"] else m[0], text),
    )


def values_given(name: str, modules: Iterable[str], settings: Iterable[str] = ()) -> Given:
    """Return the values that the texts of modules, and of files of settings, give an option.

    What a name or an item of a dict holds is no option of the command line, and what a name holds
    is no item of a dict, unless a text passes it on to one.
    """
    word = word_of(name)
    modules = list(modules)
    narrow = {OF_COMMAND_LINE: _GIVEN_PARSED, OF_ITEM: _GIVEN_ITEM}.get(name.removesuffix(word))
    values = None if narrow is None else list(_in_modules(word, modules, narrow))
    if values is None or any(isinstance(one, _Expression) and one.is_itself for one in values):
        values = list(_in_modules(word, modules, _GIVEN))
    literals = {one for one in values if not isinstance(one, _Expression)}
    if name.startswith(OF_ITEM):
        literals.discard(None)  # the default of a parameter of its name
    computed = [one for one in values if isinstance(one, _Expression) and not one.is_itself]
    others = {one.option for one in computed if one.option}
    apart = frozenset[str]() if name.startswith(OF_ITEM) else _sections_apart(word, modules)
    given, whole = _in_settings(word, settings, apart)
    whole = whole and all(one.option for one in computed)
    return Given(frozenset(literals | given), whole, frozenset(others - {word}))


def _in_modules(name: str, modules: Iterable[str], pattern: str) -> Iterator[Literal | _Expression]:
    for text in modules:
        yield from _in_module(name, text, pattern)


def _in_settings(
    name: str, settings: Iterable[str], apart: frozenset[str]
) -> tuple[set[Literal], bool]:
    """Return the values that files of settings give an option, and if these are all."""
    found: set[Literal] = set()
    whole = True
    entry = re.compile(_ENTRY.format(name=re.escape(name)), re.MULTILINE)
    typed = re.compile(_TYPED.format(name=re.escape(name), dashed=_dashed(name)))
    for text in settings:
        found.update(
            of_yaml((m["value"] or m["json"] or "").strip().strip("\"'"))
            for m in entry.finditer(text)
            if not apart or section_at(text, m.start()) not in apart
        )
        for match in typed.finditer(text):
            value = match["value"] or match["set"]
            whole = whole and "$" not in (value or "")
            found.add(True if value is None else of_yaml(value.strip("\"'")))
    return found, whole


def _sections_apart(name: str, modules: Iterable[str]) -> frozenset[str]:
    """Return the sections of settings out of which modules read a key that is no option's value.

    That is a key which is read by both names, ``settings["server"]["watch"]``, where only arguments
    of the command line have its name: no name, field or parameter does, to which it might go.
    """
    reading = re.compile(_KEY_OF_SECTION.format(name=re.escape(name)))
    found: set[str] = set()
    for text in map(code_of, modules):
        parts = {"name": re.escape(name), "literal": _LITERAL}
        if re.search(_GIVEN.format(**parts), text) or re.search(_LOOKED_UP.format(**parts), text):
            return frozenset()
        found.update(m["section"] for m in reading.finditer(text))
    return frozenset(found)


def section_at(text: str, start: int) -> str:
    """Return the name of the section of a YAML file around the line that starts at a place."""
    lines = text[:start].splitlines()
    here = text[start:].partition("\n")[0]
    depth = len(here) - len(here.lstrip())
    for line in reversed(lines):
        heading = _SECTION.match(line)
        if heading is not None and len(heading["indent"]) < depth:
            return heading["name"]
    return ""


def _dashed(name: str) -> str:
    """Return the pattern of an option's name on a command line."""
    return re.escape(name).replace("_", "[-_]")


class _Expression(NamedTuple):
    """A value that the text computes, or the name of the other option that it is."""

    option: str
    is_itself: bool = False


def _expression(name: str, text: str) -> _Expression:
    """Return a value that is no literal, by its text; the option itself may be passed on."""
    if re.search(rf"\b{re.escape(name)}\b", text):
        return _Expression("", is_itself=True)
    named = _OTHER_OPTION.fullmatch(text) is not None
    return _Expression(text.strip().rpartition(".")[2] if named else "")


def _in_module(name: str, text: str, pattern: str) -> Iterator[Literal | _Expression]:
    parts = {
        "name": re.escape(name),
        "literal": _LITERAL,
        "dashed": _dashed(name),
    }
    text = code_of(text)
    for match in re.finditer(pattern.format(**parts), text):
        if match["value"] is not None:
            yield ast.literal_eval(match["value"])
        elif not re.search(_ITEM.format(**parts), match["other"]):
            yield _expression(name, match["other"])
    for match in re.finditer(_LOOKED_UP.format(**parts), text):
        yield ast.literal_eval(match["value"])
    for match in re.finditer(_ARGUMENT.format(**parts), text):
        yield _default(match["rest"])


def _default(rest: str) -> Literal:
    """Return the default of an argument of a command line, from the rest of its definition."""
    if "store_true" in rest:
        return False
    if "store_false" in rest:
        return True
    found = _DEFAULT.search(rest)
    return None if found is None else ast.literal_eval(found["value"])


def of_yaml(text: str) -> Literal:
    """Return the value of a text in YAML; the text itself if it is no literal."""
    if text.lower() in _OF_YAML:
        return _OF_YAML[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, (bool, int, float, str)) else text
