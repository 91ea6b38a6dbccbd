"""The row that decided if a finding is reported, and the changes that would decide otherwise."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.cli.why.trials import function_of, is_measured, often, same
from flake8_torchperf.cli.why.weighing import rounded_down, worth_of
from flake8_torchperf.findings.catalogue import told_rules
from flake8_torchperf.findings.heat_text import frequency, hidden_by
from flake8_torchperf.findings.match import rule_for
from flake8_torchperf.findings.report import is_worth, least_worth
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.row import FREQUENCY, row_id
from flake8_torchperf.judgement.rows import BY_CAUSE
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.values import tensor_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.cli.why.trials import Trials
    from flake8_torchperf.cli.why.weighing import Worth
    from flake8_torchperf.findings.finding import Finding

RESIDENCE = {
    "device": "on an accelerator",
    "host": "on the host",
    "chosen": "on the device that the program chooses",
    "unknown": "nothing says where: as if on an accelerator",
    BESIDE_HOST: "nothing says where, but it is combined with a tensor on the host",
}
NO_TENSOR = "no tensor is needed"
# Decisions without a row of the table: the reason is too weak, the rule asks for more or less than
# the place's frequency, the calls of the function show that nothing waits, the finding is worth too
# little, or its wait stands straight behind one that stays.
CONFIDENCE, RULE, ARGUMENTS, WORTH, BEHIND = "confidence", "rule", "arguments", "worth", "behind"
STRENGTHS = ("assumed", "inferred", "stated")


@dataclass(frozen=True)
class Decision:
    """One rule's finding in the line, reported or not.

    ``tensor`` is the reason why the value is a tensor, ``sure`` how sure that is ("stated",
    "inferred", "assumed"), ``residence`` where it lies, ``frequency`` how often the place runs.
    ``calls`` are the calls that lead there. ``row`` is the id of the row that decided if the
    finding is reported, in words as ``decided``, and ``rule`` its sentence; where no row did, they
    are "confidence", "rule", "arguments", "worth" or "behind" and "". ``leader`` is the line that
    reports it with its own wait, 0 for the line itself. ``wanted`` is False where the wait itself
    did not matter for that. ``changes`` would change the decision. ``worth`` is the evidence,
    weighed.
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
    leader: int
    wanted: bool
    changes: tuple[str, ...]
    worth: Worth


@dataclass(frozen=True)
class _Decision:
    """The row that decided, its sentence, and both in words; ``wanted`` as for `Decision`."""

    row: str
    words: str
    rule: str = ""
    wanted: bool = False


def judged(finding: Finding, trials: Trials) -> Decision:
    """Return what decided for a finding."""
    reported = trials.tells(finding)
    leader = leader_of(finding, trials) if reported else 0
    decision = _why_told(finding, trials, leader) if reported else _why_left_out(finding, trials)
    operand = None if finding.site.operand is None else tensor_of(finding.site.operand)
    changes = _to_silence(finding, trials) if reported else _to_tell(finding, trials)
    return Decision(
        finding.code,
        finding.column + 1,
        finding.message,
        reported,
        NO_TENSOR if operand is None else operand.reason.describe(line_of),
        _sure(finding),
        "" if operand is None else residence(operand.device, finding.site.placed_at),
        frequency(finding.site),
        tuple(
            f"{one.caller or 'module level'} at {_shown(one.path)}:{one.line}"
            for one in finding.site.heat.frequency.calls
        ),
        decision.row,
        decision.rule,
        decision.words,
        leader,
        decision.wanted,
        tuple(changes),
        worth_of(finding, trials),
    )


def residence(device: str, placed_at: tuple[str, int] | None) -> str:
    """Return where a value lies in words, and the line of another function that put it there."""
    words = RESIDENCE.get(device, device)
    if placed_at is None:
        return words
    path, line = placed_at
    return f"{words}: put there at {_shown(path)}:{line}"


def _shown(path: str) -> str:
    """Return a path from the folder that the command runs in, if the file is below that."""
    below = os.path.relpath(path) if path else ""
    return path if below.startswith(os.pardir) else below


def leader_of(finding: Finding, trials: Trials) -> int:
    """Return the line whose finding stands for this one in a row; 0 if it stands for itself."""
    if not finding.row:
        return 0
    lines = trials.source.splitlines()
    row = [
        one
        for one in trials.found()
        if one.row == finding.row and "noqa" not in " ".join(lines[one.line - 1 : one.end_line])
    ]
    first = row[0] if row else finding
    return 0 if same(first, finding) or first.line == finding.line else first.line


def _sure(finding: Finding) -> str:
    operand = None if finding.site.operand is None else tensor_of(finding.site.operand)
    return "" if operand is None else operand.reason.strength.name.lower()


def _is_doubted(finding: Finding, trials: Trials) -> bool:
    """True if the reason is weaker than the options require."""
    sure = _sure(finding)
    return sure != "" and STRENGTHS.index(sure) < STRENGTHS.index(trials.options.confidence)


