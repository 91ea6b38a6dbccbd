"""The functions and classes that data loaders make batches with."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.project.module_index import ModuleMap

# The keywords of loaders, and of trainers that make loaders.
COLLATORS = ("collate_fn", "data_collator")


@once_per_module
def collators_in(module: ModuleMap) -> tuple[str, ...]:
    """Return the names of the functions and classes that a module gives loaders to make batches.

    A loader calls them in its workers, with what the data set made there. A name that is given
    stands for what the module assigns to it, too: ``collate = Padded(...)``.
    """
    if not any(map(module.says, COLLATORS)):
        return ()
    nodes = list(ast.walk(module.tree))
    given = {
        name
        for keyword in nodes
        if isinstance(keyword, ast.keyword) and keyword.arg in COLLATORS
        for name in _names(keyword.value)
    }
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=bound) | ast.Attribute(attr=bound)], value=value):
                if bound in given:
                    given.update(_names(value))
    return tuple(sorted(given))


def _names(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
