"""Measures which operations of the torch table make Python wait for CUDA.

    python tools/measure_syncs.py                    measures all, on a machine with CUDA
    python tools/measure_syncs.py --only 'torch.linalg.*'

Writes `flake8_torchperf/knowledge/measured_syncs.json`. `tools/generate_torch_table.py` folds it
into the table: where an operation was measured, that decides its flag; where not, the entry says
that it is documented, and by whom. Operations run in a process of their own, because one that the
device cannot bear takes the device with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from torch_table import measure, witness  # noqa: E402
from torch_table.measured import MEASURED  # noqa: E402

from flake8_torchperf.knowledge.table import load  # noqa: E402

# As many operations in a row may end their process before it is taken for a fault of the machine.
LOST_IN_A_ROW = 20
# One operation may take this long before it counts as lost: the first loads kernels.
SECONDS_EACH = 120
Row = dict[str, Any]
Run = Callable[[list[str]], Iterator[Row]]


def main() -> int:
    """The command line; returns the exit status."""
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
    try:
        found = gather(names, _process)
    except LostDevice as error:
        print(f"nothing was written: {error}", file=sys.stderr)
        return 2
    earlier = _read(arguments.output)
    arguments.output.write_text(render(witness.described(), found, earlier), encoding="utf-8")
    print(summary(found))
    print(f"wrote {arguments.output}; now run tools/generate_torch_table.py")
    return 0


def work(names: list[str], seen_by: witness.Witness) -> None:
    """Measure and print one line of JSON for each operation; stop where the device is lost."""
    for row in measure.rows(names, load(), seen_by):
        print(json.dumps({"name": row.name, "seen": row.seen}), flush=True)


class LostDevice(RuntimeError):
    """No operation can be measured: it is the machine, not the operation."""


def gather(names: list[str], run: Run) -> dict[str, dict[str, str]]:
    """The rows of all names; after one that ended its process, go on with the next in a new one.

    Raises LostDevice where one process after the other ends without a row.
    """
    found: dict[str, dict[str, str]] = {}
    left = list(names)
    lost = 0
    while left:
        done = 0
        for row in run(left):
            found[row["name"]] = row["seen"]
            done += 1
        if done < len(left):
            found[left[done]] = {"": "the process ended"}
        lost = lost + 1 if done == 0 else 0
        if lost >= LOST_IN_A_ROW:
            raise LostDevice(f"{lost} processes in a row ended without a row, from {names[0]} on")
        left = left[done + 1 :]
    return found


def _process(names: list[str]) -> Iterator[Row]:
    """The rows of a worker, as long as it has one to give within the time that one may take."""
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("\n".join(names))
        child.stdin.close()
        while True:
            late = threading.Timer(SECONDS_EACH, child.kill)
            late.start()
            line = child.stdout.readline()
            late.cancel()
            if not line.endswith("\n"):
                return
            yield json.loads(line)


def _read(path: Path) -> Row:
    return dict(json.loads(path.read_bytes())) if path.is_file() else {}


def render(
    versions: dict[str, str], found: dict[str, dict[str, str]], earlier: Row | None = None
) -> str:
    """The file: versions, then a line for each operation with what was seen of its overloads.

    Rows of an earlier run with the same versions stay, unless measured anew.
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
    """How many were called, how many waited, how many could not be called."""
    called = {name: seen for name, seen in found.items() if seen and "" not in seen}
    waited = [name for name, seen in called.items() if set(seen.values()) != {"none"}]
    lost = [name for name, seen in found.items() if "" in seen]
    text = f"{len(called)} of {len(found)} operations called, {len(waited)} waited"
    if lost:
        text = f"{text}, {len(lost)} ended their process: {', '.join(lost)}"
    for name, case in measure.CASES.items():
        if case.disputed and name in called:
            text += f"\ndisputed, {name}: {', '.join(called[name].values())}"
    return text


if __name__ == "__main__":
    sys.exit(main())
