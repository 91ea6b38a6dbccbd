"""Fits the weights of `flake8_torchperf/judgement/worth.toml` to places that people judged.

    python tools/fit_worth.py measure --repositories DIR [--packages DIR ...] [--all]
    python tools/fit_worth.py fit [--check] [--picture docs/worth.svg]

`measure` lints the places of `benchmarks/judged/` and writes the evidence about each to
`benchmarks/judged/features/features.jsonl`. It skips a source whose version and linter are those of
the last run; `--all` skips none. `fit` reads that file, fits an additive model whose weights keep
the signs that reason demands, says how well it orders the places of applications that it has not
seen, and writes the table. With `--check` it writes nothing and exits with 1 where the table
differs. The same features give the same table, byte for byte.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "benchmarks")]

from worth_table import places  # noqa: E402
from worth_table.measuring import Folders, jobs, measure  # noqa: E402

SAMPLES = ROOT / "benchmarks" / "judged"
FEATURES = SAMPLES / "features" / "features.jsonl"


def measure_all(arguments: argparse.Namespace) -> None:
    """Write the features of all judged places that the last run did not write."""
    file: Path = arguments.features
    known = places.read(file) if file.is_file() else {}
    wanted = jobs(sorted(SAMPLES.glob("*.jsonl")))
    kept = {} if arguments.all else known
    found = {job.source: kept[job.source] for job in wanted if job.source in kept}
    missing = [job for job in wanted if job.source not in found]
    file.parent.mkdir(exist_ok=True)
    start = time.monotonic()
    folders = Folders(arguments.repositories, tuple(arguments.packages))
    for number, (job, result) in enumerate(measure(missing, folders), 1):
        name = f"{job.source.source} {job.source.version[:10]}"
        if isinstance(result, str):
            print(f"left out: {name}, {len(job.places)} places: {result}", flush=True)
            continue
        found[job.source] = result
        places.write(file, found)
        seconds = time.monotonic() - start
        print(f"{number}/{len(missing)} {seconds:.0f} s {name}: {len(result)}", flush=True)
    places.write(file, found)
    print(f"{sum(map(len, found.values()))} places of {len(found)} sources in {file}")


def parse() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description="Fit the worth of findings to judged places.")
    parser.add_argument("--features", type=Path, default=FEATURES, help=argparse.SUPPRESS)
    steps = parser.add_subparsers(dest="step", required=True)
    measuring = steps.add_parser("measure", help="write the evidence about each judged place")
    measuring.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    measuring.add_argument("--packages", type=Path, action="append", default=[], metavar="DIR")
    measuring.add_argument("--all", action="store_true", help="measure every source anew")
    return parser.parse_args()


def main() -> int:
    """Measure or fit; returns the exit status."""
    arguments = parse()
    try:
        measure_all(arguments)
    except (OSError, ValueError) as error:
        print(f"fit_worth: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
