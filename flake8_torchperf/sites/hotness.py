"""How often a function runs, by its name, its class and what it is given.

Enters a function's name and facts; leaves its heat. Must not know rules.
"""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.sites.model import Heat, Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.sites.callers import Calls, CallSite
    from flake8_torchperf.suspects.modulemap import FunctionInfo, ModuleMap

# Functions that run every step, by PyTorch's and Lightning's conventions.
HOT_NAMES = ("forward", "*_step", "step", "*_loss", "loss", "loss_fn", "compute_loss*", "__call__",
             "train_one_epoch", "train_epoch", "backward", "*_forward", "forward_*")  # fmt: skip
# Functions that run once, or when a person looks.
COLD_NAMES = (
    "__init__", "__new__", "__post_init__", "__repr__", "__str__", "__format__", "extra_repr",
    "__setstate__", "__getstate__", "__reduce__", "__reduce_ex__", "__deepcopy__", "__copy__",
    "__del__", "__init_subclass__", "__set_name__", "setup", "setup_*", "_setup*", "teardown*",
    "configure_*", "set_*", "build", "build_*", "_build_*", "create_*", "_create_*", "make_*",
    "init_*", "_init_*", "reset_parameters", "_reset_parameters", "from_*", "*_save", "*_save_*",
    "*to_numpy*", "*to_pil*",
    "save", "save_*", "_save_*", "load", "load_*", "_load_*", "*state_dict*", "*checkpoint*",
    "convert_*", "print_*", "_print_*", "log_*", "_log_*", "plot*", "_plot*",
    "visuali*", "draw_*", "show_*", "display*", "test_*", "test", "summary", "*_summary",
    "describe",
    "_test_*", "_run_test*", "assert_*", "compare_*", "*offload*", "export*",
    "_reduce_*", "*_repr*",
    "*_str", "_str*", "*_str_*",
    "format_*", "_format_*", "tolist", "item", "numpy", "cpu", "__bool__", "__int__",
    "__float__", "__index__", "__array__", "__contains__", "__eq__", "__hash__",
    "right_inverse", "convert", "fuse_*", "_fuse_*", "prune_*", "parse_args", "_repr_html_",
    "__dir__", "_validate_args",
)  # fmt: skip


# Parts of a module's dotted name that say: run by a test runner, or once to export a model.
COLD_PLACES = frozenset((
    "init", "initialization", "test", "tests", "testing", "test_utils", "conftest", "onnx",
    "export", "exporter", "benchmark", "benchmarks",
))  # fmt: skip
# Decorators of functions that a kernel compiler takes; Python never runs them on tensors.
KERNEL_DECORATORS = ("jit", "kernel", "autotune", "heuristics")


# Compilers and tracers of torch's own: a file that imports from them handles graphs and fake
# tensors.
COMPILERS = (
    "torch._inductor", "torch._dynamo", "torch._functorch", "torch._subclasses", "torch._export",
    "torch._higher_order_ops", "torch._decomp", "torch._prims", "torch._refs", "torch.onnx",
    "torch.fx.experimental", "torch.testing._internal", "torch._numpy",
)  # fmt: skip
# What a function names that measures time or records a graph: waiting is its purpose.
MEASURING = {
    "elapsed_time",
    "perf_counter",
    "perf_counter_ns",
    "CUDAGraph",
    "capture_begin",
    "time",
}


def waits_each_step(node: ast.AST | None, base: Heat) -> bool:
    """May an explicit synchronisation in this function be a mistake?

    It is not one in a benchmark or around the recording of a graph, nor is there a step to hold up
    in a function of which it is only known that it is given tensors.
    """
    if node is not None and any(
        (isinstance(inner, ast.Attribute) and inner.attr in MEASURING)
        or (isinstance(inner, ast.Name) and inner.id in MEASURING)
        for inner in ast.walk(node)
    ):
        return False
    return base.level is not Level.HOT


@lru_cache(maxsize=2)  # of the module linted: asked for each of its functions
def place_heat(module: ModuleMap) -> Heat | None:
    """Tests and export code are cold, whatever their functions are called."""
    if any(target.startswith(COMPILERS) for target in module.imports.values()):
        return Heat(Level.COLD, "in a module that handles graphs")
    parts = module.name.split(".")
    if module.path is not None and not module.package:
        parts = [module.path.parent.name, module.path.stem]
    for part in parts:
        named_test = part == parts[-1] and (part.startswith("test_") or part.endswith("_test"))
        if part in COLD_PLACES or named_test:
            return Heat(Level.COLD, f"in {part}, which is no part of a step")
    return None


def is_kernel(info: FunctionInfo) -> bool:
    """Is it written for a kernel compiler (``@triton.jit``, ``@cute.kernel``)?"""
    return any(
        d.rpartition(".")[2] in KERNEL_DECORATORS and not d.startswith("torch.")
        for d in info.decorators
        if "." in d
    )


def _runs_seldom(info: FunctionInfo) -> bool:
    """Registered with a tracer, part of a checkpoint's class, or made to hand arrays out."""
    if any(d.rpartition(".")[2].startswith(("register_", "py_impl")) for d in info.decorators):
        return True
    if info.owner is not None and "checkpoint" in info.owner.name.lower():
        return True
    match info.node.returns:
        case ast.Attribute(attr="ndarray"):
            return True
    return _makes_functions(info)


