"""Measures the costs of both examples of every rule page on a GPU, and writes them into the pages.

    python tools/measure_costs.py                    on a machine with CUDA: measures, then writes
    python tools/measure_costs.py --only TPF203
    python tools/measure_costs.py --pages            anywhere: the pages again, from the file

Writes `benchmarks/costs.json` and one sentence into each page. Pages are measured in a separate
process, which a fault of the device may end. Rows are saved as they come, and the next run
continues an interrupted one.
"""

from __future__ import annotations

import argparse
import datetime
import io
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from torch_table import witness, workers  # noqa: E402
from torch_table.costs import (  # noqa: E402
    COSTS,
    FIGURES,
    UNMEASURED,
    digest,
    read_costs,
    write_costs,
    written,
)

from flake8_torchperf.findings.catalogue import load_catalogue  # noqa: E402
from flake8_torchperf.findings.documentation import (  # noqa: E402
    Documentation,
    read_documentation,
)

N = 256
QUEUE_MS = 4.0
# The number of calls behind a busy queue, whose median counts; the number of calls in a row and
# their shortest total time.
BEHIND = 9
LEAST_CALLS, MOST_CALLS, ROW_SECONDS = 5, 2000, 0.3


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Measure what the pages' examples cost on CUDA.")
    parser.add_argument("--only", default="*", metavar="GLOB", help="codes to measure")
    parser.add_argument("--output", type=Path, default=COSTS)
    parser.add_argument("--pages", action="store_true", help="only write the pages again")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    pages = {one.rule.code: one for one in map(read_documentation, load_catalogue().rules)}
    if arguments.pages:
        return write_pages(pages, arguments.output)
    lacking = witness.missing()
    if lacking:
        print(f"nothing was measured: {lacking}", file=sys.stderr)
        return 2
    if arguments.worker:
        workers.serve(work(pages, sys.stdin.read().split("\n")))
        return 0
    codes = [c for c in pages if c not in UNMEASURED and fnmatchcase(c, arguments.only)]
    if not codes:
        print(f"there is no page {arguments.only} to measure", file=sys.stderr)
        return 2
    versions = witness.described()
    try:
        found = workers.measured(codes, Path(__file__).resolve(), arguments.output, versions)
    except workers.LostDevice as error:
        print(f"the rest was not measured: {error}", file=sys.stderr)
        return 2
    return _write(versions, found, pages, arguments.output)


def _write(
    versions: dict[str, str], found: workers.Row, pages: dict[str, Documentation], output: Path
) -> int:
    rules = {code: row for code, row in found.items() if "digest" in row}
    for code in sorted(set(found) - set(rules)):
        print(f"{code}: {found[code]}", file=sys.stderr)
    date = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    figures = f"each example: {', '.join(FIGURES)}"
    origin = {**versions, "date": date, "n": N, "queue_ms": QUEUE_MS, "figures": figures}
    if output.is_file():
        rules = {**_kept(output, pages), **rules}
    write_costs(origin, rules, output)
    write_pages(pages, output)
    print(f"{len(found)} pages, {len(rules)} in {output}")
    return 0 if set(found) <= set(rules) else 1


def _kept(output: Path, pages: dict[str, Documentation]) -> dict[str, Any]:
    """Return the rows of an earlier run that still belong to their pages' examples."""
    kept: dict[str, Any] = {}
    for code, cost in read_costs(output).rules.items():
        page = pages.get(code)
        if page is not None and page.example is not None and cost.digest == digest(page.example):
            both = {"bad": cost.bad, "good": cost.good}
            rows = {name: [getattr(one, f) for f in FIGURES] for name, one in both.items()}
            kept[code] = {"digest": cost.digest, **rows}
    return kept


def write_pages(pages: dict[str, Documentation], output: Path) -> int:
    """Put the sentence of each page where it belongs; returns the exit status."""
    costs = read_costs(output)
    for page in pages.values():
        page.rule.path.write_text(written(page, costs), encoding="utf-8")
    return 0


def work(pages: dict[str, Documentation], codes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield a row for each page: its examples' digest and figures, or what the examples raised."""
    device = Device()
    for code in codes:
        page = pages[code]
        assert page.example is not None
        try:
            row: dict[str, Any] = {"digest": digest(page.example)}
            row.update({which: device.figures(page, which) for which in ("bad", "good")})
        except Exception as error:  # one page's example failed: the others are still measured
            row = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
        yield code, row


class Device:
    """The CUDA device, and for how many cycles its idling kernel is busy for `QUEUE_MS`."""

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        self._cycles = witness.CudaWitness().cycles(QUEUE_MS / 1000)

    def figures(self, page: Documentation, which: Any) -> list[float]:
        """Return the figures of one example, in the order of `FIGURES`."""
        from page_examples import made

        with made(page, which, N, "cuda") as (function, inputs), redirect_stdout(io.StringIO()):

            def call() -> object:
                return function(**inputs)

            call()  # loads kernels
            call()
            self._torch.cuda.synchronize()
            waits = self._waits(call)
            behind = statistics.median(self._behind(call) for _ in range(BEHIND))
            return [waits, round(self._in_a_row(call), 4), round(behind, 3)]

    def _waits(self, call: Callable[[], object]) -> int:
        from flake8_torchperf.runtime.counting.counter import DispatchCounter

        with DispatchCounter("reads") as counter:
            call()
        totals = counter.evidence.totals
        return totals.device_syncs + totals.synchronisations

    def _behind(self, call: Callable[[], object]) -> float:
        """Return the milliseconds until the call is back, on a device that has work queued."""
        self._torch.cuda.synchronize()
        self._torch.cuda._sleep(self._cycles)
        start = perf_counter()
        call()
        return (perf_counter() - start) * 1000

    def _in_a_row(self, call: Callable[[], object]) -> float:
        """Return the milliseconds of one call among many, until the device is done."""
        self._torch.cuda.synchronize()
        count, start = 0, perf_counter()
        while count < LEAST_CALLS or (count < MOST_CALLS and perf_counter() - start < ROW_SECONDS):
            call()
            count += 1
        self._torch.cuda.synchronize()
        return (perf_counter() - start) * 1000 / count


if __name__ == "__main__":
    sys.exit(main())
