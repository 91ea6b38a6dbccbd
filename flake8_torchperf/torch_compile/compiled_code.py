"""The compiled and transformed code of one module."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.syntax.traversal import Nodes
    from flake8_torchperf.torch_compile.compile_calls import CompileSettings


@dataclass(frozen=True, slots=True)
class Mark:
    """A problem at a node: ``operation`` names the problem, ``words`` name the function."""

    operation: str
    words: str


@dataclass(frozen=True, slots=True)
class Compilation:
    """The reason that a function is compiled, and the settings.

    ``words`` end a sentence: "of helper, called by the compiled step". ``is_entry`` is True for a
    function that another module passes to the compiler.
    """

    words: str
    settings: CompileSettings
    name: str
    is_entry: bool = False


@dataclass(frozen=True, slots=True)
class Wrap:
    """A call that compiles or transforms: the operation, the settings, and the functions passed."""

    operation: str
    settings: CompileSettings
    targets: tuple[Callable_, ...]
    over_compiled: bool = False


@dataclass(slots=True, eq=False)
class CompiledCode:
    """The compiled and transformed code of a module; nodes are keyed by identity.

    ``advice`` holds the warnings that are alone in a branch. ``rows`` holds the places where a name
    stands for a whole batch, because ``vmap`` runs the function. ``entries`` holds the functions
    that are passed to the compiler directly.
    """

    functions: dict[int, Compilation] = field(default_factory=dict)
    transformed: dict[int, str] = field(default_factory=dict)
    wraps: dict[int, Wrap] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()
    marks: dict[int, Mark] = field(default_factory=dict)
    advice: set[int] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.functions or self.transformed or self.marks)

    def concerns(self, node: ast.AST) -> bool:
        """True for a compiled or transformed function, or a marked node."""
        key = id(node)
        return key in self.functions or key in self.transformed or key in self.marks

    def concerns_any(self, nodes: Nodes) -> bool:
        """True if any of several nodes is compiled, transformed or marked."""
        return any(self.concerns(node) for group in nodes.by_type().values() for node in group)
