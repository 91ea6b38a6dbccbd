"""Edit a copy of a package at random and compare `torchperf check` with and without its cache.

    python benchmarks/random_edits.py PACKAGE --edits 200 --full-every 5 --options="--scope all"

After each edit the findings that the cache gives are compared with those of a run without one; with
``--full-every N`` only after every N edits. Ends with 1 at the first difference, which it prints,
with the edits made. At the end it prints the processor time of runs with a cache, by kind of edit,
as shares of the first.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import random
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

TORCHPERF = Path(sys.executable).with_name("torchperf")
APPENDED = '''

def appended_{number}(x):
    """Return the sum of a tensor as a number."""
    return x.sum().item()
'''


Found = TypeVar("Found")


class NoPlaceError(Exception):
    """The module holds nothing that an edit of this kind could change."""


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """Return the simple statements with their own lines, if their body has other statements too."""
    found: list[ast.stmt] = []
    for node in ast.walk(tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list) and len(body) > 1:
                found += [one for one in body if isinstance(one, (ast.Assign, ast.Expr))]
    return found


def _one(found: list[Found], chosen: random.Random) -> Found:
    if not found:
        raise NoPlaceError
    return chosen.choice(found)


def append(lines: list[str], chosen: random.Random) -> None:
    """Add a function at the end."""
    lines.append(APPENDED.format(number=chosen.randrange(10**6)))


def comment(lines: list[str], chosen: random.Random) -> None:
    """Add a comment above a statement."""
    one = _one(_statements(ast.parse("".join(lines))), chosen)
    lines.insert(one.lineno - 1, " " * one.col_offset + "# A comment.\n")


def blank(lines: list[str], chosen: random.Random) -> None:
    """Move all that the module holds down by a line."""
    del chosen
    lines.insert(0, "\n")


def delete(lines: list[str], chosen: random.Random) -> None:
    """Take out a statement."""
    one = _one(_statements(ast.parse("".join(lines))), chosen)
    lines[one.lineno - 1 : one.end_lineno] = [" " * one.col_offset + "pass\n"]


def read(lines: list[str], chosen: random.Random) -> None:
    """Read the first name that a statement binds."""
    bound = [
        (one, one.targets[0].id)
        for one in _statements(ast.parse("".join(lines)))
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    ]
    one, name = _one(bound, chosen)
    text = f"{' ' * one.col_offset}print({name}.item())\n"
    lines.insert(one.end_lineno or one.lineno, text)


def rename(lines: list[str], chosen: random.Random) -> None:
    """Give a function or class at module level another name."""
    named = [
        one
        for one in ast.parse("".join(lines)).body
        if isinstance(one, (ast.FunctionDef, ast.ClassDef))
    ]
    one = _one(named, chosen)
    at = one.lineno - 1
    lines[at] = lines[at].replace(one.name, f"{one.name}_renamed", 1)


def forget_import(lines: list[str], chosen: random.Random) -> None:
    """Take out an import."""
    imports = [
        one
        for one in ast.parse("".join(lines)).body
        if isinstance(one, (ast.Import, ast.ImportFrom)) and one.lineno == one.end_lineno
    ]
    one = _one(imports, chosen)
    lines[one.lineno - 1] = "pass\n"


def loop(lines: list[str], chosen: random.Random) -> None:
    """Put a statement into a loop."""
    one = _one([s for s in _statements(ast.parse("".join(lines))) if s.col_offset], chosen)
    held = lines[one.lineno - 1 : one.end_lineno]
    if one.lineno != one.end_lineno:
        raise NoPlaceError
    indent = " " * one.col_offset
    lines[one.lineno - 1 : one.end_lineno] = [f"{indent}for _ in range(9):\n", f"    {held[0]}"]


# The names that modules of the package import from one another.
IMPORTED: set[str] = set()


def shared_body(lines: list[str], chosen: random.Random) -> None:
    """Add a statement to a function or method at module level that other modules import."""
    tree = ast.parse("".join(lines))
    _add_to_body(lines, [one for one in tree.body if _name(one) in IMPORTED], chosen)


def tabled_body(lines: list[str], chosen: random.Random) -> None:
    """Add a statement to what a dict, list or tuple of a module or a class names."""
    tree = ast.parse("".join(lines))
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    statements = [*tree.body, *(one for holder in classes for one in holder.body)]
    values = [one.value for one in statements if isinstance(one, (ast.Assign, ast.AnnAssign))]
    tables = [one for one in values if isinstance(one, (ast.Dict, ast.List, ast.Tuple, ast.Call))]
    named = {one.id for table in tables for one in ast.walk(table) if isinstance(one, ast.Name)}
    _add_to_body(lines, [one for one in tree.body if _name(one) in named], chosen)


def _name(node: ast.stmt) -> str:
    return node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ""


def _add_to_body(lines: list[str], among: list[ast.stmt], chosen: random.Random) -> None:
    """Add a statement to one of the functions in some definitions."""
    functions = [
        inner for one in among for inner in ast.walk(one) if isinstance(inner, ast.FunctionDef)
    ]
    one = _one(_one(functions, chosen).body, chosen)
    lines.insert(one.lineno - 1, f"{' ' * one.col_offset}added = {chosen.randrange(10**6)}\n")


def names_imported(paths: list[Path]) -> set[str]:
    """Return the names that modules import from one another, by relative or absolute imports."""
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found.update(alias.name for alias in node.names)
    return found


KINDS: tuple[Callable[[list[str], random.Random], None], ...] = (
    append, comment, blank, delete, read, rename, forget_import, loop, shared_body, tabled_body,
)  # fmt: skip


def edit(paths: list[Path], chosen: random.Random) -> tuple[str, str]:
    """Edit one of the modules; returns the kind of the edit and where it was made."""
    while True:
        path, kind = chosen.choice(paths), chosen.choice(KINDS)
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        try:
            kind(lines, chosen)
            text = "".join(lines)
            ast.parse(text)
        except (NoPlaceError, SyntaxError):
            continue
        path.write_text(text, encoding="utf-8")
        return kind.__name__, str(path)


def check(folder: Path, package: str, *options: str) -> tuple[str, float]:
    """Return what `torchperf check` prints, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [TORCHPERF, "check", "--isolated", package, *options],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if not done.stderr.startswith("torchperf: check: ") and done.stderr:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, spent


