"""Traces functions with ``torch.compile``: their graphs, and each break with its lines.

`torch._dynamo.explain` runs the function and counts its graphs, but keeps only the breaks that end
a graph with operations in it. The breaks are therefore taken from the tracer's own log, which names
every one and its user stack. Nothing is compiled to machine code.
"""

from __future__ import annotations

import contextlib
import logging
import re
import unittest.mock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

# The logger on which torch's tracer reports every graph break (torch._logging's "graph_breaks").
LOGGER = "torch._dynamo.symbolic_convert.__graph_breaks"
# The tracer advises on stderr how to capture `item()`, but here the break itself is wanted.
ADVISER = "torch._dynamo.variables.tensor"
_PLACE = re.compile(r"in user code at (.*):(\d+)$", re.MULTILINE)
_FRAME = re.compile(r'^\s*File "(.*)", line (\d+), in ', re.MULTILINE)
_PREAMBLE = ("Encountered graph break", "Failed to handle graph break", "Graph Break Reason")


@dataclass(frozen=True)
class GraphBreak:
    """One break: its type in torch's registry, and the (file, line) of each frame in its stack."""

    kind: str
    stack: tuple[tuple[str, int], ...]

    def lines_in(self, path: str) -> set[int]:
        """Return the lines of a file in this break's user stack."""
        return {line for file, line in self.stack if file == path}

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return {"kind": self.kind, "stack": [list(frame) for frame in self.stack]}


@dataclass(frozen=True)
class Explained:
    """One traced call: how many graphs it took, and what broke them."""

    graphs: int
    breaks: tuple[GraphBreak, ...]
    error: str = ""

    def at(self, path: str, first: int, last: int) -> tuple[GraphBreak, ...]:
        """Return the breaks whose user stack names one of these lines."""
        lines = set(range(first, last + 1))
        return tuple(one for one in self.breaks if one.lines_in(path) & lines)


def explain(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Explained:
    """Trace one call of ``function``, which runs it, and return what broke its graph.

    A compiled function is traced as the function that it was made from. Exceptions of the function
    are passed on; an error of the tracer itself is part of the result.
    """
    dynamo: Any = torch._dynamo
    with _breaks() as found:
        try:
            told = dynamo.explain(function)(*args, **kwargs)
        except dynamo.exc.TorchDynamoException as error:
            return Explained(0, tuple(found), " ".join(str(error).split())[:300])
    return Explained(int(told.graph_count), tuple(found))


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Let ``torch.compile`` return its argument unchanged: `explain` traces that itself.

    Code loaded under this can be run line by line, and needs no C++ compiler.
    """

    def hand_back(model: Any = None, **options: Any) -> Any:
        return model if model is not None else lambda given: given

    def stay(self: torch.nn.Module, *args: Any, **options: Any) -> None:
        return None

    with (
        unittest.mock.patch.object(torch, "compile", hand_back),
        unittest.mock.patch.object(torch.nn.Module, "compile", stay),
    ):
        yield


@contextlib.contextmanager
def _breaks() -> Iterator[list[GraphBreak]]:
    """Collect the breaks that the tracer reports while this is open."""
    found: list[GraphBreak] = []
    handler = _Collector(found)
    logger, adviser = logging.getLogger(LOGGER), logging.getLogger(ADVISER)
    before = logger.level, logger.propagate, adviser.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    adviser.setLevel(logging.ERROR)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
        adviser.setLevel(before[2])


class _Collector(logging.Handler):
    def __init__(self, found: list[GraphBreak]) -> None:
        super().__init__(logging.DEBUG)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        """Store the break that one report of the tracer describes."""
        message = record.getMessage()
        place = _PLACE.search(message)
        if place is None:
            return
        frames = [(file, int(line)) for file, line in _FRAME.findall(message)]
        frames.append((place[1], int(place[2])))
        self._found.append(GraphBreak(_kind(message), tuple(dict.fromkeys(frames))))


def _kind(message: str) -> str:
    """Return the registry's type: the first line of the reason after its preamble."""
    reason = message.partition("Graph Break Reason: ")[2]
    for line in reason.splitlines():
        words = line.strip()
        if words and not words.startswith(_PREAMBLE):
            return words
    return ""
