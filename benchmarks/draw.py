"""Draws findings for a reader to judge, and joins the verdicts to them.

    python benchmarks/draw.py draw CLONE ... --key KEY --questions QUESTIONS
    python benchmarks/draw.py join --key KEY --verdicts VERDICTS --to benchmarks/judged/FILE.jsonl

Each CLONE is a work tree whose folder is named OWNER+NAME. The same number of findings is drawn
from each: some that are reported by default, and some that only scope `all` reports, at most two of
a file where there are enough. QUESTIONS shows the reader places and messages in random order,
without the scope and the words for the frequency. VERDICTS holds a line of JSON for each place:
``n``, ``verdict`` and ``why``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

MOST_OF_A_FILE = 2
FINDING = re.compile(
    r"(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): (?P<code>TPF\d{3}) (?P<words>.*)"
)
# The part of a message that says how often, and how the fix is called.
FREQUENCY = re.compile(r",? per (element|step|call)( \([^)]*\))?")
Row = dict[str, Any]


def findings(clone: Path, scope: str) -> list[Row]:
    """Return the findings in a clone outside tests; raises RuntimeError if flake8 fails."""
    command = [sys.executable, "-m", "flake8", "--isolated", "--select=TPF", "-j2", "."]
    command += ["--exclude=tests,test,.git", f"--torchperf-scope={scope}"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    if done.returncode != bool(done.stdout):
        raise RuntimeError(f"flake8 failed in {clone}: {done.stderr.strip()}{done.stdout[:300]}")
    rows = []
    for text in done.stdout.splitlines():
        match = FINDING.fullmatch(text)
        if match is not None and match["code"] < "TPF900":
            row: Row = match.groupdict()
            path = row["path"].removeprefix("./")
            rows.append(
                {**row, "path": path, "line": int(row["line"]), "column": int(row["column"])}
            )
    return rows


def sample(rows: list[Row], number: int, chance: random.Random) -> list[Row]:
    """Return some rows at random, at most ``MOST_OF_A_FILE`` of a file if there are enough."""
    order = chance.sample(rows, len(rows))
    taken: Counter[str] = Counter()
    first: list[Row] = []
    rest: list[Row] = []
    for row in order:
        taken[row["path"]] += 1
        (first if taken[row["path"]] <= MOST_OF_A_FILE else rest).append(row)
    return [*first, *rest][:number]


def drawn(clone: Path, default: int, hidden: int, chance: random.Random) -> list[Row]:
    """Return the findings drawn from one clone, each with its repository and commit."""
    command = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    told = findings(clone, "hot")
    at = {(one["path"], one["line"]) for one in told}
    others = [one for one in findings(clone, "all") if (one["path"], one["line"]) not in at]
    print(f"{clone.name}: {len(told)} by default, {len(others)} hidden")
    source = {"repository": clone.name.replace("+", "/", 1), "commit": commit}
    return [
        {**source, **row, "by_default": shown}
        for rows, number, shown in ((told, default, True), (others, hidden, False))
        for row in sample(rows, number, chance)
    ]


def draw(arguments: argparse.Namespace) -> None:
    """Write the key and the questions."""
    chance = random.Random(arguments.seed)
    count = len(arguments.clones)
    default, hidden = arguments.default // count, arguments.hidden // count
    rows = [row for clone in arguments.clones for row in drawn(clone, default, hidden, chance)]
    chance.shuffle(rows)
    questions = []
    for number, row in enumerate(rows, 1):
        words = FREQUENCY.sub("", row.pop("words"))
        place = (
            f"{row['repository'].replace('/', '+', 1)}/{row['path']}:{row['line']}:{row['column']}"
        )
        questions.append(f"{number}. {place} {row['code']} {words}")
    arguments.key.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    arguments.questions.write_text("\n".join(questions) + "\n", encoding="utf-8")


def join(arguments: argparse.Namespace) -> None:
    """Write the judged places; raises ValueError if a place has no verdict or two."""
    rows = [json.loads(line) for line in arguments.key.read_text(encoding="utf-8").splitlines()]
    said = [
        json.loads(line) for line in arguments.verdicts.read_text(encoding="utf-8").splitlines()
    ]
    if sorted(one["n"] for one in said) != list(range(1, len(rows) + 1)):
        raise ValueError(f"{arguments.verdicts}: not one verdict for each of {len(rows)} places")
    for one in said:
        rows[one["n"] - 1].update(verdict=one["verdict"], why=one["why"])
    rows.sort(key=lambda row: (row["repository"], row["path"], row["line"], row["column"]))
    text = "".join(
        json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in rows
    )
    arguments.to.write_text(text, encoding="utf-8")
    for shown, name in ((True, "default"), (False, "hidden")):
        counts = Counter(row["verdict"] for row in rows if row["by_default"] is shown)
        print(f"{name}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in "ABC"))


def parse() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        description="Draw findings for a reader, and join the verdicts."
    )
    commands = parser.add_subparsers(required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("clones", type=Path, nargs="+", metavar="CLONE")
    drawing.add_argument("--questions", type=Path, required=True)
    drawing.add_argument("--default", type=int, default=60)
    drawing.add_argument("--hidden", type=int, default=20)
    drawing.add_argument("--seed", type=int, default=0)
    joining = commands.add_parser("join")
    joining.add_argument("--verdicts", type=Path, required=True)
    joining.add_argument("--to", type=Path, required=True)
    for one, run in ((drawing, draw), (joining, join)):
        one.add_argument("--key", type=Path, required=True)
        one.set_defaults(run=run)
    return parser.parse_args()


def main() -> int:
    """Draw or join; returns the exit status."""
    arguments = parse()
    try:
        arguments.run(arguments)
    except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
        print(f"draw: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