def compare(folder: Path, package: str, arguments: argparse.Namespace) -> int:
    """Make the edits and compare; returns the exit status."""
    chosen = random.Random(arguments.seed)
    paths = sorted((folder / package).rglob("*.py"))
    IMPORTED.update(names_imported(paths))
    kept = ("--torchperf-cache-dir", str(folder / "cache"), *arguments.options)
    _, first = check(folder, package, *kept)
    _, again = check(folder, package, *kept)
    print(f"first run: {first:.1f} s of processor time; with nothing changed {again / first:.1%}")
    spent: dict[str, list[float]] = {}
    made: list[str] = []
    for number in range(1, arguments.edits + 1):
        kind, where = edit(paths, chosen)
        made.append(f"{kind} in {where}")
        found, seconds = check(folder, package, *kept)
        spent.setdefault(kind, []).append(seconds)
        if number % arguments.full_every and number != arguments.edits:
            continue
        expected, _ = check(folder, package, "--no-torchperf-cache", *arguments.options)
        if found != expected:
            print(*made, sep="\n")
            differing = difflib.unified_diff(expected.splitlines(), found.splitlines(), lineterm="")
            print(*differing, sep="\n")
            return 1
        print(f"{number}: {made[-1]}: the same {len(found.splitlines())} findings", flush=True)
    for kind, times in sorted(spent.items()):
        share = statistics.median(times) / first
        print(f"  {kind}: {len(times)} edits, median {share:.1%}, most {max(times) / first:.1%}")
    return 0


def main() -> int:
    """Read the command line, copy the package, edit and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full-every", type=int, default=1)
    parser.add_argument("--options", type=shlex.split, default=[], help="of torchperf check")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = arguments.package.resolve()
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, folder / package.name, ignore=ignored)
        return compare(folder, package.name, arguments)


if __name__ == "__main__":
    sys.exit(main())
