"""Regions of code that may wait for the device: a block, a decorated function or a comment says so.

Of a function that is called in a region, nothing is known here; nor of one that is defined in it.
"""

from __future__ import annotations

import ast
import re
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.source_text import tokens_of
from flake8_torchperf.syntax.traversal import FUNCTIONS, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.project.module_index import ModuleMap

# Names that allow waits, each with the parameter that holds the reason; "" if there is none.
ALLOWING = {
    "torchperf.allow_sync": "reason",
    # vllm-project/vllm: vllm/utils/gpu_sync_debug.py
    "vllm.utils.gpu_sync_debug.gpu_sync_allowed": "",
}
_NAMES = frozenset(name.rpartition(".")[2] for name in ALLOWING)


@dataclass(frozen=True)
class Allowed:
    """A region: its first and last line, the ``name`` that allows waits there, and the reason.

    ``inner`` are the lines of functions that are defined in it, which run elsewhere.
    """

    first: int
    last: int
    name: str
    reason: str
    inner: tuple[tuple[int, int], ...]

    def holds(self, line: int) -> bool:
        """True if a line stands in the region."""
        if not self.first <= line <= self.last:
            return False
        return not any(first <= line <= last for first, last in self.inner)


def allowed_region(line: int, module: ModuleMap, comments: Sequence[str]) -> Allowed | None:
    """Return the innermost region that allows waits in a line; None if there is none."""
    found = [one for one in allowed_regions(module, comments) if one.holds(line)]
    return max(found, key=lambda one: one.first, default=None)


def allowed_regions(module: ModuleMap, comments: Sequence[str]) -> list[Allowed]:
    """Return the regions of a module, in no particular order.

    ``comments`` are the words with which comments allow the waits that begin in their line.
    """
    found = list(_commented(module, comments))
    if any(module.says(name) for name in _NAMES):
        found += [one for node in ast.walk(module.tree) for one in _regions(node, module)]
    return found


def _commented(module: ModuleMap, comments: Sequence[str]) -> Iterator[Allowed]:
    """Yield the lines with such a comment, which may hold a reason behind a colon."""
    words = [word for word in comments if any(word in line for line in module.lines)]
    if not words:
        return
    stated = re.compile(rf"#\s*({'|'.join(map(re.escape, words))})\b(?![\w-])\s*:?\s*(.*)")
    for token in tokens_of("".join(module.lines)):
        found = stated.match(token.string) if token.type == tokenize.COMMENT else None
        if found is not None:
            line = token.start[0]
            yield Allowed(line, line, f"# {found[1]}", found[2].strip(), ())


def _regions(node: ast.AST, module: ModuleMap) -> Iterator[Allowed]:
    match node:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            calls = [item.context_expr for item in items]
        case ast.FunctionDef(decorator_list=calls):
            pass
        case _:
            return
    for call in calls:
        name = module.qualify(call.func) if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and name in ALLOWING:
            body: Sequence[ast.stmt] = node.body
            inner = tuple(
                (one.lineno, one.end_lineno or one.lineno)
                for one in walk(body)
                if isinstance(one, FUNCTIONS)
            )
            last = body[-1].end_lineno or body[-1].lineno
            short = name.rpartition(".")[2]
            yield Allowed(body[0].lineno, last, short, _reason(call, ALLOWING[name]), inner)


def _reason(call: ast.Call, parameter: str) -> str:
    """Return the reason that a call states as a literal; "" if it states none."""
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == parameter)]
    match given[:1] if parameter else []:
        case [ast.Constant(value=str(reason))]:
            return " ".join(reason.split())
    return ""
