"""In the child: stands in for modules that are not installed, so that a file can be imported.

Whatever is called of them raises. Code that uses them therefore comes to no result, but the rest of
the file does.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from flake8_torchperf.runtime.confirm.child.load import ConfirmError, one_line

# Modules that one import may lack.
MOST_ABSENT = 12

Made = TypeVar("Made")


class AbsentError(ConfirmError):
    """Something of a module was called that is not installed."""


class _Name(type):
    """The class of names imported from such a module: they can be used as base classes."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        raise AbsentError(f"{_module_of(cls)} is not installed")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(f"{cls.__module__}.{cls.__name__}", name)

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls


def _module_of(cls: type) -> str:
    """Return the name of the module that a class was imported from, or that its base was."""
    absent = [one for one in cls.__mro__ if "_torchperf_absent" in vars(one)]
    return absent[-1].__module__ if absent else cls.__module__


def _named(module: str, name: str) -> type:
    return _Name(name, (), {"__module__": module, "_torchperf_absent": True})


class _Module(types.ModuleType):
    """A module in which every name is a class that raises when it is called."""

    __path__: list[str]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _named(self.__name__, name)
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of ``names`` and everything below them."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a module that is absent and needed."""
        if any(name == one or name.startswith(f"{one}.") for one in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return the stand-in."""
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is run."""


def with_stand_ins(imported: Callable[[], Made], own: str) -> tuple[Made, str]:
    """Return what an import returns, with stand-ins for the modules for whose absence it fails.

    Only those: an import that the code itself guards still fails. ``own`` is the module that is
    imported. The second value says what was absent, in one line. Raises what the import raises.
    """
    finder = _Finder()
    problem = ""
    sys.meta_path.append(finder)
    while True:
        try:
            return imported(), problem
        except ModuleNotFoundError as error:
            name = error.name or own
            known = name in finder.names or len(finder.names) >= MOST_ABSENT
            if known or own == name or own.startswith(f"{name}."):
                raise
            problem = problem or one_line(error)
            finder.names.append(name)
