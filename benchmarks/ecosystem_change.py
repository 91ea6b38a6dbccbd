"""The findings that a change adds or removes over ten packages, as Markdown for a pull request.

    python benchmarks/ecosystem_change.py --before CHECKOUT [--after CHECKOUT] --clones DIR
        [--only NAME,NAME] [--output FILE]

Both checkouts of flake8-torchperf lint the same revisions, in the default scope. `--clones` keeps
clones of the packages, as NAME; missing ones are fetched from GitHub. Findings are matched by file,
line, column and code. The report counts new and gone ones by rule, by cost and by residence, and
links to each line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Package(NamedTuple):
    """A repository on GitHub, the tag or commit that is linted, and the folder of its code."""

    repository: str
    revision: str
    folder: str


PACKAGES = {
    "accelerate": Package("huggingface/accelerate", "v1.8.1", "src"),
    "diffusers": Package("huggingface/diffusers", "v0.34.0", "src"),
    "kornia": Package("kornia/kornia", "v0.8.1", "kornia"),
    "lightning": Package("Lightning-AI/pytorch-lightning", "2.5.0", "src/lightning"),
    "nanoGPT": Package("karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291", "."),
    "timm": Package("huggingface/pytorch-image-models", "v1.0.15", "timm"),
    "torchmetrics": Package("Lightning-AI/torchmetrics", "v1.8.2", "src"),
    "torchtitan": Package("pytorch/torchtitan", "v0.2.2", "torchtitan"),
    "transformers": Package("huggingface/transformers", "v4.53.0", "src"),
    "trl": Package("huggingface/trl", "v0.19.0", "trl"),
}
# The most findings of one kind that are listed; the counts are of all.
MOST_LISTED = 60


@dataclass(frozen=True)
class Told:
    """One finding: its place, and what the report sorts it by."""

    package: str
    path: str
    line: int
    column: int
    code: str
    message: str
    cost: str
    residence: str

    @property
    def place(self) -> tuple[str, str, int, int, str]:
        """The place by which findings of two checkouts are matched."""
        return (self.package, self.path, self.line, self.column, self.code)


def main() -> int:
    """Lint with both checkouts and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, required=True, help="a checkout without the change")
    parser.add_argument("--after", type=Path, default=ROOT, help="one with it (default: this one)")
    parser.add_argument("--clones", type=Path, required=True, help="where the packages are kept")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="some of the packages")
    parser.add_argument("--output", type=Path, help="a file for the report (default: printed)")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(PACKAGES)
    unknown = [name for name in names if name not in PACKAGES]
    if unknown:
        parser.error(f"no package {unknown[0]}; known are {', '.join(PACKAGES)}")
    before: list[Told] = []
    after: list[Told] = []
    for name in names:
        folder = cloned(name, arguments.clones)
        before += findings(name, folder, arguments.before)
        after += findings(name, folder, arguments.after)
    text = report(before, after)
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text, encoding="utf-8")
    return 0


def cloned(name: str, clones: Path) -> Path:
    """Return the folder of a package's clone, fetched if it is missing."""
    package, folder = PACKAGES[name], clones / name
    if not folder.is_dir():
        folder.mkdir(parents=True)
        address = f"https://github.com/{package.repository}"
        for words in (
            ["init", "-q"],
            ["fetch", "-q", "--depth", "1", address, package.revision],
            ["checkout", "-q", "FETCH_HEAD"],
        ):
            subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def findings(name: str, folder: Path, checkout: Path) -> list[Told]:
    """Return what a checkout of the linter reports in a package."""
    words = ["check", "--isolated", "--no-cache", "--format=json", "--exit-zero"]
    done = subprocess.run(
        [sys.executable, "-m", "flake8_torchperf.cli.main", *words, PACKAGES[name].folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout.resolve()), "PYTHONSAFEPATH": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name}, with {checkout}: {done.stderr.strip() or done.returncode}")
    return [_told(name, one) for one in json.loads(done.stdout)["findings"]]


def _told(name: str, one: Mapping[str, Any]) -> Told:
    # Older checkouts say no residence.
    place = (one["path"], one["line"], one["column"], one["code"])
    return Told(name, *place, one["message"], one["cost"], one.get("residence", ""))


def report(before: Sequence[Told], after: Sequence[Told]) -> str:
    """Return the report on the findings of both checkouts."""
    old, new = {one.place: one for one in before}, {one.place: one for one in after}
    added = [one for place, one in new.items() if place not in old]
    gone = [one for place, one in old.items() if place not in new]
    parts = [f"**{len(added)} new** and **{len(gone)} gone** of {len(old)} findings."]
    if added or gone:
        parts += [
            _table("rule", _counts(added, "code"), _counts(gone, "code")),
            _table("cost", _counts(added, "cost"), _counts(gone, "cost")),
            _table("residence", _counts(added, "residence"), _counts(gone, "residence")),
        ]
    parts += [_listed(title, ones) for title, ones in (("new", added), ("gone", gone)) if ones]
    return "\n\n".join(parts) + "\n"


def _counts(ones: Iterable[Told], by: str) -> Counter[str]:
    return Counter(getattr(one, by) or "none" for one in ones)


def _table(title: str, added: Counter[str], gone: Counter[str]) -> str:
    rows = [f"| {name} | {added[name]} | {gone[name]} |" for name in sorted({*added, *gone})]
    return "\n".join([f"| {title} | new | gone |", "|---|---|---|", *rows])


def _listed(title: str, ones: Sequence[Told]) -> str:
    lines = [f"- [{one.path}:{one.line}]({_link(one)}) {one.code} {one.message}" for one in ones]
    rest = len(lines) - MOST_LISTED
    shown = lines[:MOST_LISTED] + ([f"- and {rest} more"] if rest > 0 else [])
    return "\n".join([f"<details><summary>{title}</summary>", "", *shown, "", "</details>"])


def _link(one: Told) -> str:
    package = PACKAGES[one.package]
    path = one.path.removeprefix("./")
    return f"https://github.com/{package.repository}/blob/{package.revision}/{path}#L{one.line}"


if __name__ == "__main__":
    raise SystemExit(main())
