"""Which modules hold no part of a step, by what their names and imports say.

Enters a module; leaves Heat where its place decides for all its functions. Must not know functions
or values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.sites.model import Heat, Level

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.suspects.modulemap import ModuleMap

# Parts of a module's dotted name that say: run by a test runner, once to export a model, or to
# tell a person what was found. Leading underscores count for nothing.
COLD_PLACES = frozenset((
    "init", "initialization", "test", "tests", "testing", "test_utils", "conftest", "onnx",
    "export", "exporter", "benchmark", "benchmarks", "benchmarking", "gradcheck", "tensorboard",
    "testing_utils", "deprecated", "trace", "tracing", "tracer", "device_mesh", "tunable",
    "autotune", "autotuner", "autotuning", "io", "database", "loader", "loaders", "loading",
    "dataloader", "dataloaders", "data_loader", "data_loaders", "evaluation", "evaluator",
    "evaluators", "naive", "ref", "reference", "writer", "writers", "gui", "mock", "mocks",
    "tester", "testers", "lr_finder",
))  # fmt: skip
# How the parts of a name begin that say of the functions called there: not what they are for.
BESIDE = ("test", "conftest", "benchmark", "deprecated", "mock", "naive", "reference", "example")
# Words of such a name, between underscores, that say the same, or that data is prepared for a model
# there, or its results for people.
COLD_WORDS = frozenset((
    "report", "reports", "debug", "debugging", "visualizer", "visualization", "visualisation",
    "visualize", "visualise", "viz", "vis",
    "export", "convert", "converter", "converters", "conversion",
    "processing", "preprocessing", "preprocess",
    "tensorboard", "wandb", "plot", "plots", "plotting", "plotly", "prune", "pruner", "pruning",
    "flop", "flops", "profile", "profiler", "profiling",
))  # fmt: skip
# Packages of modules that write to disk and read from it, or choose what is read.
SAVING = frozenset((
    "checkpoint", "checkpoints", "checkpointing", "snapshot", "snapshots", "dist_checkpointing",
    "dataset", "datasets", "data", "sampler", "samplers", "data_pipeline", "data_sampling",
))  # fmt: skip
# Compilers and tracers of torch's own: a file that imports from them handles graphs and fake
# tensors.
COMPILERS = (
    "torch._inductor", "torch._dynamo", "torch._functorch", "torch._subclasses", "torch._export",
    "torch._higher_order_ops", "torch._decomp", "torch._prims", "torch._refs", "torch.onnx",
    "torch.fx.experimental", "torch.testing._internal", "torch._numpy",
)  # fmt: skip


@lru_cache(maxsize=8)  # of the module linted, for each of its functions, and of those that call it
def place_heat(module: ModuleMap, *, compiled: bool = False) -> Heat | None:
    """Tests and export code are cold, whatever their functions are called.

    What a place is for (reports, conversions, data) says nothing of a function that is
    ``compiled``: who hands it to a compiler wants it fast, and what it calls.
    """
    named = (*module.imports.values(), module.name)
    if any(target.startswith(COMPILERS) for target in named):
        return Heat(Level.COLD, "in a module that handles graphs")
    parts, packaged = module.name.split("."), True
    if module.path is not None:
        above = _between_packages(module.path, len(parts) if module.package else 1)
        if above:
            parts = [*above, *parts]
        elif not module.package:
            parts, packaged = [module.path.parent.name, module.path.stem], False
    for position, part in enumerate(parts, start=1):
        last = position == len(parts)
        plain = part.lstrip("_")
        named_test = last and (part.startswith("test_") or part.endswith("_test"))
        if (
            plain in COLD_PLACES
            or named_test
            # A folder that is no package is called anything.
            or (not compiled and (packaged or last) and _purpose(plain))
            or (not compiled and plain in SAVING and not last)
        ):
            return Heat(Level.COLD, f"in {part}, which is no part of a step")
    return None


def is_beside(module: ModuleMap) -> bool:
    """Is it a test, a comparison or what is kept for old programs, which tell nothing of a step?"""
    return any(part.lstrip("_").startswith(BESIDE) for part in module.name.split("."))


def _between_packages(path: Path, depth: int) -> list[str]:
    """The folders without ``__init__.py`` above a module, below a package that has one.

    Such folders belong to that package as well (PEP 420).
    """
    folder = path.parents[min(depth, len(path.parents)) - 1]
    if path.stem == "__init__":
        folder = folder.parent
    names: list[str] = []
    for _ in range(MAX_BETWEEN):
        names.insert(0, folder.name)
        folder = folder.parent
        if (folder / "__init__.py").is_file():
            return [*_packages_above(folder), *names]
    return []


def _packages_above(folder: Path) -> list[str]:
    """A package and those it lies in, outermost first."""
    names: list[str] = []
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        names.insert(0, folder.name)
        folder = folder.parent
    return names


MAX_BETWEEN = 3


def _purpose(name: str) -> bool:
    return not COLD_WORDS.isdisjoint(name.split("_"))
