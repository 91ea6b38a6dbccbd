"""Why a value is known to be a tensor, and how sure that is."""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING

from flake8_torchperf.values.record import record

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable


class Strength(IntEnum):
    """The strength of a reason: assumed by convention, inferred from use, stated in code."""

    ASSUMED = 1
    INFERRED = 2
    STATED = 3


class Source(Enum):
    """The origin of a fact, if it decides how much other evidence counts."""

    ELSEWHERE = auto()
    PARAMETER_ANNOTATION = auto()
    RETURN_ANNOTATION = auto()
    DOCSTRING = auto()
    TYPE_TEST = auto()  # isinstance
    LOADER_BATCH = auto()  # of a torch.utils.data.DataLoader
    TOKENIZER = auto()  # its results for text or images, on the host
    MODULE_OUTPUT = auto()  # of a module whose class is unknown
    CALL = auto()  # an argument of the recorded calls of a function


@record
class Reason:
    """The reason that a value is a tensor: a fact, its node, and the fact before it.

    ``fact`` is for people to read; its consequences depend on ``source``.
    """

    fact: str
    node: ast.AST | None = None
    because: Reason | None = None
    strength: Strength = Strength.STATED
    source: Source = Source.ELSEWHERE

    def describe(self, line_of: Callable[[ast.AST], int | None]) -> str:
        """Return the chain of facts in one line, the last one first.

        ``line_of`` gives the 1-based line of a node.
        """
        facts: list[str] = []
        reason: Reason | None = self
        while reason is not None and len(facts) < MAX_FACTS_TOLD:
            line = line_of(reason.node) if reason.node is not None else None
            facts.append(reason.fact if line is None else f"{reason.fact}, line {line}")
            reason = reason.because
        return "; ".join(facts)

    def root(self) -> Reason:
        """Return the first fact, on which all others rest."""
        reason = self
        while reason.because is not None:
            reason = reason.because
        return reason


# A chain of facts longer than this no longer helps the reader of a message.
MAX_FACTS_TOLD = 4
