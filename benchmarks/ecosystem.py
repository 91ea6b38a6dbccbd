"""Lint published packages and CPython's own library, and compare the result with the stored one.

    python benchmarks/ecosystem.py                  lint all and print the table
    python benchmarks/ecosystem.py --check          compare with ecosystem.json; 1 where it differs
    python benchmarks/ecosystem.py --write          store the result in ecosystem.json
    python benchmarks/ecosystem.py --only timm,django --wheels FOLDER

The packages are the wheels of the versions in ecosystem.json, fetched by pip and unpacked, not
installed. Every file is linted at the default scope as flake8 would; an error of the plugin ends
the run with its traceback. Files that do not mention torch, which the plugin's prefilter skips in
daily use, are analysed as well and must have no findings.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import io
import json
import os
import subprocess
import sys
import tokenize
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STORED = Path(__file__).with_name("ecosystem.json")
PYTHON = "cpython"
Rows = list[tuple[int, int, str]]


@dataclass
class Summary:
    """The result of linting one package. ``places`` name each finding, to show a difference."""

    version: str
    files: int = 0
    unparsable: int = 0
    lines: int = 0
    without_torch: int = 0
    codes: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class File:
    """One file's result; ``error`` is a traceback of ours."""

    name: str
    lines: int = 0
    parsed: bool = True
    torch: bool = False
    findings: tuple[str, ...] = ()
    error: str = ""


def main() -> int:
    """Lint, print, compare or store."""
    arguments = _arguments()
    stored = json.loads(STORED.read_text())
    names = arguments.only.split(",") if arguments.only else list(stored)
    found: dict[str, Summary] = {}
    broken = 0
    for name in names:
        files = _lint_all(_sources(name, stored[name]["version"], arguments.wheels), arguments.jobs)
        broken += _complain(name, files)
        found[name] = _summary(stored[name]["version"], files)
        _print(name, found[name])
    if arguments.write and not broken:
        merged = {**stored, **{name: asdict(one) for name, one in found.items()}}
        STORED.write_text(json.dumps(merged, indent=1) + "\n")
    changed = arguments.check and _differences(stored, found)
    return 1 if broken or changed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare with the stored result")
    parser.add_argument("--write", action="store_true", help="store the result")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="some packages")
    parser.add_argument(
        "--wheels", type=Path, default=Path("ecosystem-wheels"), help="where wheels are kept"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    return parser.parse_args()


def _sources(name: str, version: str, wheels: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the Python files of a package by name, in a fixed order."""
    if name == PYTHON:
        root = Path(os.__file__).parent
        if not sys.version.startswith(version):
            print(f"ecosystem: {PYTHON}: this is {sys.version.split()[0]}, stored is {version}")
        for path in sorted(root.rglob("*.py")):
            if "site-packages" not in path.parts:
                yield path.relative_to(root).as_posix(), path.read_bytes()
        return
    with zipfile.ZipFile(_wheel(name, version, wheels)) as archive:
        for member in sorted(archive.namelist()):
            if member.endswith(".py"):
                yield member, archive.read(member)


def _wheel(name: str, version: str, wheels: Path) -> Path:
    wheels.mkdir(parents=True, exist_ok=True)
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(wheels.glob(pattern)):
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
            "--only-binary", ":all:", "--dest", str(wheels), f"{name}=={version}",
        ]  # fmt: skip
        subprocess.run(command, check=True)
    return next(wheels.glob(pattern))


def _lint_all(sources: Iterator[tuple[str, bytes]], jobs: int) -> list[File]:
    if jobs == 1:
        return [lint_file(one) for one in sources]
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(lint_file, sources, chunksize=8))


def lint_file(source: tuple[str, bytes]) -> File:
    """Lint one file as flake8 hands it over."""
    from flake8_torchperf.plugin import TorchPerfPlugin
    from flake8_torchperf.prefilter import concerns

    os.environ["TORCHPERF_DEBUG"] = "1"  # errors are raised instead of reported
    name, content = source
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = io.TextIOWrapper(io.BytesIO(content), encoding).read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, LookupError):
        return File(name, parsed=False)
    lines = list(io.StringIO(text))
    has_torch = concerns(lines, name)
    try:
        if has_torch:
            rows = [row[:3] for row in TorchPerfPlugin(tree, lines, name).run()]
        else:
            rows = _past_the_gate(tree, lines, name)
    except Exception:
        return File(name, len(lines), error=traceback.format_exc(limit=-6))
    findings = tuple(f"{name}:{line}:{column + 1}: {text}" for line, column, text in rows)
    return File(name, len(lines), True, has_torch, findings)


def _past_the_gate(tree: ast.Module, lines: Sequence[str], name: str) -> Rows:
    """Analyse a file that the plugin's prefilter skips because it does not mention torch."""
    from flake8_torchperf.linter import lint_tree
    from flake8_torchperf.options import Options

    found = lint_tree(tree, lines, name, Options())
    return [(one.line, one.column, f"{one.code} {one.message}") for one in found]


def _complain(name: str, files: Sequence[File]) -> int:
    """Print failures: errors of ours, files not analysed, findings in files without torch."""
    wrong = [f"{one.name}\n{one.error}" for one in files if one.error]
    wrong += [row for one in files for row in one.findings if " TPF900 " in row]
    wrong += [f"without torch: {row}" for one in files if not one.torch for row in one.findings]
    for text in wrong:
        print(f"ecosystem: {name}: {text}", file=sys.stderr)
    return len(wrong)


def _summary(version: str, files: Sequence[File]) -> Summary:
    rows = [row for one in files for row in one.findings]
    codes = Counter(row.split(" ")[1] for row in rows)
    return Summary(
        version=version,
        files=len(files),
        unparsable=sum(not one.parsed for one in files),
        lines=sum(one.lines for one in files),
        without_torch=sum(one.parsed and not one.torch for one in files),
        codes=dict(sorted(codes.items())),
        # Messages change with every rewording; place and code identify a finding.
        places=[" ".join(row.split(" ")[:2]) for row in rows],
    )


def _print(name: str, one: Summary) -> None:
    codes = ", ".join(f"{code} {count}" for code, count in one.codes.items()) or "nothing"
    print(
        f"{name} {one.version}: {one.files} files ({one.without_torch} without torch, "
        f"{one.unparsable} not Python), {one.lines} lines: {codes}",
        flush=True,
    )


def _differences(stored: dict[str, Any], found: dict[str, Summary]) -> int:
    count = 0
    for name, one in found.items():
        before, after = Counter(stored[name].get("places", [])), Counter(one.places)
        for sign, rows in (("-", before - after), ("+", after - before)):
            for row in rows.elements():
                print(f"{sign} {name}: {row}")
                count += 1
        for key in ("files", "lines", "unparsable", "without_torch"):
            if stored[name].get(key) != getattr(one, key):
                print(f"! {name}: {key} {stored[name].get(key)} -> {getattr(one, key)}")
                count += 1
    print(f"{count} differences")
    return count


if __name__ == "__main__":
    raise SystemExit(main())
