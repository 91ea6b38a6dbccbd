"""What surrounds the functions being judged: what names stand for, classes and their bases, and
what calls are known to give.

Enters dotted names; leaves functions, classes and constants with the facts of the modules that hold
them, other files read only when a name of theirs is asked for. Must not know libcst.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpret.project import Project, files_read
from flake8_torchperf.suspects.grades import CLASSES, TYPED
from flake8_torchperf.suspects.modulemap import ClassInfo, FunctionInfo
from flake8_torchperf.suspects.words import is_public, torch_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.suspects.facts import ModuleFacts
    from flake8_torchperf.suspects.modulemap import ModuleMap


class Unread:
    """Something in a file that is not read: too many others were."""


Thing: TypeAlias = "FunctionInfo | ClassInfo | list[ast.expr] | Unread"
Found: TypeAlias = "tuple[ModuleFacts, Thing] | None"

# Imports followed from module to module for one name, and bases for one class.
MAX_HOPS = 8
MAX_BASES = 24
# Files read afresh while one file is nominated, about 10 ms each; the interpreter finds those that
# were read at hand. What stands in further ones may be anything.
MAX_READS = 12


class World:
    """Everything met while one file is nominated."""

    def __init__(self, module: ModuleMap, asked: frozenset[str] = frozenset()) -> None:
        self.start = module
        # last names of functions that pages of the user's own ask for
        self.asked = asked
        self._read_before = files_read()
        self._facts: dict[int, ModuleFacts] = {}
        self._classes: list[ClassInfo] = []
        self._bits: dict[int, int] = {}
        self._resolved: dict[tuple[str, int], Found] = {}
        self._lineages: dict[int, tuple[list[ClassInfo], bool]] = {}
        self._open: set[int] = set()
        # what calls give to the parameters of a function, by id of its info
        self.given: dict[int, dict[str, int]] = {}
        self.results: dict[object, int] = {}
        # how many judgements of called functions are on the way, one inside the other
        self.depth = 0
        # something that was already relied on is now known to be more
        self.grown = False

    @cached_property
    def _project(self) -> Project:
        return Project(self.start)

    def facts(self, module: ModuleMap) -> ModuleFacts:
        """The facts of a module."""
        found = self._facts.get(id(module))
        if found is None:
            from flake8_torchperf.suspects.facts import ModuleFacts

            found = self._facts[id(module)] = ModuleFacts(module, self)
        return found

    def typed(self, info: ClassInfo) -> int:
        """The grade of an object of a class."""
        bit = self._bits.get(id(info))
        if bit is None:
            bit = self._bits[id(info)] = 1 << (CLASSES + len(self._classes))
            self._classes.append(info)
        return TYPED | bit

    def classes(self, grade: int) -> Iterator[ClassInfo]:
        """The classes that a grade names."""
        rest = grade >> CLASSES
        position = 0
        while rest:
            if rest & 1:
                yield self._classes[position]
            rest >>= 1
            position += 1

    def give(self, info: FunctionInfo, given: dict[str, int]) -> None:
        """Remember what one more call gives to a function's parameters."""
        if info.module is not self.start:
            return
        seen = self.given.setdefault(id(info), {})
        for name, grade in given.items():
            before = seen.get(name, 0)
            if grade & ~before:
                seen[name] = before | grade
                self.grown = True

    def resolve(self, name: str, module: ModuleMap) -> Found:
        """What a dotted name stands for, seen from a module; None for what is not the project's."""
        key = (name, id(module))
        if key not in self._resolved:
            self._resolved[key] = None
            self._resolved[key] = self._resolve(name, module, MAX_HOPS)
        return self._resolved[key]

    def _resolve(self, name: str, module: ModuleMap, hops: int) -> Found:
        name = name.lstrip(".")  # a class of a module without a name
        if hops <= 0 or not name:
            return None
        prefix = f"{module.name}."
        if module.name and name.startswith(prefix):
            found = self._inside(name.removeprefix(prefix), module, hops)
            if found is not None:
                return found
        if "." not in name or name in module.classes:
            return self._inside(name, module, hops)
        if self._exhausted(name):
            return self.facts(self.start), Unread()
        other = self._project.find(name)
        if other is None or not other[1]:
            return None
        return self._inside(".".join(other[1]), other[0], hops)

    def _exhausted(self, name: str) -> bool:
        """Were as many files read as may be, and would this name ask for more?"""
        return files_read() - self._read_before >= MAX_READS and self.facts(self.start).ours(
            name.partition(".")[0]
        )

    def _inside(self, name: str, module: ModuleMap, hops: int) -> Found:
        """A name, dotted or not, at the top level of a module."""
        if name in module.classes:
            return self.facts(module), module.classes[name]
        if name in module.functions:
            return self.facts(module), module.functions[name]
        head, _, rest = name.partition(".")
        if rest and head in module.classes:
            method = module.classes[head].methods.get(rest)
            return None if method is None else (self.facts(module), method)
        if head in module.imports:
            target = f"{module.imports[head]}.{rest}" if rest else module.imports[head]
            return self._resolve(target, module, hops - 1) if target != name else None
        if name in module.constants:
            return self.facts(module), module.constants[name]
        for star in module.stars:
            if self._exhausted(star):
                return self.facts(self.start), Unread()
            other = self._project.module(star)
            if other is not None and other is not module and hops > 1:
                found = self._inside(name, other, hops - 1)
                if found is not None:
                    return found
        return None

    def lineage(self, info: ClassInfo) -> tuple[list[ClassInfo], bool]:
        """The class and its bases that can be read, and whether any other base is torch's."""
        known = self._lineages.get(id(info))
        if known is not None:
            return known
        found: list[ClassInfo] = []
        torch = False
        waiting = [info]
        while waiting and len(found) < MAX_BASES:
            current = waiting.pop(0)
            if any(current is f for f in found):
                continue
            found.append(current)
            bases = []
            for base in current.bases:
                thing = None if _described(base) else self.resolve(base, current.module)
                if thing is not None and isinstance(thing[1], ClassInfo):
                    bases.append(thing[1])
                elif thing is not None and isinstance(thing[1], Unread):
                    self._open.add(id(info))
                torch = torch or _torch_like(base)
            waiting = bases + waiting
        self._lineages[id(info)] = (found, torch)
        return found, torch

    def unread_base(self, info: ClassInfo) -> bool:
        """Has the class a base in a file that is not read?"""
        self.lineage(info)
        return id(info) in self._open


def _described(base: str) -> bool:
    """A class that the torch table describes: its source is not asked."""
    return (
        base.startswith("torch.")
        and is_public(base)
        and base.rpartition(".")[2] in torch_words().classes
    )


def _torch_like(base: str) -> bool:
    """A base of torch's, or one that by its name is a module (interpret/classes.py)."""
    return base.startswith("torch.") or base.rpartition(".")[2] in (
        "Module", "LightningModule", "PreTrainedModel",
    )  # fmt: skip
