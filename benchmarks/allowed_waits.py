"""Score the linter on the waits that vLLM allows: regions that its CI found to wait on GPUs.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0-*.whl -d vllm-0.33.0
    python benchmarks/allowed_waits.py vllm-0.33.0 [--missed]

vLLM runs its tests with CUDA's sync debug mode as an error, and marks with ``gpu_sync_allowed()``
what has to wait. Each marked block is a wait that nobody of this project chose. The package is
linted in a copy in which the marks have another name, since the linter is silent in them. A block
is told if a finding begins in it.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

MARK = "gpu_sync_allowed"
# As long as the mark, so that columns stay.
UNKNOWN = "gpu_sync_unknown"
# Where vLLM defines its marks.
DEFINED = "vllm/utils/gpu_sync_debug.py"
PROCESSES = 2
SCOPES = (Options(), Options(scope=Level.COLD))


class Block(NamedTuple):
    """A marked block by its lines, and whether it is told by default and in scope all."""

    path: str
    first: int
    last: int
    by_default: bool = False
    at_all: bool = False


def blocks(path: str, text: str) -> Iterator[Block]:
    """Yield the bodies of ``with`` statements and functions that are marked, in no order."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.With):
            marks = [item.context_expr for item in node.items]
        elif isinstance(node, ast.FunctionDef):
            marks = node.decorator_list
        else:
            continue
        if any(isinstance(one, ast.Call) and _last_name(one.func) == MARK for one in marks):
            last = node.body[-1]
            yield Block(path, node.body[0].lineno, last.end_lineno or last.lineno)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def scored(root: Path, path: str, text: str) -> list[Block]:
    """Return the marked blocks of a file of the copy below ``root``, whose own text is ``text``."""
    linted = (root / path).read_text(encoding="utf-8")
    told = [{one.line for one in lint(linted, str(root / path), scope)} for scope in SCOPES]
    return [
        one._replace(
            by_default=any(one.first <= line <= one.last for line in told[0]),
            at_all=any(one.first <= line <= one.last for line in told[0] | told[1]),
        )
        for one in blocks(path, text)
    ]


def copied(package: Path, root: Path) -> dict[str, str]:
    """Copy a package's modules to ``root`` without marks; return the texts of those with any."""
    marked: dict[str, str] = {}
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package).as_posix()
        text = file.read_text(encoding="utf-8")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if MARK in text and path != DEFINED:
            marked[path] = text
            (root / path).write_text(text.replace(MARK, UNKNOWN), encoding="utf-8")
        else:
            shutil.copyfile(file, root / path)
    return marked


def main() -> int:
    """Print the score; returns the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="the folder that holds vllm/")
    parser.add_argument("--missed", action="store_true", help="list what is not told by default")
    arguments = parser.parse_args()
    if not (arguments.package / DEFINED).is_file():
        print(f"allowed_waits: {arguments.package} holds no {DEFINED}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(PROCESSES) as pool:
        root = Path(folder)
        marked = copied(arguments.package, root)
        files = pool.map(partial(scored, root), marked, marked.values())
        found = [one for file in files for one in file]
    for one in found if arguments.missed else ():
        if not one.by_default:
            print(f"{one.path}:{one.first}: {'scope all' if one.at_all else 'not told'}")
    by_default, at_all = (sum(told) for told in zip(*(one[3:] for one in found), strict=True))
    print(
        f"{len(found)} marked blocks in {len(marked)} files: {by_default} told by default, "
        f"{at_all} at all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
