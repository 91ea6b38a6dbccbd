"""Fits the weights of `flake8_torchperf/judgement/worth.toml` to places that people judged.

    python tools/fit_worth.py measure --repositories DIR [--packages DIR ...] [--all]
    python tools/fit_worth.py fit [--check] [--picture docs/worth.svg]

`measure` lints the places of `benchmarks/judged/` and writes the evidence about each to
`benchmarks/judged/features/features.jsonl`, with that of what has to be told. It skips a source
whose version and linter are those of the last run; `--all` skips none. `fit` reads that file, fits
an additive model whose weights keep the signs that reason demands, says how well it orders the
places of applications that it has not seen, and writes the table. With `--check` it writes nothing
and exits with 1 where the table differs. The same features give the same table, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "benchmarks")]

# The matrices are small: a second thread would only wait for the first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from worth_table import demanded, places, report  # noqa: E402
from worth_table.evaluation import (  # noqa: E402
    KEPT,
    Experiment,
    Judged,
    Pairs,
    by_default,
    threshold,
)
from worth_table.measuring import Folders, jobs, measure  # noqa: E402
from worth_table.picture import picture  # noqa: E402
from worth_table.regression import Model  # noqa: E402
from worth_table.table import render  # noqa: E402

from flake8_torchperf.judgement.worth.fitted import TABLE  # noqa: E402

SAMPLES = ROOT / "benchmarks" / "judged"
FEATURES = SAMPLES / "features" / "features.jsonl"


def measure_all(arguments: argparse.Namespace) -> None:
    """Write the features of all judged places that the last run did not write."""
    file: Path = arguments.features
    known = places.read(file) if file.is_file() else {}
    wanted = jobs(sorted(arguments.samples.glob("*.jsonl")))
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
    demand, demanded_places = demanded.measure()
    found[demand] = demanded_places
    places.write(file, found)
    print(f"{sum(map(len, found.values()))} places of {len(found)} sources in {file}")


def fit_all(arguments: argparse.Namespace) -> int:
    """Print how good the model is and write the table; returns the exit status."""
    pairs = places.with_evidence(places.read(arguments.features))
    if not any(place.by_default and place.verdict == "A" for _, place in pairs):
        raise ValueError(f"{arguments.features}: no place told by default is worth telling")
    experiment = Experiment(pairs)
    strength, losses = experiment.best_strength()
    model, judged = experiment.model(strength), experiment.left_out(strength)
    text = render(model, threshold(by_default(judged), KEPT), pairs)
    drawing = picture(judged)
    outputs = [(arguments.table, text)]
    if arguments.picture is not None:
        outputs.append((arguments.picture, drawing))
    if arguments.check:
        return check(outputs)
    for file, content in outputs:
        file.write_text(content, encoding="utf-8")
    listed = ", ".join(f"{value}: {loss:.4f}" for value, loss in losses.items())
    print(f"penalty {strength}, by log loss of applications left out ({listed})")
    print_report(pairs, judged, model, strength)
    return 0


def print_report(pairs: Pairs, judged: list[Judged], model: Model, strength: float) -> None:
    """Print how well the model orders places of applications that it has not seen."""
    print(*report.order(pairs, judged, strength), sep="\n")
    print("all places:", *report.thresholds(judged, report.TENTHS), sep="\n")
    shown = by_default(judged)
    print("told by default:", *report.thresholds(shown, report.SHARES), sep="\n")
    print("by application, without and with the threshold:")
    print(*report.applications(judged), sep="\n")
    print("without a family of features, or with one that has no weight:")
    print(*report.families(pairs, judged, strength), sep="\n")
    print("weights:", *report.weights(pairs, model), sep="\n")


def check(outputs: list[tuple[Path, str]]) -> int:
    """Return 1 if a file differs from what this tool writes, which it names; else 0."""
    for file, content in outputs:
        if not file.is_file() or file.read_text(encoding="utf-8") != content:
            print(f"{file} is out of date; run python tools/fit_worth.py fit", file=sys.stderr)
            return 1
    return 0


def parse() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description="Fit the worth of findings to judged places.")
    parser.add_argument("--features", type=Path, default=FEATURES, help=argparse.SUPPRESS)
    steps = parser.add_subparsers(dest="step", required=True)
    measuring = steps.add_parser("measure", help="write the evidence about each judged place")
    measuring.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    measuring.add_argument("--packages", type=Path, action="append", default=[], metavar="DIR")
    measuring.add_argument("--samples", type=Path, default=SAMPLES, help=argparse.SUPPRESS)
    measuring.add_argument("--all", action="store_true", help="measure every source anew")
    fitting = steps.add_parser("fit", help="fit the weights and write the table")
    fitting.add_argument("--table", type=Path, default=TABLE, help=argparse.SUPPRESS)
    fitting.add_argument("--picture", type=Path, metavar="FILE", help="write the curve as SVG")
    fitting.add_argument("--check", action="store_true", help="write nothing, compare")
    return parser.parse_args()


def main() -> int:
    """Measure or fit; returns the exit status."""
    arguments = parse()
    try:
        if arguments.step == "fit":
            return fit_all(arguments)
        measure_all(arguments)
    except (OSError, ValueError) as error:
        print(f"fit_worth: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
