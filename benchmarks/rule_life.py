"""Each rule's findings in the samples of applications that the project had never named.

    python benchmarks/rule_life.py

Prints the table of docs/rule-life.md: the verdicts on what the linter reported by default when a
sample was drawn, summed over all such samples, and what the criteria say of a rule. It lints
nothing; `judged.py` says how many of the places the linter of today reports.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judged import FOLDER, ROUNDS

from flake8_torchperf.findings.catalogue import load_catalogue

# A stable rule has so many A at least and so many C at most, each as a share, over two samples with
# so many findings together.
LEAST_WORTH, MOST_WRONG, SAMPLES, LEAST_JUDGED = 0.60, 0.05, 2, 10


def first_sight() -> dict[str, list[Counter[str]]]:
    """Return the verdicts by code, one count for each sample that holds the code."""
    found: dict[str, list[Counter[str]]] = defaultdict(list)
    for path in sorted(FOLDER.glob("*.jsonl")):
        if any(word in path.name for word in ROUNDS):
            counted: dict[str, Counter[str]] = defaultdict(Counter)
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if row.get("by_default", True):
                    counted[row["code"]][row["verdict"]] += 1
            for code, verdicts in counted.items():
                found[code].append(verdicts)
    return found


def judgement(samples: Iterable[Counter[str]]) -> str:
    """Return what the criteria say of a rule with these verdicts."""
    held = list(samples)
    verdicts = sum(held, Counter[str]())
    judged = sum(verdicts.values())
    if judged < LEAST_JUDGED or len(held) < SAMPLES:
        return "too few judged"
    worth, wrong = verdicts["A"] / judged, verdicts["C"] / judged
    return "meets them" if worth >= LEAST_WORTH and wrong <= MOST_WRONG else "falls short"


def table(found: Mapping[str, list[Counter[str]]]) -> str:
    """Return the rules as a table, each with its verdicts and the judgement."""
    rows = ["| rule | A, B, C | samples | status | criteria |", "|---|---|---|---|---|"]
    for rule in load_catalogue().rules:
        samples = found.get(rule.code, [])
        verdicts = sum(samples, Counter[str]())
        counts = ", ".join(str(verdicts[one]) for one in "ABC")
        told = f"| {rule.code} {rule.name} | {counts} | {len(samples)} | {rule.status} "
        rows.append(f"{told}| {judgement(samples)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(first_sight()))
