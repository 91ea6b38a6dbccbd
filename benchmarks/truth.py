"""Precision and recall on real libraries: compares recorded synchronisations with findings.

    python benchmarks/truth.py LABELS [FOLDER]
        runs flake8 over the package (FOLDER, or where it is installed) and scores it
        at --confidence stated, inferred (the default) or assumed
    python benchmarks/truth.py --record PACKAGE LABELS -- -m pytest tests
        runs a workload under `torchperf run`'s recorder and writes labels
    python benchmarks/truth.py --compare OTHER LABELS
        how far two recordings of one package agree

Recall: of the executed statements that synchronised, how many have a finding. Precision: of the
executed statements with a finding, how many synchronised. Statements that did not run do not count,
nor do neutral cases: tensors made on the host, waits inside kernels, iteration over a tensor, and
findings in a part of a statement that need not be evaluated.

For the limits of recordings, see docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from truth_labels import Labels, agreement, load_labels, package_folder, record
from truth_score import Score, read_flags, score, single_line

# TPF407 reports copies to a device, of which a recording on a CPU shows nothing.
WAITS = "TPF1,TPF2,TPF3,TPF401,TPF402,TPF403,TPF404,TPF405,TPF406"


def main(argv: Sequence[str] | None = None) -> int:
    """Score, record or compare; the exit status is 0, or the workload's own after recording."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.record:
        if not arguments.rest:
            parser.error("--record needs a workload: -- -m pytest tests")
        return _record(arguments.record, Path(arguments.labels), arguments.rest)
    labels = load_labels(Path(arguments.labels))
    if arguments.compare:
        print(agreement(load_labels(Path(arguments.compare)), labels))
        return 0
    folder = Path(arguments.rest[0]) if arguments.rest else package_folder(labels.package)
    if not folder.is_dir():
        raise SystemExit(f"truth: there is no folder {folder}; name the package's")
    report = _report(folder, sorted(labels.executed), arguments)
    result = score(labels, read_flags(report, folder, arguments.codes.split(",")))
    if arguments.json:
        print(json.dumps(result.as_data()))
    else:
        _print(labels, result, folder, arguments)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("labels", metavar="LABELS")
    parser.add_argument("rest", nargs="*", metavar="FOLDER | -- WORKLOAD")
    parser.add_argument("--record", metavar="PACKAGE", help="write LABELS from a workload")
    parser.add_argument("--compare", metavar="OTHER", help="compare LABELS with these")
    parser.add_argument("--report", metavar="FILE", help="flake8's output, instead of running it")
    # Labels know where the host waits for a value or a shape; other families claim other things.
    parser.add_argument(
        "--codes",
        default=WAITS,
        help="only codes that start so (default: the families that labels can judge)",
    )
    parser.add_argument("--confidence", default="inferred", help="as --torchperf-confidence")
    parser.add_argument("--misses", type=int, default=0, metavar="N", help="show N misses")
    parser.add_argument("--false", type=int, default=0, metavar="N", help="show N false alarms")
    parser.add_argument("--seed", type=int, help="draw those at random")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _record(package: str, path: Path, workload: Sequence[str]) -> int:
    if not path.absolute().parent.is_dir():
        raise SystemExit(f"truth: there is no folder {path.parent} to write {path.name} to")
    labels, status = record(package, workload)
    labels.save(path)
    kinds = {name: sum(map(len, rows.values())) for name, rows in labels.categories.items()}
    print(f"{path}: {labels.count_executed()} executed statements, {kinds}", file=sys.stderr)
    return status


def _report(folder: Path, files: Sequence[str], arguments: argparse.Namespace) -> list[str]:
    # Only files with statements that ran can score; the linter still reads their imports.
    if arguments.report:
        try:
            return Path(arguments.report).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise SystemExit(f"truth: {arguments.report}: {error.strerror}") from None
    command = [sys.executable, "-m", "flake8", "--isolated", "--disable-noqa", "--select", "TPF"]
    # flake8 exits with 1 if it has findings; a higher status is a failure of flake8 itself.
    options = ["--torchperf-scope=all", f"--torchperf-confidence={arguments.confidence}"]
    paths = [str(folder / file) for file in files]
    done = subprocess.run([*command, *options, *paths], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"truth: flake8 failed with exit status {done.returncode}")
    return done.stdout.splitlines()


def _print(labels: Labels, result: Score, folder: Path, arguments: argparse.Namespace) -> None:
    print(
        f"{labels.package} {labels.version}: {labels.count_executed()} executed statements, "
        f"{len(result.positive)} that synchronise"
    )
    print(f"recall    {result.recall:.3f}  ({len(result.hits)}/{len(result.positive)})")
    flagged = len(result.hits) + len(result.false)
    print(f"precision {result.precision:.3f}  ({len(result.hits)}/{flagged})")
    print(f"F1        {result.f1:.3f}   ({result.neutral} flagged statements are neutral)")
    print("by kind (recall):")
    for kind, (hits, all_) in sorted(result.by_kind().items(), key=lambda item: -item[1][1]):
        print(f"  {kind:20} {hits / all_:.3f}  ({hits}/{all_})")
    print("by rule (precision; the share of the hits that only it finds):")
    for code, (hits, all_, alone) in sorted(result.by_rule().items()):
        print(f"  {code:8} {hits / all_:.3f}  ({hits}/{all_})  {alone}")
    chance = random.Random(arguments.seed)
    for word, places, wanted in (
        ("MISS", result.misses, arguments.misses),
        ("FALSE", result.false, arguments.false),
    ):
        shown = sorted(places)
        if arguments.seed is not None:
            chance.shuffle(shown)
        for place in shown[:wanted]:
            print(f"{word} {result.describe(place)} | {single_line(folder, place)}")


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except BrokenPipeError:
        # The reader (head) has seen enough. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
