"""The costs of counting, as ratios to the same work uncounted, all taken in one run.

Rows are workloads; columns are the two levels of DispatchCounter and, for comparison, torch's own
means: a TorchDispatchMode and a TorchFunctionMode that only add one. Each figure is the least
processor time of several rounds, in which the columns take turns, so that a change of the machine's
clock affects all of them. With --check the exit status is 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from perf.running import UsageError

# Workload -> level -> the highest ratio that we accept.
LIMITS = {
    "scaler loop": {"full": 7.0, "reads": 3.5},
    "training step": {"full": 1.5, "profile": 1.5},
    "matmul 2048": {"full": 1.05},
}


@dataclass(frozen=True)
class Counter:
    """The seconds for which each workload is repeated; ``check``: limits decide the exit status."""

    check: bool
    seconds: float
    only: str

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("--check", action="store_true", help="exit 1 where a limit is passed")
        parser.add_argument(
            "--seconds", type=float, default=8.0, help="for each workload (default: 8)"
        )
        parser.add_argument("--only", default="", metavar="WORKLOAD", help="leave the others out")

    def measure(self) -> int:
        """Print the table, and each limit that is passed."""
        import torch  # No other command needs it.

        from perf.counted_work import COLUMNS, WORKLOADS, best_times, dispatches

        chosen = {name: work for name, work in WORKLOADS.items() if self.only in ("", name.strip())}
        if not chosen:
            raise UsageError(f"no workload {self.only}; there are {', '.join(WORKLOADS)}")
        torch.set_num_threads(1)
        print(f"torch {torch.__version__}, one thread, ratios to the same work uncounted")
        names = [name for name in COLUMNS if name != "uncounted"]
        print(f"{'':18}{'us/dispatch':>12}" + "".join(f"{name:>20}" for name in names))
        passed: list[str] = []
        for workload, work in chosen.items():
            times = best_times(work, self.seconds)
            cells = []
            for name in names:
                ratio, limit = times[name] / times["uncounted"], LIMITS.get(workload, {}).get(name)
                cells.append(f"{ratio:.2f}" + (f" (limit {limit:g})" if limit else ""))
                if limit and ratio > limit:
                    passed.append(f"{workload}, {name}: {ratio:.2f} is over {limit:g}")
            each = times["uncounted"] / dispatches(work) * 1e6
            print(f"{workload:18}{each:12.2f}" + "".join(f"{cell:>20}" for cell in cells))
        print("\n".join(passed), end="\n" if passed else "")
        return 1 if passed and self.check else 0
