"""Types that a docstring states: of parameters, attributes and results."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.stated_types.annotations import SEQUENCES, annotated
from flake8_torchperf.project.module_index import ModuleMap
from flake8_torchperf.syntax.positions import UnreadableError, parse_expression_text
from flake8_torchperf.values.named_types import LEGACY_TENSORS, instance_of
from flake8_torchperf.values.values import (
    NUMBER,
    UNKNOWN,
    Opaque,
    Reason,
    Sequence,
    Tensor,
    Value,
    union,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis

# Google: "x (torch.Tensor): ..."; NumPy: "x : torch.Tensor", "x, y : Tensor"; Sphinx:
# ":type x: torch.Tensor" and ":param torch.Tensor x: ..."; in brackets: "x [torch.Tensor] - ...".
_NAMES = r"(?P<names>[*`]{0,4}\w+`{0,2}(?:,[ \t]*[*`]{0,4}\w+`{0,2})*)"
PARAMETER_PATTERNS = (
    re.compile(rf"^[ \t]*{_NAMES}[ \t]*\((?P<type>[^\n]+?)\)[ \t]*(?::|--|-)", re.M),
    re.compile(
        rf"^[ \t]*(?:-[ \t]+)?{_NAMES}:?[ \t]+\[(?P<type>[^\n]+?)\][ \t]+-(?:[ \t]|$)", re.M
    ),
    re.compile(rf"^[ \t]*{_NAMES}[ \t]*:[ \t]+(?P<type>[^\n]+)$", re.M),
    re.compile(r":type[ \t]+(?P<names>\w+)[ \t]*:[ \t]*(?P<type>[^\n]+)"),
    re.compile(r":param[ \t]+(?P<type>[^\n:]+?)[ \t]+(?P<names>\w+)[ \t]*:"),
)
# Google: the line after "Returns:", up to its colon; NumPy: the line after "Returns" and its rule,
# a name before a colon left out; Sphinx: ":rtype: torch.Tensor".
RESULT_PATTERNS = (
    re.compile(r"^[ \t]*Returns?:[ \t]*\n[ \t]+(?P<type>[^\n]+?)(?:[ \t]*:(?:[ \t]|$)|$)", re.M),
    re.compile(r"^[ \t]*Returns?[ \t]*\n[ \t]*-{3,}[ \t]*\n[ \t]*(?:\w+[ \t]*:[ \t]+)?"
               r"(?P<type>[^\n]+)$", re.M),
    re.compile(r":rtype:[ \t]*(?P<type>[^\n]+)"),
)  # fmt: skip
# NumPy: "log_probs : torch.Tensor" and "attn : torch.Tensor", one below the other: a tuple.
SEVERAL_RESULTS = re.compile(
    r"^[ \t]*Returns?[ \t]*\n[ \t]*-{3,}[ \t]*\n"
    r"(?P<text>(?P<indent>[ \t]*)\w+[ \t]*:[ \t]+[^\n]+\n(?:(?P=indent)[ \t]+[^\n]+\n)*"
    r"(?:(?P=indent)\w+[ \t]*:[ \t]+[^\n]+(?:\n|$)(?:(?P=indent)[ \t]+[^\n]+(?:\n|$))*)+)",
    re.M,
)
# "mask (Tensor): a boolean mask", ":param mask: A :obj:`torch.BoolTensor`": its first lines.
ENTRY = re.compile(
    r"^[ \t]*(?::(?:param|type)[^:\n]*?[ \t])?[*`]{0,4}(?P<name>\w+)`{0,2}[ \t]*"
    r"(?P<text>[:(][^\n]+(?:\n[ \t]+(?![^\n]*?\w[ \t]*(?:\([^\n]*\))?[ \t]*:[ \t])[^\n]+)?)",
    re.M,
)
WORD = re.compile(r"\w+")
BOOLEAN = re.compile(
    r"\bBoolTensor\b|\btorch\.bool\b|\bbool(?:ean)?[ -](?:valued )?(?:tensor|mask)\b"
    r"|\b(?:tensor|mask) of (?:bool|boolean)s?\b",
    re.I,
)
OTHER_DTYPE = re.compile(r"\b(?:Long|Float|Byte|Int)Tensor\b|\bfloat|\bint(?:eger)?s?\b", re.I)
ROLES = re.compile(r":(?:class|obj|py:class|math):|`|~|\*")
TENSOR = re.compile(
    r"^(?:a |an |the |optional |input |output |\d-?[dD] )*"
    r"(?:torch\.)?(?P<type>\w*Tensor)\b(?!-)(?P<rest>.*)$"
)
LISTS = re.compile(
    r"^(?:an? |the )*(?P<kind>list|tuple|sequence|iterable|array)s? *"
    r"(?:\[(?:torch\.)?Tensors?\]|of (?:torch\.)?[Tt]ensors?\b|\((?:torch\.)?Tensor\))"
    r"(?P<rest>.*)$",
    re.I,
)
HOST = re.compile(r"^(?:python )?(int|float|bool|str|string|number)\b(?P<rest>.*)$")
LOADER = re.compile(
    r"^(?:an? |the )*(?:torch\.)?(?:utils\.data\.)?DataLoader\b(?!s|\[)(?P<rest>.*)$"
)
OTHER_TYPE = re.compile(
    r"\b(?:or|\|)\s*(?!None\b)|\bint\b|\bfloat\b|\bnp\b|ndarray|\blist\b|\bNumber\b"
)
# An annotation with brackets or bars, and the text about its default after it.
GENERIC = re.compile(
    r"^(?P<type>[\w.]+ *\[.*\]|[\w.]+(?: *\| *[\w.]+)+)(?:,? *(?:optional|default).*)?$"
)
# The meanings of names in a docstring, whatever its module imports.
NAMES = ModuleMap(
    "<docstrings>",
    "",
    (),
    None,
    None,
    imports={
        "torch": "torch",
        "np": "numpy",
        "numpy": "numpy",
        **{name: f"torch.{name}" for name in ("Tensor", *LEGACY_TENSORS)},
    },
)


def documented(docstring: str, name: str, reason: Reason, analysis: Analysis) -> Value:
    """Return the value that a docstring states for a parameter or attribute, or UNKNOWN."""
    if name not in docstring:
        return UNKNOWN
    for types in _types(docstring):
        if name in types:
            return _stated(types[name], reason, analysis)
    return UNKNOWN


@lru_cache(maxsize=16)
def _types(docstring: str) -> tuple[dict[str, str], ...]:
    """Return, for each style of entry, the type in the first entry of each name."""
    found: list[dict[str, str]] = []
    for pattern in PARAMETER_PATTERNS:
        types: dict[str, str] = {}
        for entry in pattern.finditer(docstring):
            for name in WORD.findall(entry["names"]):
                types.setdefault(name, entry["type"])
        found.append(types)
    return tuple(found)


def documented_result(docstring: str, reason: Reason, analysis: Analysis) -> Value:
    """Return the value that a docstring states for its function's result, or UNKNOWN."""
    several = SEVERAL_RESULTS.search(docstring)
    if several:
        entries = re.findall(rf"^{several['indent']}\w+[ \t]*:[ \t]+(.+)$", several["text"], re.M)
        items = tuple(_stated(text, reason, analysis) for text in entries)
        return Sequence("tuple", UNKNOWN, items)
    for pattern in RESULT_PATTERNS:
        found = pattern.search(docstring)
        if found:
            return _stated(found["type"], reason, analysis)
    return UNKNOWN


