"""Generates parts of README.md and of the pages in docs/: tables of rules, examples, conventions.

It also writes the verdicts on each rule's findings, which `torchperf explain` shows.

    python tools/update_readme.py            rewrites them
    python tools/update_readme.py --check    exits with 1 if one of them is out of date

The table comes from the rule pages. The output shown in examples comes from running flake8 and
`torchperf`, so torch must be installed. Only times and versions may differ from what is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from rule_life import first_sight, table  # noqa: E402

from flake8_torchperf.findings.catalogue import load_catalogue  # noqa: E402
from flake8_torchperf.findings.documentation import read_documentation  # noqa: E402
from flake8_torchperf.findings.rule import Rule  # noqa: E402
from flake8_torchperf.judgement.rows import ROWS  # noqa: E402
from flake8_torchperf.knowledge.conventions import load_conventions  # noqa: E402

JUDGED = ROOT / "flake8_torchperf" / "findings" / "judged.json"
CONVENTIONS = ROOT / "docs" / "conventions.md"
EXAMPLE = "fixtures/issue82206_sharded_grad_scaler/before.py"
TEAM_RULES = "fixtures/team_rules/perf-rules"
TEAM_FILE = "fixtures/team_rules/engine.py"
TRAINING = """\
import torch
from torch import nn


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for batch, wanted in zip(images.split(32), labels.split(32)):
        loss = nn.functional.cross_entropy(model(batch), wanted)
        if loss.isnan():
            raise ValueError(f"the loss is {loss}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


train(nn.Linear(64, 10), torch.randn(256, 64), torch.randint(0, 10, (256,)))
"""
# Output that differs between runs or machines.
CHANGING = re.compile(r"[\d.,]+ (?:s|ms|µs|ns)(?= in operations\])|(?<= in )[\d.]+ s on .*")


def rules_table() -> str:
    """Return each of our rules: its code, linked to its page, its name, and the problem."""
    rows = [
        f"| [{rule.code}]({rule.path.name}) | {rule.name} | {_first_sentence(rule)} |"
        for rule in load_catalogue().rules
    ]
    return "\n".join(["| code | name | reports |", "|---|---|---|", *rows])


def families_table() -> str:
    """Return each family of our rules: the codes of the first and the last, and all names."""
    families: dict[str, list[Rule]] = {}
    for rule in load_catalogue().rules:
        families.setdefault(rule.family, []).append(rule)
    rows = [
        f"| {rules[0].code} to {rules[-1].code[3:]} | {family} "
        f"| {', '.join(f'[{rule.name}](rules/{rule.path.name})' for rule in rules)} |"
        for family, rules in families.items()
    ]
    return "\n".join(["| codes | family | rules |", "|---|---|---|", *rows])


def table_of_causes() -> str:
    """Return every row of the table that decides what is reported, in order."""
    rows = [
        f"| `{row.id}` | {row.question} | {row.effect} | {_in_cell(row.sentence)} |" for row in ROWS
    ]
    return "\n".join(["| row | question | effect | because |", "|---|---|---|---|", *rows])


def conventions_page() -> str:
    """Return the table of conventions, as a page."""
    rows = [
        f"| `{row.id}` | {row.applies_to} | `{_in_cell(row.pattern)}` | {row.effect} "
        f"| {_in_cell(row.reason)} | {_in_cell('; '.join(row.evidence))} |"
        for row in load_conventions().rows
    ]
    return "\n".join([ABOUT_CONVENTIONS, *rows, ""])


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


ABOUT_CONVENTIONS = """\
# The table of conventions

Each row infers from a name how often code runs. The linter consults the table only where
stronger evidence is missing: [What counts as hot](hotness.md) gives the order. No row hides a loop
over a tensor's elements, a loop that takes training steps or calls a module, or anything called
from such a loop.

The pattern is a regular expression. It is matched against the name without its leading underscores.

| effect | what a match does |
|---|---|
| `cold` | the code is reported with `--torchperf-scope=all` only |
| `cold-if-compiled` | the same, even if the code is compiled |
| `cold-outside-loops` | the same, except inside loops |
| `hot` | the function runs in every step; in a loop's head, the loop goes through the data |
| `branch-cold` | a branch that tests this flag runs seldom |
| `on-host` | the variable lies on the host |
| `host-tensors` | the variable holds tensors on the host |
| `warning` | a branch that begins with this call runs seldom |

A row is kept only if fewer than a quarter of the findings that it hides are worth reporting, as
measured with `benchmarks/conventions.py`. To add rows of your own, put a `conventions.toml` next to
[your rule pages](own-rules.md).

This page is generated from `flake8_torchperf/knowledge/conventions.toml`.

| id | applies to | pattern | effect | reason | evidence |
|---|---|---|---|---|---|"""


def _first_sentence(rule: Rule) -> str:
    text = " ".join(read_documentation(rule).sections["What it does"].split())
    sentence = re.split(r"\.(?=\s|$)", text, maxsplit=1)[0]
    return sentence.removeprefix("Reports ").replace("|", "\\|")


@cache
def _fixtures_alone() -> tempfile.TemporaryDirectory[str]:
    """Return a project of the fixtures: in the repository, a run would look through all of it."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(ROOT / "fixtures", Path(folder.name, "fixtures"))
    Path(folder.name, "requirements.txt").touch()
    return folder


def flake8_output(*words: str, select: str = "TPF") -> str:
    """Return the output of ``flake8 --select`` for one of our files, as a console session."""
    command = [sys.executable, "-m", "flake8", "--isolated", "-j1", "--select", select, *words]
    folder = _fixtures_alone().name
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.stderr:
        raise RuntimeError(f"flake8 {' '.join(words)} failed: {done.stderr}")
    return f"```console\n$ flake8 --select {select} {' '.join(words)}\n{done.stdout}```"


def confirm_output() -> str:
    """Return the output of ``torchperf confirm`` for the same file, as a console session."""
    words = ["confirm", EXAMPLE, "--project", "320008"]
    printed = torchperf_output(words, Path(_fixtures_alone().name)).stdout
    return f"```console\n$ torchperf {' '.join(words)}\n{printed}```"


def run_output() -> str:
    """Return a training script, and the output of ``torchperf run`` for it."""
    words = ["run", "train.py"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAINING, encoding="utf-8")
        printed = torchperf_output(words, Path(folder)).stderr.strip("\n")
    session = f"```console\n$ torchperf {' '.join(words)}\n{printed}\n```"
    return f"```python\n{TRAINING}```\n\n{session}"


def torchperf_output(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return what a command of ours printed in a folder. Raises RuntimeError if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "flake8_torchperf.cli.main", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"torchperf {' '.join(words)} failed: {done.stderr}")
    return done


# The generated parts, by the document that holds them.
PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {
        "example": lambda: flake8_output(EXAMPLE, select="TPF201"),
        "rules": families_table,
    },
    "rules/README.md": {"rules": rules_table},
    "docs/rule-life.md": {"life": lambda: table(first_sight())},
    "docs/hotness.md": {"rows": table_of_causes},
    "docs/own-rules.md": {
        "team": lambda: flake8_output("--torchperf-rules", TEAM_RULES, TEAM_FILE)
    },
    "docs/confirm-and-run.md": {"confirm": confirm_output, "run": run_output},
}


