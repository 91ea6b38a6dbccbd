"""Measures the costs of the linter and the counter.

python benchmarks/perf cold PATH...     flake8 with and without the plugin
python benchmarks/perf check PATH       torchperf check against flake8 --select TPF
python benchmarks/perf stages PATH...   CPU seconds of the linter by stage, and the slowest files
python benchmarks/perf growth           time and memory over the size of generated programs
python benchmarks/perf marker TREE      torchperf check outside a project, and inside one
python benchmarks/perf counter          the cost of counting, against the same work uncounted
python benchmarks/perf server FILE...   from a key to its diagnostics in the language server
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Protocol

# Python looks for modules inside a folder that it runs, not for the folder itself.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from perf.check import Check
from perf.cold import Cold
from perf.counter import Counter
from perf.growth import Growth
from perf.marker import Marker
from perf.running import UsageError
from perf.server import Server
from perf.stages import Stages


class Measurement(Protocol):
    """A sub-command: a frozen dataclass with a field for each of its options."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""

    def measure(self) -> int:
        """Measure and print; returns the exit status, or raises UsageError before measuring."""


KINDS: dict[str, type[Measurement]] = {
    "cold": Cold,
    "check": Check,
    "stages": Stages,
    "growth": Growth,
    "marker": Marker,
    "counter": Counter,
    "server": Server,
}


def main() -> int:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(
        prog="perf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, kind in KINDS.items():
        about = sys.modules[kind.__module__].__doc__
        kind.add_arguments(commands.add_parser(name, description=about))
    options = vars(parser.parse_args())
    measurement = KINDS[options.pop("command")](**options)
    try:
        return measurement.measure()
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
