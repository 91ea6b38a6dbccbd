"""Compares the findings of two versions of the linter, byte for byte, over given trees.

    python benchmarks/same_findings.py --before OLD --after NEW PATH [PATH ...]

OLD and NEW are virtual environments, or checkouts, which are run with this Python and its packages.
The comparison includes cold code, messages, columns and reasons. The exit status is 1 if something
differs. With ``--places`` only codes and places count, so that messages may change.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from perf.running import all_analysed

SCOPES = ("all", "hot")
FINDING = re.compile(r".*?:\d+:\d+: TPF\d{3}(?= )")
# The second import is for versions in which the command line still lay in `outputs`.
_CHECK = """
try:
    from flake8_torchperf.cli.main import main
except ModuleNotFoundError:
    from flake8_torchperf.outputs.cli import main
raise SystemExit(main())
"""


class NotAVersionError(ValueError):
    """A folder that is neither an environment nor a checkout with the linter in it."""


@dataclass(frozen=True)
class Version:
    """One version of the linter: the Python to run, and a path to put before its packages."""

    python: Path
    checkout: Path | None

    @classmethod
    def at(cls, folder: Path) -> Version:
        """Return the version in a virtual environment or a checkout."""
        full = Path(os.path.abspath(folder))
        for python in (full / "bin" / "python", full / "Scripts" / "python.exe"):
            if python.exists():
                return cls(python, None)
        if (full / "flake8_torchperf" / "plugin.py").is_file():
            return cls(Path(sys.executable), full)
        raise NotAVersionError(f"{folder} is neither a virtual environment nor a checkout")

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run this version's Python where no file lies that it could import by mistake."""
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        if self.checkout is not None:
            environment["PYTHONPATH"] = str(self.checkout)
        with tempfile.TemporaryDirectory() as nowhere:
            return subprocess.run(
                [str(self.python), *arguments],
                cwd=nowhere,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

    def place(self) -> str:
        """Return where the linter that it runs lies; a checkout must run its own."""
        done = self.call("-c", "import flake8_torchperf as it; print(it.__file__)")
        place = done.stdout.strip()
        if not place:
            raise NotAVersionError(f"{self.python} has no flake8_torchperf: {done.stderr.strip()}")
        if self.checkout is not None and not Path(place).is_relative_to(self.checkout):
            raise NotAVersionError(f"{self.checkout} is hidden by {place}")
        return str(Path(place).parent)

    def findings(self, path: Path, scope: str, jobs: int) -> list[str]:
        """Return what `torchperf check` prints with this version: flake8's lines, with reasons."""
        options = [
            "check",
            "--isolated",
            "--no-cache",
            "--torchperf-explain",
            f"--torchperf-scope={scope}",
            # Else a Python without flake8 would look like one that finds nothing new.
            "--exit-zero",
            f"--jobs={jobs}",
        ]
        done = self.call("-c", _CHECK, *options, str(path.absolute()))
        if done.returncode != 0 or "Traceback" in done.stderr:
            raise RuntimeError(f"check failed in {self.python}:\n{done.stdout}{done.stderr}")
        all_analysed(done.stdout.encode(), f"check in {self.python}")
        return done.stdout.splitlines(keepends=True)


def without_words(line: str) -> str:
    """Return a finding's place and code; any other line unchanged."""
    found = FINDING.match(line)
    return line if found is None else f"{found[0]}\n"


def compare(
    before: Version, after: Version, path: Path, jobs: int, shown: int, *, places: bool
) -> bool:
    """Print the differences in one tree; return True if the findings are the same."""
    same = True
    for scope in SCOPES:
        old = before.findings(path, scope, jobs)
        new = after.findings(path, scope, jobs)
        if places:
            old, new = [without_words(line) for line in old], [without_words(line) for line in new]
        if old == new:
            same_in = " by code and place" if places else ""
            print(f"{path}, scope {scope}: the same {len(old)} findings{same_in}", flush=True)
            continue
        same = False
        changed = [
            line
            for line in difflib.unified_diff(old, new, "before", "after", n=0)
            if not line.startswith("@@")
        ]
        print(f"{path}, scope {scope}: {len(old)} findings before, {len(new)} after")
        print("".join(changed[:shown]), end="")
        if len(changed) > shown:
            print(f"... and {len(changed) - shown} more lines")
        sys.stdout.flush()
    return same


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, metavar="OLD")
    parser.add_argument("--after", type=Path, required=True, metavar="NEW")
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="files or trees")
    parser.add_argument("--jobs", type=int, default=2, help="processes of each (default: 2)")
    parser.add_argument("--places", action="store_true", help="compare codes and places alone")
    parser.add_argument("--shown", type=int, default=40, help="lines of differences to print")
    arguments = parser.parse_args()
    for path in arguments.paths:
        if not path.exists():
            parser.error(f"there is no {path}")
    try:
        before, after = Version.at(arguments.before), Version.at(arguments.after)
        print(f"before: {before.place()}\nafter:  {after.place()}", flush=True)
    except NotAVersionError as error:
        parser.error(str(error))
    jobs, shown, places = arguments.jobs, arguments.shown, arguments.places
    same = [compare(before, after, p, jobs, shown, places=places) for p in arguments.paths]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