def _makes_functions(info: FunctionInfo) -> bool:
    """A factory or decorator: its own body runs once for the function that it returns."""
    made = {
        s.name for s in info.node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    return bool(made) and any(
        isinstance(s, ast.Return) and isinstance(s.value, ast.Name) and s.value.id in made
        for s in info.node.body
    )


def _is_entry_point(info: FunctionInfo) -> bool:
    """A pipeline's ``__call__``, or one that holds the loop over steps, runs once for all steps."""
    if info.name != "__call__" or info.owner is None:
        return False
    lineage = (info.owner.name, *info.owner.bases)
    return any("Pipeline" in name.rpartition(".")[2] for name in lineage) or bool(
        info.nodes.of_any(ast.For, ast.While)
    )


@lru_cache(maxsize=8)
def _any_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))


@lru_cache(maxsize=8192)
def named_heat(name: str, hot: tuple[str, ...], cold: tuple[str, ...]) -> Heat | None:
    """The heat that a function's name alone decides; what the user names goes first."""
    for glob in hot:
        if fnmatchcase(name, glob):
            return Heat(Level.STEP, f"in {name}, which your settings name")
    for glob in cold:
        if fnmatchcase(name, glob):
            return Heat(Level.COLD, f"in {name}, which your settings name")
    if _any_of(COLD_NAMES).match(name):
        return Heat(Level.COLD, f"in {name}, which runs seldom")
    if _any_of(HOT_NAMES).match(name):
        return Heat(Level.STEP, f"in {name}, which runs every step")
    return None


def function_heat(
    info: FunctionInfo, given_tensors: bool, hot: tuple[str, ...], cold: tuple[str, ...]
) -> Heat:
    """The heat of a function: by name, by a compiling decorator, or by what it is given."""
    if _is_entry_point(info):
        return Heat(Level.COLD, f"in {info.name}, outside its loop over steps")
    named = named_heat(info.name, hot, cold)
    if named is not None:
        return named
    if _runs_seldom(info):
        return Heat(Level.COLD, f"in {info.name}, which runs seldom")
    if any(d in ("torch.compile", "torch.jit.script") for d in info.decorators):
        return Heat(Level.STEP, f"in {info.name}, which is compiled")
    if given_tensors:
        return Heat(Level.HOT, f"in {info.name}, which computes on the tensors it is given")
    return Heat(Level.COLD, f"in {info.name}")


def decided(info: FunctionInfo, hot: tuple[str, ...], cold: tuple[str, ...]) -> bool:
    """Does a function's name, decorator or kind say how often it runs, whoever calls it?"""
    return (
        _is_entry_point(info)
        or named_heat(info.name, hot, cold) is not None
        or _runs_seldom(info)
        or any(d in ("torch.compile", "torch.jit.script") for d in info.decorators)
    )


def called_heat(
    info: FunctionInfo,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
) -> Heat:
    """The heat of a function by itself and by the calls in its module that lead to it.

    ``own`` is a function's heat by itself, ``settled`` says that its callers change nothing.
    """
    heat = own(info)
    if settled(info):
        return heat
    if heat.level is Level.HOT and _only_set_up(info, calls, own, settled, {info.key}):
        return Heat(Level.COLD, f"in {info.name}, {SET_UP}")
    if heat.level < Level.STEP:
        return _made_hot(info, calls, own, settled, {info.key}) or heat
    return heat


def _made_hot(
    info: FunctionInfo,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
) -> Heat | None:
    """The first call from a loop or from hot code; None where none is seen."""
    for site in calls.of(info):
        caller = site.caller
        if site.seldom or (caller is not None and caller.key in seen):
            continue
        if caller is None:
            if site.loop:
                return Heat(Level.STEP, f"in {info.name}, called in a loop at line {site.line}")
            continue
        stepping = site.loop and _holds_program(caller)
        if not stepping and settled(caller) and own(caller).level is Level.COLD:
            continue
        if (
            site.loop
            or _runs_every_step(own(caller))
            or _made_hot(caller, calls, own, settled, seen | {caller.key})
        ):
            called = f"called from `{caller.name}` at line {site.line}"
            return Heat(Level.STEP, f"in {info.name}, {called}")
    return None


def _only_set_up(
    info: FunctionInfo,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
) -> bool:
    """Do all its calls stand where things are set up, saved or shown, outside any loop?

    Only of a private method, or a private function of a script, are all calls in its module.
    """
    sites = calls.of(info)
    if not sites or not info.name.startswith("_") or info.name in calls.loose:
        return False
    if info.owner is None and info.module.package:
        return False
    outside = [site for site in sites if site.caller is None or site.caller.key not in seen]
    return bool(outside) and all(_sets_up(site, calls, own, settled, seen) for site in outside)


def _sets_up(
    site: CallSite,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
) -> bool:
    """Does a call stand in set-up code, or before the loop of a program's main function?"""
    caller = site.caller
    if caller is None or _holds_program(caller):
        return not site.loop
    if settled(caller):
        return own(caller).level is Level.COLD
    if site.loop:
        return False
    return _only_set_up(caller, calls, own, settled, seen | {caller.key})


def _holds_program(info: FunctionInfo) -> bool:
    """Does a function hold a whole program, so that what it does outside loops it does once?"""
    return info.name in PREAMBLES or _is_entry_point(info)


PREAMBLES = ("main", "_main", "cli")


def _runs_every_step(heat: Heat) -> bool:
    """A function that is only known to be given tensors says nothing of those that it calls."""
    return heat.level is Level.STEP


SET_UP = "which only set-up code calls"


MODULE_HEAT = Heat(Level.COLD, "at module level")