# The parts whose lines are sorted by measured times, which a busy machine exchanges.
SORTED_BY_TIME = ("run",)


def judged_findings() -> str:
    """Return the verdicts on each rule's findings as JSON, for ``torchperf explain``."""
    rows = []
    for code, samples in sorted(first_sight().items()):
        verdicts = sum(samples, Counter[str]())
        counts = {**{one: verdicts[one] for one in "ABC"}, "samples": len(samples)}
        rows.append(f"  {json.dumps(code)}: {json.dumps(counts)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def updated(text: str, document: str) -> str:
    """Return a document's text with its generated parts replaced where more than times differs.

    Raises ValueError if the document lacks the marker of a part.
    """
    for name, make in PARTS[document].items():
        begin, end = f"<!-- {name}: tools/update_readme.py -->", f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{document} must hold {begin!r} and {end!r} once")
        head, rest = text.split(begin)
        old, tail = rest.split(end)
        content = make()
        if not same(old, f"\n{content}\n", by_time=name in SORTED_BY_TIME):
            text = f"{head}{begin}\n{content}\n{end}{tail}"
    return text


def same(old: str, new: str, *, by_time: bool = False) -> bool:
    """True if two texts differ in nothing but times, devices and versions.

    The lines of texts that are sorted ``by_time`` may have another order.
    """
    before, after = (CHANGING.sub("_", text).splitlines() for text in (old, new))
    return sorted(before) == sorted(after) if by_time else before == after


def main() -> int:
    """Rewrite the generated parts, or say which of them are out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if outdated")
    arguments = parser.parse_args()
    made = {CONVENTIONS: conventions_page(), JUDGED: judged_findings()}
    for name in PARTS:
        made[ROOT / name] = updated((ROOT / name).read_text(encoding="utf-8"), name)
    stale = [
        path
        for path, text in made.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if arguments.check:
            name = path.relative_to(ROOT).as_posix()
            print(f"{name} is out of date: run python tools/update_readme.py", file=sys.stderr)
        else:
            path.write_text(made[path], encoding="utf-8")
    return int(bool(stale)) if arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
