"""Places where tensor work meets Python, as the interpreter records them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection

    from flake8_torchperf.absint.domain.heat import Cause, Heat
    from flake8_torchperf.absint.domain.values import Value
    from flake8_torchperf.syntax.positions import Snippet


class SiteKind(str, Enum):
    """The ways in which Python and tensor work meet; rule pages name them by these values."""

    HOST_READ = "HostRead"
    TRANSFER = "Transfer"
    HOST_REDUCTION = "HostReduction"
    FORMAT = "Format"
    HOST_COMPARISON = "HostComparison"
    SYNCHRONIZE = "Synchronize"
    NUMBER_USE = "NumberUse"
    TENSOR_ITERATION = "TensorIteration"
    ELEMENT_ACCESS = "ElementAccess"
    PARAMETER_LOOP = "ParameterLoop"
    GROWTH = "Growth"
    HOST_ACCUMULATION = "HostAccumulation"
    BRANCH = "Branch"
    DYNAMIC_SHAPE = "DynamicShape"
    MASK_INDEX = "MaskIndex"
    LIST_INDEX = "ListIndex"
    NUMBER_ASSIGNED = "NumberAssigned"
    ALLOCATION = "Allocation"
    GRAPH_BREAK = "GraphBreak"
    RECOMPILE = "Recompile"
    TRANSFORM = "Transform"
    RACE = "Race"
    DATA_LOADER = "DataLoader"
    OPTIMIZER_OPTION = "OptimizerOption"
    GRAPH_ACCUMULATION = "GraphAccumulation"
    TORCH_CALL = "TorchCall"
    CALL = "Call"
    UNSEEN_CALL = "UnseenCall"


@dataclass(frozen=True, slots=True)
class Loop:
    """One enclosing loop.

    ``line`` is the 1-based line of the loop in the file (0 until the site is located), ``kind``
    is "for", "while" or "comprehension", ``over`` the source of what it iterates ("" for a
    while loop).
    """

    line: int
    kind: str
    over: str
    node: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """One place, with everything that a rule may ask for.

    ``operation`` is the field's name for what happens there ("item", "if", "print"). ``operand`` is
    the value read, its reason included; None if there is none (an explicit synchronisation).
    ``loops`` holds the enclosing loops, outermost first. ``covers`` lists nodes whose own findings
    this site replaces, so that each problem is reported once. ``compiled`` names the compiled or
    transformed code that holds the place: "of the compiled step".
    """

    kind: SiteKind
    operation: str
    node: ast.AST
    operand: Value | None
    heat: Heat
    loops: tuple[Loop, ...] = ()
    function: str = "<module>"
    traits: frozenset[str] = field(default_factory=frozenset)
    covers: tuple[ast.AST, ...] = ()
    operand_node: ast.AST | None = None
    compiled: str = ""

    def heated(self, heat: Heat) -> Site:
        """Return the same place with another heat."""
        return replace(self, heat=heat)

    def cooled(self, why: Cause) -> Site:
        """Return the same place, reported only in scope "all"; what repeats it stays."""
        return replace(self, heat=self.heat.cooled(why))


@dataclass(frozen=True, slots=True, eq=False)
class AnalysisResult:
    """The sites of one piece of a file, and the snippet they stand in.

    ``queued`` holds the identities of the operators, subscripts and assignments that compute on
    tensors of the device, among them those of other pieces.
    """

    snippet: Snippet
    sites: tuple[Site, ...]
    queued: Collection[int] = frozenset()