def documented_as_boolean(docstring: str, name: str) -> bool:
    """True if a docstring calls a tensor boolean and names no other dtype for it."""
    if name not in docstring:
        return False
    texts = _entries(docstring).get(name, ())
    if any(OTHER_DTYPE.search(text) for text in texts):
        return False
    return any(BOOLEAN.search(text) for text in texts)


@lru_cache(maxsize=16)
def _entries(docstring: str) -> dict[str, list[str]]:
    """Return the entries for each name, in the order of the text.

    The result is empty for a docstring that does not speak of booleans.
    """
    found: dict[str, list[str]] = {}
    if BOOLEAN.search(ROLES.sub("", docstring)):
        for entry in ENTRY.finditer(docstring):
            found.setdefault(entry["name"], []).append(ROLES.sub("", entry["text"]))
    return found


def _stated(text: str, reason: Reason, analysis: Analysis) -> Value:
    text = ROLES.sub("", text).strip()
    generic = GENERIC.match(text)
    value = UNKNOWN if generic is None else _generic(generic["type"], reason, analysis)
    return _in_words(text, reason) if value is UNKNOWN else value


def _generic(text: str, reason: Reason, analysis: Analysis) -> Value:
    """Return the type of ``Optional[Tensor]`` or ``Tensor | None``; UNKNOWN for similar prose."""
    try:
        return annotated(parse_expression_text(text), NAMES, analysis, reason)
    except UnreadableError:
        return UNKNOWN


def _in_words(text: str, reason: Reason) -> Value:
    tensor = TENSOR.match(text)
    if tensor:
        value = instance_of(f"torch.{tensor['type']}", reason)
        if not isinstance(value, Tensor):
            return UNKNOWN
        rest = re.sub(r"\([^)]*\)|\[[^\]]*\]", "", tensor["rest"])
        return union((value, Opaque("something else"))) if OTHER_TYPE.search(rest) else value
    several = LISTS.match(text)
    if several:
        kind = SEQUENCES.get(several["kind"].lower(), several["kind"].lower())
        element = Tensor(reason)
        value = Sequence(kind, element)
        alone = not OTHER_TYPE.search(several["rest"]) and "Tensor" not in several["rest"]
        return value if alone else union((value, element))
    loader = LOADER.match(text)
    if loader and not OTHER_TYPE.search(loader["rest"]):
        return instance_of("torch.utils.data.DataLoader", reason)
    host = HOST.match(text)
    if host and not OTHER_TYPE.search(host["rest"]) and "ensor" not in host["rest"]:
        if host[1] == "number":
            return NUMBER
        return instance_of(f"builtins.{host[1].replace('string', 'str')}", reason)
    return UNKNOWN