def _why_told(finding: Finding, trials: Trials, leader: int) -> _Decision:
    heat = finding.site.heat
    where = f" in line {leader}, whose wait it directly follows" if leader else ""
    if heat.level is not Level.COLD:
        words = f"reported{where}: it runs {frequency(finding.site)}"
        return _Decision(row_id(heat.cause), words, BY_CAUSE[heat.cause].sentence)
    catalogue = told_rules(trials.options.rules, preview=trials.options.preview)
    if rule_for(finding.site, catalogue, Level.HOT) is not None:
        return _Decision(RULE, f"reported{where}: {finding.code} counts however seldom it runs")
    row = BY_CAUSE[heat.hidden_by]
    words = f"reported{where} with --scope all alone: {hidden_by(heat)}"
    return _Decision(row_id(heat.hidden_by), words, row.sentence, row.question != FREQUENCY)


def _why_left_out(finding: Finding, trials: Trials) -> _Decision:
    site = finding.site
    doubt = ""
    if _is_doubted(finding, trials):
        doubt = f"that it is a tensor is only {_sure(finding)}"
    if any(same(one, finding) for one in trials.whatever_worth()):
        least = least_worth(trials.options)
        if is_worth(site, finding.code, least):
            return _Decision(BEHIND, f"left out: {_before(finding)}, and stays")
        words = f"left out: only findings of a worth of {least:g} are reported"
        return _Decision(WORTH, words)
    catalogue = told_rules(trials.options.rules, preview=trials.options.preview)
    if rule_for(site, catalogue, trials.options.scope) is not None:
        if doubt:
            return _Decision(CONFIDENCE, f"left out: {doubt}")
        return _Decision(ARGUMENTS, "left out: what calls pass here shows that it does not wait")
    if site.heat.level is not Level.COLD:
        hottest = replace(site, heat=replace(site.heat, level=Level.LOOP))
        if rule_for(hottest, catalogue, trials.options.scope) is None:
            words = f"{finding.code} reports such a place with --scope all alone"
        else:
            words = f"{finding.code} asks for code that runs more often than {frequency(site)}"
        row, question = "", FREQUENCY
    else:
        words, row = hidden_by(site.heat), BY_CAUSE[site.heat.hidden_by].sentence
        question = BY_CAUSE[site.heat.hidden_by].question
    if doubt:
        return _Decision(CONFIDENCE, f"left out: {doubt}; and {words}", row, question != FREQUENCY)
    name = row_id(site.heat.hidden_by) if row else RULE
    return _Decision(name, f"left out: {words}", row, question != FREQUENCY)


def _before(finding: Finding) -> str:
    """Return where the program has waited straight before a finding."""
    line = finding.site.leader_line
    place = f"line {line}" if line else "a caller of the function"
    return f"{place} has waited straight before it"


def _to_silence(finding: Finding, trials: Trials) -> Iterator[str]:
    """Yield what the user may write or measure so that a finding is not reported."""
    function = function_of(finding)
    yield f"`# noqa: {finding.code}` in the line, with the reason"
    if not trials.tells(finding, cold=(*trials.options.cold, function)):
        yield f'`--cold "{function}"`, where the function runs seldom'
    if finding.site.heat.level is not Level.COLD and is_measured(finding, trials):
        yield "a profile of `torchperf run` in which the line ran once or did not wait"


def _to_tell(finding: Finding, trials: Trials) -> Iterator[str]:
    """Yield what the user may write or measure so that a finding is reported."""
    function = function_of(finding)
    if any(same(one, finding) for one in trials.whatever_worth()):
        yield from _to_tell_of_little_worth(finding, trials)
        return
    doubted = _is_doubted(finding, trials)
    surer = {"confidence": "assumed"} if doubted else {}
    sure = "`--confidence assumed`"
    if doubted and trials.tells(finding, **surer):
        yield "an annotation that says it is a tensor"
        yield sure
        return
    also = f" and {sure}" if doubted else ""
    if trials.tells(finding, hot=(*trials.options.hot, function), **surer):
        yield f'`--hot "{function}"`{also}, where the function runs often'
    if trials.tells(finding, scope=Level.COLD, **surer):  # no other finding replaces it there
        yield f"`--scope all`{also}"
    if doubted or not is_measured(finding, trials) or not _counts_if_often(finding, trials):
        return
    if finding.site.heat.costs_nothing:
        yield "a profile of `torchperf run` on the device, in which the line waited"
    else:
        yield "a profile of `torchperf run` in which the line ran often"


def _to_tell_of_little_worth(finding: Finding, trials: Trials) -> Iterator[str]:
    enough = rounded_down(finding)
    yield f"`--min-worth {enough if trials.tells(finding, min_worth=enough) else 0:g}`"
    if trials.tells(finding, scope=Level.COLD):
        yield "`--scope all`"
    function = function_of(finding)
    if trials.tells(finding, hot=(*trials.options.hot, function)):
        yield f'`--hot "{function}"`, where the function runs often'
    if is_measured(finding, trials):
        yield "a profile of `torchperf run` in which the line waited often"


def _counts_if_often(finding: Finding, trials: Trials) -> bool:
    """True if the rule objects to a place that is left out, once a profile says it ran often."""
    site, scope = finding.site, trials.options.scope
    catalogue = told_rules(trials.options.rules, preview=trials.options.preview)
    if rule_for(site, catalogue, scope) is not None:
        return False  # its calls show that it does not wait
    return rule_for(often(site), catalogue, scope) is not None


def line_of(node: ast.AST) -> int | None:
    """Return the line of a node in the file."""
    return getattr(node, "lineno", None)


def place_in_words(found: Sequence[Finding]) -> str:
    """Return how often the places of findings in one line run."""
    return "; ".join(dict.fromkeys(frequency(one.site) for one in found))
