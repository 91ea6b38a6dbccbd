"""Measures which operations of the torch table make Python wait for CUDA.

    python tools/measure_syncs.py                    measures all, on a machine with CUDA
    python tools/measure_syncs.py --only 'torch.linalg.*'
    python tools/measure_syncs.py --only 'form: *'   ways to assign, index, copy and make

Writes `benchmarks/measured_syncs.json`. `tools/generate_torch_table.py` folds it into the table:
if an operation was measured, that decides its flag; if not, the entry names the source that
documents it. Operations run in a separate process, because one that faults on the device makes the
device unusable for its process. Each row is saved at once in a file next to the output, and the
next run continues an interrupted one.
"""

from __future__ import annotations

import argparse
import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from torch_table import measure, witness, workers  # noqa: E402
from torch_table.measured import MEASURED  # noqa: E402
from torch_table.workers import LOST, Row  # noqa: E402

from flake8_torchperf.knowledge.table import load  # noqa: E402


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Measure which operations wait for CUDA.")
    parser.add_argument("--only", default="*", metavar="GLOB", help="names to measure")
    parser.add_argument("--output", type=Path, default=MEASURED)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    lacking = witness.missing()
    if lacking:
        print(f"nothing was measured: {lacking}", file=sys.stderr)
        return 2
    if arguments.worker:
        work(sys.stdin.read().split("\n"), witness.CudaWitness())
        return 0
    names = [n for n in measure.all_names(load()) if fnmatchcase(n, arguments.only)]
    if not names:
        print(f"the table has no operation {arguments.only}", file=sys.stderr)
        return 2
    versions = witness.described()
    try:
        found = workers.measured(names, Path(__file__).resolve(), arguments.output, versions)
    except workers.LostDevice as error:
        print(f"the rest was not measured: {error}", file=sys.stderr)
        return 2
    earlier = _read(arguments.output)
    arguments.output.write_text(render(versions, found, earlier), encoding="utf-8")
    print(summary(found))
    print(f"wrote {arguments.output}; now run tools/generate_torch_table.py")
    return 0


def work(names: list[str], seen_by: witness.Witness) -> None:
    """Measure and print one line of JSON for each operation; stop where the device is lost."""
    workers.serve((row.name, row.seen) for row in measure.rows(names, load(), seen_by))


def _read(path: Path) -> Row:
    return dict(json.loads(path.read_bytes())) if path.is_file() else {}


def render(
    versions: dict[str, str], found: dict[str, dict[str, str]], earlier: Row | None = None
) -> str:
    """Return the file's text: versions, then a line with the overloads of each operation.

    Rows of an earlier run with the same versions stay, unless measured again.
    """
    kept = earlier or {}
    same = all(kept.get(key) == value for key, value in versions.items())
    rows = {**(kept["operations"] if kept and same else {}), **found}
    lines = [f"{json.dumps(key)}:{json.dumps(value)}," for key, value in versions.items()]
    body = [
        f"{json.dumps(name)}:{json.dumps(seen, separators=(',', ':'))}"
        for name, seen in sorted(rows.items())
    ]
    return "\n".join(["{", *lines, '"operations":{', ",\n".join(body), "}", "}"]) + "\n"


def summary(found: dict[str, dict[str, str]]) -> str:
    """Say how many were called, how many waited, and which ended their process."""
    called = {name: seen for name, seen in found.items() if seen and LOST not in seen.values()}
    waited = [name for name, seen in called.items() if set(seen.values()) != {"none"}]
    lost = [name for name, seen in found.items() if LOST in seen.values()]
    text = f"{len(called)} of {len(found)} operations called, {len(waited)} waited"
    if lost:
        text = f"{text}, {len(lost)} ended their process: {', '.join(lost)}"
    for name, case in measure.CASES.items():
        if case.disputed and name in called:
            text += f"\ndisputed, {name}: {', '.join(called[name].values())}"
    return text


if __name__ == "__main__":
    sys.exit(main())
