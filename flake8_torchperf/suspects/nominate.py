"""Which functions of a file deserve a closer look: cheap, over-approximate, ast only.

Enters a module map; leaves the functions that hold anything a rule could object to. A function
is left out only where nothing in it can read a tensor or where no tensor can come into it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.judge import Judge
from flake8_torchperf.suspects.world import World

if TYPE_CHECKING:
    from flake8_torchperf.suspects.facts import ModuleFacts
    from flake8_torchperf.suspects.modulemap import FunctionInfo, ModuleMap

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Rounds over a module before what calls give and classes write is taken as it is.
MAX_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Suspects:
    """What the interpreter should look at."""

    functions: tuple[FunctionInfo, ...]
    module_level: bool

    def __bool__(self) -> bool:
        return bool(self.functions) or self.module_level


def nominate(module: ModuleMap, called: frozenset[str] = frozenset()) -> Suspects:
    """The suspect functions of a module, in the order of the file.

    ``called`` are qualified names of functions that pages of the user's own ask for.
    """
    if not any("torch" in line for line in module.lines):
        return Suspects((), module_level=False)
    world = World(module, frozenset(name.rpartition(".")[2] for name in called))
    facts = world.facts(module)
    for info in module.defined:
        facts.judge(info)
    for _ in range(MAX_ROUNDS):
        if not world.grown:
            break
        world.grown = False
        world.results.clear()
        for info in module.defined:
            facts.judge_again(info)
    chosen = {id(info) for info in module.defined if facts.judge(info).found}
    _add_givers(module, facts, chosen)
    functions = tuple(info for info in module.defined if id(info) in chosen)
    return Suspects(functions, _module_level(module, facts))


def _add_givers(module: ModuleMap, facts: ModuleFacts, chosen: set[int]) -> None:
    """Add the callers that give tensors to suspects whose parameters say nothing of themselves."""
    while True:
        wanted = {
            id(info)
            for info in module.defined
            if id(info) in chosen and facts.filled(info) != facts.parameters(info)
        }
        more = {
            id(info)
            for info in module.defined
            if id(info) not in chosen and facts.judge(info).gives & wanted
        }
        if not more:
            return
        chosen |= more


def _module_level(module: ModuleMap, facts: ModuleFacts) -> bool:
    judge = Judge(facts, None, "")
    judge.run(_outside(module.tree.body), {})
    return judge.found


def _outside(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that run on import, those of class bodies included."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            found.extend(_outside(statement.body))
        elif not isinstance(statement, DEFINITIONS):
            found.append(statement)
    return found
