"""Roles of whole modules, by their names and imports: tests, and modules beside the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.project.file_index import is_test_name
from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    from flake8_torchperf.knowledge.conventions import Convention, Conventions
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# The conventions for modules that run steps to check or measure them.
CHECKING = ("test-modules", "test-packages", "benchmark-modules", "benchmark-packages")
# Decorators of functions that a kernel compiler takes; Python never runs them on tensors.
KERNELS = ("jit", "kernel", "autotune", "heuristics")


@once_per_module
def is_test_file(module: ModuleMap) -> bool:
    """True if pytest collects the file by its name, or the file imports a test framework."""
    if imports_tests(module):
        return True
    return is_test_name(module.name.rpartition(".")[2] if module.path is None else module.path.stem)


@once_per_module
def imports_tests(module: ModuleMap) -> bool:
    """True if a module imports pytest, unittest or torch's own test tools."""
    return any(
        target.partition(".")[0] in ("pytest", "unittest")
        or target.startswith("torch.testing._internal")
        for target in module.imported_from(("pytest", "unittest", "torch")).values()
    )


def is_beside_steps(module: ModuleMap, conventions: Conventions) -> bool:
    """True if a whole module is no part of a step: a test, or one that a convention names."""
    return is_test_file(module) or row_of_module(module, conventions) is not None


def compares_options(module: ModuleMap, conventions: Conventions) -> bool:
    """True if a module chooses options for comparison or to check results: a test, a benchmark.

    Modules beside the steps that load data or set up choose them for the steps.
    """
    row = row_of_module(module, conventions)
    return is_test_file(module) or (row is not None and row.id in CHECKING)


def row_of_module(module: ModuleMap, conventions: Conventions) -> Convention | None:
    """Return the convention for a whole module, by its name or by those of its packages."""
    own, packages = module_names(module)
    return conventions.row("module", own) or conventions.first("package", packages)


def module_names(module: ModuleMap) -> tuple[str, tuple[str, ...]]:
    """Return the name of a module, and those of the packages around it, the innermost first.

    A file outside a package has only its own name: a plain folder may be called anything.
    """
    if module.path is not None and not module.package:
        return module.path.stem, ()
    own, *packages = reversed(module.name.split("."))
    return own, tuple(packages)


def is_kernel(info: FunctionInfo) -> bool:
    """True if a function is written for a kernel compiler (``@triton.jit``, ``@cute.kernel``)."""
    return any(
        d.rpartition(".")[2] in KERNELS and not d.startswith("torch.")
        for d in info.decorators
        if "." in d
    )
