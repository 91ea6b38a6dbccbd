"""The evidence about a site: what the interpreter recorded, and how often the function runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Set as AbstractSet

    from flake8_torchperf.interpreter.engine.place import Context, Site
    from flake8_torchperf.judgement.heat import Heat
    from flake8_torchperf.values.site import SiteKind
    from flake8_torchperf.values.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A site and the evidence about it.

    ``base`` is the heat of the site's function. ``step_loops`` holds the identities of the loops
    that are known to go over steps. ``traits`` holds the site's own traits and those that the text
    of its function adds. ``is_evaluated`` is True if the loop over steps of its function only
    evaluates a model, in a program that trains.
    """

    site: Site
    base: Heat
    step_loops: AbstractSet[int]
    traits: frozenset[str]
    is_evaluated: bool = False

    @property
    def place(self) -> Context:
        """The place at which the site was recorded."""
        return self.site.place

    @property
    def kind(self) -> SiteKind:
        """The kind of the site."""
        return self.site.kind

    @property
    def operation(self) -> str:
        """The field's name for what happens at the site."""
        return self.site.operation

    @property
    def node(self) -> ast.AST:
        """The expression or statement of the site."""
        return self.site.node

    @property
    def operand(self) -> Value | None:
        """The value read."""
        return self.site.operand

    @property
    def operand_node(self) -> ast.AST | None:
        """The expression of the value read."""
        return self.site.operand_node

    @property
    def read(self) -> ast.AST:
        """The expression of the value read, or else that of the site."""
        return self.site.operand_node if self.site.operand_node is not None else self.site.node
