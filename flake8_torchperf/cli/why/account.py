"""An account of one line in plain values: its findings, its values, and the reasons for both."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.findings.heat_text import hidden_by, place, reason_for
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.rows import BY_CAUSE, FREQUENCY, row_id
from flake8_torchperf.linter import lint, values_in
from flake8_torchperf.project.resolver import split_lines
from flake8_torchperf.values.values import (
    BESIDE_HOST,
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
    from flake8_torchperf.findings.model import Finding
    from flake8_torchperf.judgement.heat import Heat
    from flake8_torchperf.options import Options
    from flake8_torchperf.values.values import Value

RESIDENCE = {
    "device": "on an accelerator",
    "host": "on the host",
    "unknown": "nothing says where: as if on an accelerator",
    BESIDE_HOST: "nothing says where, but it is combined with a tensor on the host",
}
_NAMING = (External, Imported, BoundMethod, Function, ClassValue)
NO_TENSOR = "no tensor is needed"
# Longer source is cut in its middle.
LONGEST = 60


@dataclass(frozen=True)
class Judged:
    """One rule's finding in the line, reported or not.

    ``tensor`` is the reason why the value is a tensor, ``sure`` how sure that is ("stated",
    "inferred", "assumed"), ``residence`` where it lies, ``frequency`` how often the place runs.
    ``calls`` are the calls that lead there. ``row`` is the id of the row that decided if the
    finding is reported, in words as ``decided``, and ``rule`` its sentence; they are "confidence"
    and "" where the reason was too weak. ``wanted`` is False where the wait itself did not matter
    for that. ``changes`` would change the decision.
    """

    code: str
    column: int
    message: str
    reported: bool
    tensor: str
    sure: str
    residence: str
    frequency: str
    calls: tuple[str, ...]
    row: str
    rule: str
    decided: str
    wanted: bool
    changes: tuple[str, ...]


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
    """All that is known in a line of a file."""

    path: str
    line: int
    source: str
    function: str
    frequency: str
    silenced: bool
    findings: tuple[Judged, ...]
    values: tuple[Known, ...]


def account_of(source: str, path: str, line: int, options: Options) -> Account:
    """Lint a module as configured and with everything reported. Raises SyntaxError."""
    whole = replace(options, scope=Level.COLD, confidence="assumed", explain=False, review=True)
    reported = _in_line(lint(source, path, options), line)
    every = _in_line(lint(source, path, whole), line)
    told = {(one.code, one.column): one for one in reported}
    known = values_in(source, path, line, options)
    hidden = [one for one in every if (one.code, one.column) not in told]
    text = split_lines(source)[line - 1]
    judged = [_judged(one, options, reported=True) for one in reported]
    judged += [_judged(one, options, reported=False) for one in hidden]
    return Account(
        path,
        line,
        text.strip(),
        known.function,
        _frequency_of(known.heat),
        "noqa" in text.lower(),
        tuple(judged),
        tuple(_values(known.values)),
    )


def _in_line(found: list[Finding], line: int) -> list[Finding]:
    return [one for one in found if one.line <= line <= max(one.line, one.end_line)]


def _judged(finding: Finding, options: Options, *, reported: bool) -> Judged:
    site = finding.site
    operand = None if site.operand is None else tensor_of(site.operand)
    sure = "" if operand is None else operand.reason.strength.name.lower()
    heat = site.heat
    frequency = f"{heat.cost.value}, {place(site).text}"
    doubted = not reported and _is_doubted(sure, options)
    cause = heat.cause if reported else heat.hidden_by
    decided = _decided(finding, frequency, reported=reported, doubted=doubted, sure=sure)
    return Judged(
        finding.code,
        finding.column + 1,
        finding.message,
        reported,
        NO_TENSOR if operand is None else operand.reason.describe(_line_of),
        sure,
        "" if operand is None else RESIDENCE.get(operand.device, operand.device),
        frequency,
        tuple(f"{one.caller or 'module level'} at {one.path}:{one.line}" for one in heat.calls),
        "confidence" if doubted else row_id(cause),
        "" if doubted else BY_CAUSE[cause].sentence,
        decided,
        not reported and not doubted and BY_CAUSE[cause].question != FREQUENCY,
        _changes(finding, reported=reported, doubted=doubted),
    )


def _is_doubted(sure: str, options: Options) -> bool:
    """True if the reason is weaker than the options require."""
    order = ("assumed", "inferred", "stated")
    return sure != "" and order.index(sure) < order.index(options.confidence)


def _decided(finding: Finding, frequency: str, *, reported: bool, doubted: bool, sure: str) -> str:
    heat = finding.site.heat
    if reported:
        return f"reported: it runs {frequency}"
    if doubted:
        return f"left out: that it is a tensor is only {sure}"
    if heat.level is Level.COLD:
        return f"left out: {hidden_by(heat)}"
    return f"left out: {finding.code} asks for code that runs more often than {frequency}"


def _changes(finding: Finding, *, reported: bool, doubted: bool) -> tuple[str, ...]:
    """Return what the user may write or measure to change the decision."""
    function = finding.site.function.replace(".<locals>", "")
    if reported:
        return (
            f"`# noqa: {finding.code}` in the line, with the reason",
            f'`--cold "{function}"`, where the function runs seldom',
            "a profile of `torchperf run` in which the line ran once or did not wait",
        )
    if doubted:
        return ("an annotation that says it is a tensor", "`--confidence assumed`")
    heat = finding.site.heat
    if heat.level is Level.COLD and BY_CAUSE[heat.hidden_by].question != FREQUENCY:
        return ("`--scope all`", "a profile of `torchperf run` in which the line waited")
    return (
        f'`--hot "{function}"`, where the function runs often',
        "`--scope all`",
        "a profile of `torchperf run` in which the line ran often",
    )


def _frequency_of(heat: Heat | None) -> str:
    """Describe how often a function runs, as far as its name, its text and its callers show."""
    if heat is None:
        return "once, at module level"
    words = hidden_by(heat) if heat.level is Level.COLD else reason_for(heat)
    return {
        Level.COLD: f"seldom, or nobody knows: {words}",
        Level.HOT: f"as often as it is called: {words}",
        Level.STEP: f"in each step: {words}",
        Level.LOOP: f"in a loop: {words}",
    }[heat.level]


def _values(values: list[tuple[ast.expr, Value]]) -> list[Known]:
    """Describe each value once, except literals and names of modules and functions."""
    found: dict[str, Known] = {}
    for node, value in values:
        if not isinstance(node, ast.Constant) and not isinstance(value, _NAMING):
            known = _known(node, value)
            found.setdefault(known.expression, known)
    return list(found.values())


def _known(node: ast.expr, value: Value) -> Known:
    text = " ".join(ast.unparse(node).split())
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    column = node.col_offset + 1
    tensor = tensor_of(value)
    if tensor is not None and not isinstance(value, Scalar):
        kind = "a tensor" if isinstance(value, Tensor) else "may be a tensor"
        dtype = "" if tensor.dtype == "unknown" else f" of {tensor.dtype}"
        size = ", of one value" if tensor.scalar else ""
        reason = f"{tensor.reason.describe(_line_of)} ({tensor.reason.strength.name.lower()})"
        residence = RESIDENCE.get(tensor.device, tensor.device)
        return Known(text, column, f"{kind}{dtype}{size}", residence, reason)
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


def _line_of(node: ast.AST) -> int | None:
    return getattr(node, "lineno", None)
