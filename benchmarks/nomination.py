"""Shows that nomination loses no finding: everything interpreted against the nominated alone.

    python benchmarks/nomination.py PATH... [--every N]

Prints, per path, the findings of both ways (scope "all"), the share of functions and lines that is
nominated, and what each stage costs in CPU seconds. Exits with 1 where a finding is lost.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flake8_torchperf import pipeline
from flake8_torchperf.findings.model import Finding
from flake8_torchperf.interpret.project import split_lines
from flake8_torchperf.options import Options
from flake8_torchperf.sites.model import Level
from flake8_torchperf.suspects.modulemap import ModuleMap, read_module
from flake8_torchperf.suspects.nominate import Suspects, nominate, with_compiled

# Lost findings printed for one path.
MAX_SHOWN = 20


@dataclass
class Tally:
    """What was counted over one path."""

    files: int = 0
    lines: int = 0
    functions: int = 0
    nominated: int = 0
    nominated_lines: int = 0
    everything: int = 0
    sharp: int = 0
    lost: list[str] = field(default_factory=list)
    gained: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def spent(self, stage: str, seconds: float) -> None:
        """Add CPU seconds to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds


def modules(path: Path, every: int) -> Iterator[tuple[Path, ast.Module, tuple[str, ...]]]:
    """Every n-th parsable file that speaks of torch."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    for file in files[::every]:
        text = file.read_bytes()
        try:
            yield file, ast.parse(text), split_lines(text.decode("utf-8-sig"))
        except (SyntaxError, ValueError):
            continue


def compare(file: Path, tree: ast.Module, lines: tuple[str, ...], tally: Tally) -> None:
    """Lint one file both ways, each on a map of its own."""
    tally.files += 1
    tally.lines += len(lines)
    if not any("torch" in line for line in lines):
        return
    everything = _map(tree, lines, file)
    start = time.process_time()
    module = _map(tree, lines, file)
    mapped = time.process_time()
    defined = len(module.defined)
    suspects = nominate(module)
    nominated = time.process_time()
    sharp = _lint(module, suspects)
    tally.spent("interpret, nominated", time.process_time() - nominated)
    tally.spent("map", mapped - start)
    tally.spent("nominate", nominated - mapped)
    start = time.process_time()
    full = _lint(everything, Suspects(tuple(everything.defined), module_level=True))
    tally.spent("interpret, everything", time.process_time() - start)
    tally.functions += defined
    tally.nominated += len(suspects.functions)
    tally.nominated_lines += sum(
        (f.node.end_lineno or 0) - f.node.lineno + 1 for f in suspects.functions
    )
    tally.everything += len(full)
    tally.sharp += len(sharp)
    tally.lost.extend(f"{file}{where}" for where in _places(full) - _places(sharp))
    tally.gained.extend(f"{file}{where}" for where in _places(sharp) - _places(full))


def _map(tree: ast.Module, lines: tuple[str, ...], file: Path) -> ModuleMap:
    return read_module(tree, lines, file)


def _lint(module: ModuleMap, suspects: Suspects) -> list[Finding]:
    if not suspects:
        return []
    options = Options(scope=Level.COLD)
    compiled = pipeline._compiled(module, options)
    chosen = with_compiled(suspects, module, compiled)
    return pipeline._interpret(module, chosen, compiled, options, {})


def _places(findings: Iterable[Finding]) -> Counter[str]:
    return Counter(f":{f.line}:{f.column + 1}: {f.code} {f.message}" for f in findings)


def report(path: Path, tally: Tally) -> None:
    """Print one path's tally."""
    share = tally.nominated / max(1, tally.functions)
    line_share = tally.nominated_lines / max(1, tally.lines)
    print(f"{path}: {tally.files} files, {tally.lines} lines")
    print(
        f"  nominated {tally.nominated} of {tally.functions} functions ({share:.0%}), "
        f"{tally.nominated_lines} lines ({line_share:.0%})"
    )
    print(
        f"  findings {tally.everything} of everything, {tally.sharp} of the nominated: "
        f"{len(tally.lost)} lost, {len(tally.gained)} differing"
    )
    for stage, seconds in tally.seconds.items():
        each = 1e6 * seconds / max(1, tally.lines)
        print(f"  {stage:24}{seconds:8.2f} CPU s {each:8.1f} us a line")
    for title, places in (("lost", tally.lost), ("differing", tally.gained)):
        for place in places[:MAX_SHOWN]:
            print(f"  {title}: {place}")


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="files or trees")
    parser.add_argument("--every", type=int, default=1, help="take every n-th file (default: 1)")
    arguments = parser.parse_args()
    lost = 0
    for path in arguments.paths:
        if not path.exists():
            parser.error(f"there is no {path}")
        tally = Tally()
        for file, tree, lines in modules(path, arguments.every):
            compare(file, tree, lines, tally)
        report(path, tally)
        lost += len(tally.lost)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
