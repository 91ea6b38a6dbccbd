"""Compare what a contract reports with what a recorded run of it shows.

    python benchmarks/contracts.py GLOB SCRIPT --owner FOLDER...

Runs the script by `torchperf run --contracts`, lints every file whose lines ran, and prints for
each line that waited on the way from the function whether a finding of the contract covers it, then
the findings that the run did not show. The exit status is 1 if a wait is not reported.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

WAY = "on the way from"


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("glob")
    parser.add_argument("script")
    parser.add_argument("--owner", action="append", default=[])
    arguments = parser.parse_args()
    waited, ran = _recorded(arguments.glob, arguments.script, arguments.owner)
    options = Options(sync_free=(arguments.glob,))
    found = {path: _reported(path, options) for path in sorted(ran) if path.endswith(".py")}
    covered = [place for place in waited if any(_covers(f, place[1]) for f in found[place[0]])]
    for place in sorted(waited):
        print("reported" if place in covered else "missed", *place)
    for path, findings in found.items():
        for finding in findings:
            if not any(_covers(finding, line) for where, line in waited if where == path):
                print("not run", path, finding.line, finding.code, finding.message)
    print(f"{len(covered)} of {len(waited)} lines that waited are reported")
    return int(len(covered) < len(waited))


def _recorded(glob: str, script: str, owners: list[str]) -> tuple[set[tuple[str, int]], set[str]]:
    """Return the lines that waited under the contract, and the files of which lines ran."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "run.json"
        command = [sys.executable, "-m", "flake8_torchperf.cli.main", "run", "--contracts"]
        command += ["--sync-free", glob, "--json", str(report)]
        for owner in owners:
            command += ["--owner", owner]
        subprocess.run([*command, script], check=False, stderr=subprocess.DEVNULL)
        data = json.loads(report.read_text(encoding="utf-8"))
    waited = {(os.path.realpath(row["path"]), row["line"]) for row in data["broken_contracts"]}
    return waited, {os.path.realpath(file["path"]) for file in data["files"]}


def _reported(path: str, options: Options) -> list[Finding]:
    text = Path(path).read_text(encoding="utf-8")
    return [finding for finding in lint(text, path, options) if WAY in finding.message]


def _covers(finding: Finding, line: int) -> bool:
    return finding.line <= line <= finding.end_line


if __name__ == "__main__":
    sys.exit(main())
