"""The lines that sum up a run on a terminal, and the labels of ``--statistics``."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.formats import FOR_PEOPLE, TEXT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from flake8.statistics import Statistics

    from flake8_torchperf.history.finding_record import FindingRecord

# The codes that are named, the most frequent first; the others are dots.
_NAMED = 3
# So many of the best findings are named where there are more than so many.
_BEST, _MANY = 3, 10
_COSTS = ("per step", "per element", "per request")


def wanted(options: argparse.Namespace) -> bool:
    """True if a person reads the output on a terminal, in a format for people."""
    people = options.format in ("default", TEXT, *FOR_PEOPLE) and not options.quiet
    return people and not options.output_file and sys.stdout.isatty()


def summary(found: Mapping[str, Sequence[FindingRecord]], left_over: int = 0) -> str:
    """Return lines about the findings of each file: the best of many, and the numbers.

    "" if there are no findings; ``left_over`` is the number of those that were not reported.
    """
    told = [one for ones in found.values() for one in ones]
    if not told:
        return ""
    codes = Counter(one.code for one in told).most_common()
    named = [f"{count} {code}" for code, count in codes[:_NAMED]]
    rest = ["..."] if len(codes) > _NAMED else []
    files = sum(1 for ones in found.values() if ones)
    line = f"{number(len(told), 'finding')} in {number(files, 'file')}"
    costs = Counter(one.cost for one in told)
    parts = [f"{line} ({', '.join([*named, *rest])})"]
    parts += [f"{costs[cost]} {cost}" for cost in _COSTS if costs[cost]]
    fixable = sum(one.fixable for one in told)
    last = ", ".join(parts) + (f"; {fixable} with a safe fix" if fixable else "")
    last += f"; {number(left_over, 'finding')} of less worth left out" if left_over else ""
    return "\n".join([*_best(found), last]) if len(told) > _MANY else last


def _best(found: Mapping[str, Sequence[FindingRecord]]) -> list[str]:
    """Return lines that name the best findings, with their worth."""
    every = [(name, one) for name, ones in found.items() for one in ones]
    best = sorted(every, key=lambda pair: -pair[1].worth)[:_BEST]
    head = f"the {_BEST} best findings, with their worth:"
    return [head, *(f"  {one.worth:.2f} {_place(name, one)}: {one.text}" for name, one in best)]


def _place(name: str, one: FindingRecord) -> str:
    return f"{name}:{one.line}:{one.column + 1}"


def statistics(counted: Statistics) -> list[str]:
    """Return flake8's lines, with a rule's name where flake8 shows its first message."""
    # Needs the rule pages, which a run without findings never reads.
    from flake8_torchperf.cli.report.reported import name_of, rules

    known = rules()
    lines = []
    for code in counted.error_codes():
        of_code = list(counted.statistics_for(code))
        total = sum(one.count for one in of_code)
        label = name_of(code, known) if code in known else f"{code} {of_code[0].message}"
        lines.append(f"{total:<5} {label}")
    return lines


def number(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
