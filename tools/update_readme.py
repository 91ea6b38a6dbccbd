"""Writes what is made from something else: README's rules table and examples, docs/conventions.md.

    python tools/update_readme.py            rewrites them
    python tools/update_readme.py --check    exits with 1 where one of them is out of date

The table comes from the rule pages, the examples' output from flake8 and `torchperf` themselves
(so torch must be installed). How long something took, and the versions, may differ.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from flake8_torchperf.findings.catalogue import load_catalogue  # noqa: E402
from flake8_torchperf.findings.documentation import read_documentation  # noqa: E402
from flake8_torchperf.findings.rule import Rule  # noqa: E402
from flake8_torchperf.hotness.conventions import load_conventions  # noqa: E402

README = ROOT / "README.md"
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
# What a run prints that another run, or another machine, prints otherwise.
CHANGING = re.compile(r"[\d.e+-]+(?= ms in operations\])|(?<= in )[\d.]+ s on .*")


def rules_table() -> str:
    """Every rule of our own: its code, linked to its page, and the first thing the page says."""
    rows = []
    for family, rules in groupby(load_catalogue().rules, key=lambda rule: rule.family):
        rows += ["", f"**{family[0].upper()}{family[1:]}**", "", "| code | reports |", "|---|---|"]
        rows += [
            f"| [{rule.code}](rules/{rule.path.name}) | {_first_sentence(rule)} |" for rule in rules
        ]
    return "\n".join(rows[1:])


def conventions_page() -> str:
    """The table of conventions, as a page."""
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

What a name says about how often code runs, where nothing else does (see
[How it decides](../README.md#how-it-decides)). No row hides a loop over a tensor's elements, a loop
that takes steps or calls a module, or what is called from one.

The pattern is a regular expression, searched in the name without its leading underscores. `cold`
leaves what it matches to `--torchperf-scope=all`; `cold-outside-loops` leaves its loops as they
are; `hot` says that it runs in each step, and of a name in the head of a loop that the loop goes
through the data. `branch-cold` is of the flag that a branch asks, `on-host` of a variable,
`warning` of a call: a branch that begins with one runs seldom. A row stays only while what it hides
is worth telling in fewer than one of four cases (`benchmarks/conventions.py`). Add rows of your own
in a `conventions.toml` beside [your rule pages](../rules/README.md).

The table is generated from `flake8_torchperf/hotness/conventions.toml`.

| id | applies to | pattern | effect | reason | evidence |
|---|---|---|---|---|---|"""


def _first_sentence(rule: Rule) -> str:
    text = " ".join(read_documentation(rule).sections["What it does"].split())
    sentence = re.split(r"\.(?=\s|$)", text, maxsplit=1)[0]
    return sentence.removeprefix("Reports ").replace("|", "\\|")


def flake8_output(*words: str) -> str:
    """What ``flake8 --select TPF`` prints for one of our files, as a console session."""
    command = [sys.executable, "-m", "flake8", "--isolated", "-j1", "--select", "TPF", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.stderr:
        raise RuntimeError(f"flake8 {' '.join(words)} failed: {done.stderr}")
    return f"```console\n$ flake8 --select TPF {' '.join(words)}\n{done.stdout}```"


def confirm_output() -> str:
    """What ``torchperf confirm`` prints for the same file, as a console session."""
    words = ["confirm", EXAMPLE, "--project", "320008"]
    return f"```console\n$ torchperf {' '.join(words)}\n{_torchperf(words, ROOT).stdout}```"


def run_output() -> str:
    """A training script, and what ``torchperf run`` prints for it."""
    words = ["run", "--no-metrics", "train.py"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAINING, encoding="utf-8")
        printed = _torchperf(words, Path(folder)).stderr.strip("\n")
    session = f"```console\n$ torchperf {' '.join(words)}\n{printed}\n```"
    return f"```python\n{TRAINING}```\n\n{session}"


def _torchperf(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
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


def updated(text: str) -> str:
    """README's text with the generated parts made anew that differ in more than times and versions.

    Raises ValueError where one is missing.
    """
    for name, content in (
        ("rules", rules_table()),
        ("example", flake8_output(EXAMPLE)),
        ("team", flake8_output("--torchperf-rules", TEAM_RULES, TEAM_FILE)),
        ("confirm", confirm_output()),
        ("run", run_output()),
    ):
        begin, end = f"<!-- {name}: tools/update_readme.py -->", f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"README.md must hold {begin!r} and {end!r} once")
        head, rest = text.split(begin)
        old, tail = rest.split(end)
        if not same(old, f"\n{content}\n"):
            text = f"{head}{begin}\n{content}\n{end}{tail}"
    return text


def same(old: str, new: str) -> bool:
    """Whether two texts differ in nothing but times, devices and versions."""
    return CHANGING.sub("_", old) == CHANGING.sub("_", new)


def main() -> int:
    """Rewrite README.md, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if outdated")
    arguments = parser.parse_args()
    old = README.read_text(encoding="utf-8")
    new = updated(old)
    stale = [README] if not same(old, new) else []
    page = conventions_page()
    if not CONVENTIONS.is_file() or CONVENTIONS.read_text(encoding="utf-8") != page:
        stale.append(CONVENTIONS)
    if arguments.check:
        for path in stale:
            name = path.relative_to(ROOT)
            print(f"{name} is out of date: run python tools/update_readme.py", file=sys.stderr)
        return int(bool(stale))
    README.write_text(new, encoding="utf-8")
    CONVENTIONS.parent.mkdir(exist_ok=True)
    CONVENTIONS.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
