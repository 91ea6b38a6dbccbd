"""An account of one line in plain values: its findings, its values, and the reasons for both."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.cli.why.decisions import Decision, judged, line_of, place_in_words, residence
from flake8_torchperf.cli.why.silence import NO_TORCH, Silence, silences
from flake8_torchperf.cli.why.trials import Trials, in_line, same
from flake8_torchperf.findings.heat_text import frequency
from flake8_torchperf.linter import values_in
from flake8_torchperf.prefilter import concerns
from flake8_torchperf.project.files import split_lines
from flake8_torchperf.values.values import (
    BoundMethod,
    ClassValue,
    Compared,
    External,
    Function,
    Imported,
    Instance,
    NDArray,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Union,
    UnknownValue,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.linter import LineValues
    from flake8_torchperf.options import Options
    from flake8_torchperf.values.values import Value

_NAMING = (External, Imported, BoundMethod, Function, ClassValue)
# Longer source is cut in its middle.
LONGEST = 60


@dataclass(frozen=True)
class Known:
    """An expression with its ``kind`` in words; a tensor also has a residence, with the reason."""

    expression: str
    column: int
    kind: str
    residence: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Account:
    """All that is known in a line of a file.

    ``frequency`` is how often the line runs, or its parts where they differ; "" if nothing is
    computed there. ``silent`` says why there are no findings.
    """

    path: str
    line: int
    source: str
    function: str
    frequency: str
    silenced: bool
    findings: tuple[Decision, ...]
    silent: tuple[Silence, ...]
    values: tuple[Known, ...]


def account_of(
    source: str, path: str, line: int, options: Options, trials: Trials | None = None
) -> Account:
    """Lint a module as configured and with everything reported. Raises SyntaxError.

    ``trials`` are those of the module under these settings, which accounts of further lines share.
    """
    ast.parse(source)
    lines = split_lines(source)
    text = lines[line - 1]
    if not concerns(lines, path):
        silent = (Silence("no-torch", NO_TORCH),)
        return Account(path, line, text.strip(), "", "", False, (), silent, ())
    trials = trials or Trials(source, path, options)
    found = _findings(trials, line)
    known = values_in(source, path, line, options)
    return Account(
        path,
        line,
        text.strip(),
        "" if known.info is None else known.info.qualname,
        _frequency(found, known),
        "noqa" in text.lower(),
        tuple(judged(one, trials) for one in found),
        () if found else silences(trials, line, known),
        tuple(_values(known)),
    )


def _findings(trials: Trials, line: int) -> list[Finding]:
    """Return the findings in a line as they are reported, and then those that are not."""
    found: list[Finding] = []
    for findings in (trials.found(), trials.whatever_worth(), trials.everything()):
        here = in_line(findings, line)
        found += [one for one in here if not any(same(one, told) for told in found)]
    return found


def _frequency(found: list[Finding], known: LineValues) -> str:
    """Describe how often the line runs, as far as its text, its function and the callers show."""
    if found:
        return place_in_words(found)
    if known.place is None:
        return ""
    return "once, at module level" if _is_module_level(known) else frequency(known.place)


def _is_module_level(known: LineValues) -> bool:
    return known.info is None and known.place is not None and not known.place.loops


def _values(known: LineValues) -> list[Known]:
    """Describe each value once, except literals and names of modules and functions."""
    found: dict[str, Known] = {}
    for node, value in known.values:
        if not isinstance(node, ast.Constant) and not isinstance(value, _NAMING):
            told = _known(node, value, known.placed_at.get(id(node)))
            found.setdefault(told.expression, told)
    return list(found.values())


def _known(node: ast.expr, value: Value, placed_at: tuple[str, int] | None) -> Known:
    text = " ".join(ast.unparse(node).split())
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    column = node.col_offset + 1
    tensor = tensor_of(value)
    if tensor is not None and not isinstance(value, Scalar):
        kind = "a tensor" if isinstance(value, Tensor) else "may be a tensor"
        dtype = "" if tensor.dtype == "unknown" else f" of {tensor.dtype}"
        size = ", of one value" if tensor.scalar else ""
        reason = f"{tensor.reason.describe(line_of)} ({tensor.reason.strength.name.lower()})"
        where = residence(tensor.device, placed_at)
        return Known(text, column, f"{kind}{dtype}{size}", where, reason)
    return Known(text, column, _kind(value))


def _kind(value: Value) -> str:
    match value:
        case UnknownValue() | Compared():
            return "nothing is known of it"
        case Scalar(kind=kind, known=True, value=known) if kind != "str" and known is not None:
            return f"{kind} {known!r} on the host"
        case Scalar(kind=kind, read=read) if read is not None:
            return f"{kind} on the host, read from a tensor"
        case Scalar(kind=kind):
            return f"{kind} on the host"
        case NoneValue():
            return "None"
        case NDArray():
            return "an array of numpy, on the host"
        case Sequence(kind=kind):
            return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        case Instance(name=name):
            return f"an object of {name}"
        case Union(options=options):
            return " or ".join(dict.fromkeys(map(_kind, options)))
    return type(value).__name__.strip("_").lower()
