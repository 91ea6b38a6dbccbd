"""The places that are evaluated, and the sites that are recorded there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.values.values import UNKNOWN, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection

    from flake8_torchperf.interpreter.engine.analysis import Analysis, Budget
    from flake8_torchperf.project.module_index import (
        ClassInfo,
        FunctionInfo,
        FunctionNode,
        ModuleMap,
    )
    from flake8_torchperf.syntax.positions import Snippet
    from flake8_torchperf.values.cause import Cause
    from flake8_torchperf.values.site import SiteKind


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A function that is being interpreted: its info, and the frame of the function around it.

    ``info`` is None for a lambda and for the statements of a module. ``compiled`` is the
    name of the function, or of the lambda, if it is compiled, else "".
    """

    info: FunctionInfo | None = None
    outer: Frame | None = None
    compiled: str = ""


MODULE_LEVEL = Frame()


@dataclass(frozen=True, eq=False)
class Context:
    """The place of an evaluation. Immutable: a deeper place is a new context.

    A large file makes tens of thousands of contexts; without slots one can be copied whole.
    ``given`` is, within the arguments of a call, the number of loops around that call. ``unused``
    is an expression whose value is not used. ``writes`` collects the values that a method writes to
    attributes; the method's calls are followed for the attributes in ``asked``. ``settled`` names
    the parameters that keep the literal which the call at hand gives.
    """

    analysis: Analysis
    module: ModuleMap
    budget: Budget
    sink: list[Site] | None
    frame: Frame = MODULE_LEVEL
    function: str = "<module>"
    node: FunctionNode | None = None
    owner: ClassInfo | None = None
    self_name: str = ""
    loops: tuple[LoopPlace, ...] = ()
    demoted: Cause | None = None
    row: str = ""
    given: int = 0
    unused: ast.expr | None = None
    traits: frozenset[str] = frozenset()
    depth: int = 0
    calls: tuple[object, ...] = ()
    writes: dict[str, Value] | None = None
    asked: frozenset[str] | None = None
    pending: list[Pending] | None = None
    returns: list[Value] | None = None
    compiled: str = ""
    settled: frozenset[str] = frozenset()

    def but(self, **changes: Any) -> Context:
        """Return the same place with some fields changed: a faster `dataclasses.replace`."""
        place = object.__new__(Context)
        place.__dict__.update(self.__dict__, **changes)
        return place

    def within(self, loop: LoopPlace) -> Context:
        """Return the same place, one loop deeper."""
        return self.but(loops=(*self.loops, loop))

    def demote(self, why: Cause, row: str = "") -> Context:
        """Return the same place with a cause that makes its sites cold; the first cause counts."""
        if self.demoted is not None or why in self.analysis.ignored:
            return self
        return self.but(demoted=why, row=row)

    def silent(self) -> Context:
        """Return the same place with nothing reported."""
        return self if self.sink is None else self.but(sink=None)

    def mark(self, trait: str) -> Context:
        """Return the same place with one more trait on its sites."""
        return self.but(traits=self.traits | {trait})

    def unmark(self, trait: str) -> Context:
        """Return the same place without a trait on its sites."""
        return self.but(traits=self.traits - {trait})


@dataclass(frozen=True, slots=True, eq=False)
class LoopPlace:
    """An enclosing loop: its node, its kind and the iterated value.

    ``index`` and ``measures`` are set for ``for i in range(len(t))``: the loop variable, and the
    path of the tensor whose length it runs over.
    """

    node: ast.AST
    kind: str
    over: ast.expr | None
    value: Value = UNKNOWN
    index: str = ""
    measures: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """A nested function to be interpreted once the function around it is done.

    ``info`` is set for a method of a nested class.
    """

    node: FunctionNode
    env: dict[str, Value]
    context: Context
    info: FunctionInfo | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One place where tensor work meets Python, with the evidence there; it is not judged yet.

    ``operation`` is the field's name for what happens there ("item", "if", "print"). ``operand`` is
    the value read, its reason included; None if there is none (an explicit synchronisation).
    ``place`` holds the function, and the loops and guards around the site. ``covers`` lists nodes
    whose own findings this site replaces, so that each problem is reported once. ``at_once``
    is True for a loop that only stores its items, which takes the tensor apart once.
    """

    kind: SiteKind
    operation: str
    node: ast.AST
    operand: Value | None
    place: Context
    traits: frozenset[str]
    covers: tuple[ast.AST, ...] = ()
    operand_node: ast.AST | None = None
    at_once: bool = False

    def with_traits(self, *traits: str) -> Site:
        """Return the same site with more traits."""
        return replace(self, traits=self.traits.union(traits))

    def taken_at_once(self) -> Site:
        """Return the same site as one that takes a tensor apart once."""
        return replace(self, at_once=True)


@dataclass(frozen=True, slots=True, eq=False)
class Interpreted:
    """The sites of one piece of a file, and the snippet they stand in.

    ``queued`` holds the identities of the operators, subscripts and assignments that compute on
    tensors of the device, among them those of other pieces.
    """

    snippet: Snippet
    sites: tuple[Site, ...]
    queued: Collection[int] = frozenset()
