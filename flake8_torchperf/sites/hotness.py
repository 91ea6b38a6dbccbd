"""How often a function runs, by its name, its class and what it is given.

Enters a function's name and facts; leaves its heat. Must not know rules.
"""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.sites.aside import is_aside, makes_functions
from flake8_torchperf.sites.model import Heat, Level
from flake8_torchperf.sites.steps import (
    OF_PIPELINE,
    OUTSIDE,
    TRAINING_STEP,
    is_entry_point,
    of_pipeline,
    runs_what_it_is_given,
    shows_check,
    trains,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.suspects.modulemap import ClassInfo, FunctionInfo, ModuleMap

# Functions that run every step, by PyTorch's and Lightning's conventions.
HOT_NAMES = ("forward", "*_step", "step", "*_loss", "loss", "loss_fn", "compute_loss*", "__call__",
             "train_one_epoch", "train_epoch", "backward", "*_forward", "forward_*",
             "clip_grad*", "*grad_norm*")  # fmt: skip
# Functions that run once, or when a person looks.
COLD_NAMES = (
    "__init__", "__new__", "__post_init__", "post_init", "__repr__", "__str__", "__format__",
    "extra_repr",
    "__setstate__", "__getstate__", "__reduce__", "__reduce_ex__", "__deepcopy__", "__copy__",
    "__del__", "__init_subclass__", "__set_name__", "setup", "setup_*", "_setup*", "teardown*",
    "configure_*", "set_*", "build", "build_*", "_build_*", "create_*", "_create_*", "make_*",
    "init_*", "_init_*", "reset_parameters", "_reset_parameters", "from_*", "*_save", "*_save_*",
    "*to_numpy*", "*to_pil*",
    "save", "save_*", "_save_*", "load", "load_*", "_load_*", "*state_dict*", "*checkpoint*",
    "*snapshot*",
    "convert_*", "print_*", "_print_*", "log_*", "_log_*", "plot*", "_plot*",
    "visuali*", "draw_*", "show_*", "display*", "test_*", "test", "summary", "*_summary",
    "describe", "describe_*", "debug_*", "*_debug", "dump_*", "warn_*", "_warn_*",
    "_test_*", "_run_test*", "assert_*", "assert[A-Z]*", "compare_*", "*offload*", "export*",
    "_reduce_*", "*_repr*",
    "*_str", "_str*", "*_str_*", "equal", "equals", "*_test",
    "format_*", "_format_*", "tolist", "item", "numpy", "cpu", "__bool__", "__int__",
    "__float__", "__index__", "__array__", "__contains__", "__eq__", "__hash__",
    "right_inverse", "convert", "fuse_*", "_fuse_*", "prune_*", "parse_args", "_repr_html_",
    "__dir__", "_validate_args",
    "*gather_object*", "*broadcast_object*", "*scatter_object*", "*object_list*", "*optim_state*",
    "*rng_state*", "*random_state*", "*_rng_*", "generate_*report*", "*_report", "report_*",
    "gradcheck*", "gradgradcheck*", "unload*", "*_message", "*_msg", "find_usable_*", "*collate*",
    "on_log*", "*epoch_end", "*epoch_start", "*epoch_begin", "on_fit_*", "on_train_start",
    "on_train_begin", "on_train_end", "on_validation_start", "on_validation_end", "on_test_start",
    "on_test_end", "on_predict_start", "on_predict_end", "on_sanity_check_*", "on_exception",
    "get_*_stats", "transfer_weights", "copy_weights", "restore*",
    "freeze*", "unfreeze*", "_freeze*", "_unfreeze*",
    "sync_param*", "broadcast_param*", "kmeans", "k_means",
    # What observers have seen becomes a scale and a zero point when a model is converted.
    "calculate_qparams",
    "merge", "unmerge", "merge_and_*", "*init_weight*", "initiali[sz]e",
    "initiali[sz]e_*", "_initiali[sz]e_*", "fix_init*", "calibrate", "calibrate_*",
    "_calibrate*", "*calibration_step", "*collator*", "verify_*", "_verify_*", "write_*",
    "_write_*", "serialize*", "_serialize*", "*_serialize", "deserialize*", "pickle*",
    "naive_*", "*_naive", "*_ref", "ref_*", "*_reference", "reference_*",
    "*_setup", "*class_weights", "get_schedule", "get_*_schedule", "*artifact*", "wait_for_*",
)  # fmt: skip
# Cold names that say what a function makes, not when: a step that calls it makes it in each step.
MAKING = re.compile(r"_?(?:build|create|make)_|calculate_qparams$")
# Names of logarithms, which write no log: `log_prob`, `log_abs_det_jacobian`.
_LOGARITHM = re.compile(
    r"log_(?:prob|abs_det|det|partition|marginal|likelihood|survival|intensity|density|softmax|sum|"
    r"softplus|sigmoid|ndtr|cdf|pdf|pmf|prior|posterior|normali[sz]|kernel|mel|cosh|p$|z$|phi$)"
)
# Names that say the result is a thing of the host's: `to_list`, `tensor2im`, `offload_to_cpu`.
_TO_HOST = re.compile(
    r"(?:^|_)(?:to|as|2)_?(?:py)?(?:list|lists|tuple|tuples|numpy|np|ndarray|array|pil|cpu|host|json|bytes|"
    r"str|string|strings|python|object|objects|pandas|df|csv|uint8|dict)(?:_|$)"
    r"|^asdict$|^to_(?:\w+_)?dataset(?:_|$)"
    r"|^to_(?:networkx|nx|scipy|sklearn|rdmol|smiles|trimesh|open3d|igraph|matplotlib)(?:_|$)"
    r"|^tensors?(?:_to_|2)(?!.*(?:device|cuda|gpu|dtype|tensor))|(?:^|_)(?:cpu|numpy|np|pil|coco|onnx)(?:_|$)"
)


# Decorators of functions that a kernel compiler takes; Python never runs them on tensors.
KERNEL_DECORATORS = ("jit", "kernel", "autotune", "heuristics")


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


def is_kernel(info: FunctionInfo) -> bool:
    """Is it written for a kernel compiler (``@triton.jit``, ``@cute.kernel``)?"""
    return any(
        d.rpartition(".")[2] in KERNEL_DECORATORS and not d.startswith("torch.")
        for d in info.decorators
        if "." in d
    )


def _runs_seldom(info: FunctionInfo) -> bool:
    """Registered with a tracer, a setter, a maker of functions, or cold with all its loops."""
    names = [decorator.rpartition(".")[2] for decorator in info.decorators]
    if any(name.startswith("py_impl") or name == "setter" for name in names):
        return True
    if any(REGISTERED.match(decorator) for decorator in info.decorators):
        return True
    return stays_cold(info) or makes_functions(info)


# Decorators of torch's own that hand a function to its tracers and compilers.
REGISTERED = re.compile(r"torch\..*\bregister_\w+$")
RESULT_KEPT = "of which the result is kept"
# Words of a decorator that keeps what a function returned: `lru_cache`, `cached_property`.
CACHING = frozenset(("cache", "cached", "memoize", "memoized"))


def _keeps_result(info: FunctionInfo) -> bool:
    """Is what it made kept by a decorator, so that it runs once for what it is given?"""
    return any(
        not CACHING.isdisjoint(decorator.rpartition(".")[2].split("_"))
        for decorator in info.decorators
    )


def stays_cold(info: FunctionInfo) -> bool:
    """Do its loops make nothing hot either: does it run once, or handle what lies on the host?"""
    if _keeps_result(info) or is_aside(info):
        return True
    if info.owner is None:
        return False
    if info.name == "store" and "restore" in info.owner.methods:
        return True
    return _works_on_host(info.owner) or _transforms_data(info.owner, info.module)


def _works_on_host(owner: ClassInfo) -> bool:
    """A checkpoint's class, a dataset or a collator: what it handles lies on the host.

    A loader's workers run datasets and collators, before anything is moved. What processes images
    prepares them, or makes what people look at.
    """
    if any(word in owner.name for word in SAVED) or _processes(owner):
        return True
    lineage = (owner.name, *(base.rpartition(".")[2] for base in owner.bases))
    return any(
        name.endswith(HOST_CLASSES) or any(part in name for part in PREPARING) for name in lineage
    )


def _transforms_data(owner: ClassInfo, module: ModuleMap) -> bool:
    """A transform of `<package>.transforms`: datasets call it, on what they have read.

    Those further down belong to what is above them: `<package>.distributions.transforms`.
    """
    place = module.name.split(".")[1:2]
    bases = (base.rpartition(".")[2] for base in owner.bases)
    return place in (["transform"], ["transforms"]) and any(b.endswith("Transform") for b in bases)


def _processes(owner: ClassInfo) -> bool:
    """A processor that is called with text, images or sound makes a model's inputs of them."""
    called = owner.methods.get("__call__")
    if called is None or not owner.name.endswith("Processor"):
        return False
    given = (*called.node.args.args, *called.node.args.kwonlyargs)
    return any(parameter.arg in RAW for parameter in given)


SAVED = ("checkpoint", "Checkpoint", "StateDict")
# What a processor is called with.
RAW = frozenset(("text", "texts", "images", "audio", "audios", "videos", "raw_speech"))
PREPARING = ("ImageProcessor", "VideoProcessor", "Collator", "Collater")
HOST_CLASSES = (
    "Dataset", "Tokenizer", "BaseTransform", "ImageTransform", "SequenceFeatureExtractor",
    "Checker", "Initializer", "Init",
    "Monitor", "Logger", "Profiler", "Writer", "Evaluator", "Tester",
    "BatchSampler", "DistributedSampler",
    "RandomSampler", "SequentialSampler", "NeighborSampler",
)  # fmt: skip


@lru_cache(maxsize=8)
def _any_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))


def named_in(info: FunctionInfo, globs: tuple[str, ...]) -> bool:
    """Is a function among those that the settings name: ``execute_model``, ``Engine.decode_*``?

    A glob with a dot is of the qualified name: that of the class, a dot, that of the method.
    """
    return any(fnmatchcase(info.qualname if "." in glob else info.name, glob) for glob in globs)


def named_heat(info: FunctionInfo, hot: tuple[str, ...], cold: tuple[str, ...]) -> Heat | None:
    """The heat that a function's name alone decides; what the user names goes first."""
    if named_in(info, hot):
        return Heat(Level.STEP, f"in {info.name}, which your settings name", around=Level.STEP)
    if named_in(info, cold):
        return Heat(Level.COLD, f"in {info.name}, which your settings name")
    return _heat_by_convention(info.name)


@lru_cache(maxsize=8192)
def _heat_by_convention(name: str) -> Heat | None:
    plain = name if name.startswith("__") else name.lstrip("_")
    colds = _any_of(COLD_NAMES)
    cold_name = (colds.match(name) or colds.match(plain)) and not _LOGARITHM.match(plain)
    if cold_name or _TO_HOST.search(plain):
        return Heat(Level.COLD, f"in {name}, which runs seldom")
    if _any_of(HOT_NAMES).match(name):
        return Heat(Level.STEP, f"in {name}, which runs every step", around=Level.STEP)
    return None


def function_heat(
    info: FunctionInfo,
    given_tensors: Callable[[], bool],
    hot: tuple[str, ...],
    cold: tuple[str, ...],
) -> Heat:
    """The heat of a function: by name, by a compiling decorator, or by what it is given.

    Whether it is given tensors is asked last: it takes a look at all that its parameters say.
    """
    if is_entry_point(info) and not named_in(info, hot):
        outside = OF_PIPELINE if of_pipeline(info) else OUTSIDE
        return Heat(Level.COLD, f"in {info.name}, {outside}")
    if any(d.rpartition(".")[2].startswith(SEEKING) for d in info.decorators):
        return Heat(Level.COLD, f"in {info.name}, which is tried until it fits")
    named = named_heat(info, hot, cold)
    if named is not None and not (_is_called(info) and stays_cold(info)):
        return named
    if _keeps_result(info):
        return Heat(Level.COLD, f"in {info.name}, {RESULT_KEPT}")
    if _runs_seldom(info):
        return Heat(Level.COLD, f"in {info.name}, which runs seldom")
    if trains(info):
        return Heat(Level.HOT, f"in {info.name}, {TRAINING_STEP}")
    if any(d in ("torch.compile", "torch.jit.script") for d in info.decorators):
        return Heat(Level.STEP, f"in {info.name}, which is compiled", around=Level.STEP)
    if not FITTING.match(info.name) and given_tensors():
        if runs_what_it_is_given(info):
            return Heat(Level.COLD, f"in {info.name}, {OUTSIDE}", around=Level.HOT)
        if not OFFLINE.isdisjoint(re.split(r"[._]", info.module.name)):
            return Heat(Level.COLD, f"in {info.name}, of a module that works on a model's weights")
        if _is_utility(info):
            # Set-up calls such helpers as well as steps do.
            return Heat(Level.COLD, f"in {info.name}, a helper of anybody's", around=Level.HOT)
        return Heat(Level.HOT, f"in {info.name}, which computes on the tensors it is given")
    loops = not shows_check(info) and not ends_evaluation(info)
    return Heat(Level.COLD, f"in {info.name}", loops=loops)


def _is_called(info: FunctionInfo) -> bool:
    """What runs where an object is called, be it a module, a collator or a data transform."""
    if info.name == "forward" and info.owner is not None:
        own = any(base.rpartition(".")[2] == "BaseTransform" for base in info.owner.bases)
        return own or _transforms_data(info.owner, info.module)
    return info.name == "__call__"


def _is_utility(info: FunctionInfo) -> bool:
    """A public function of `utils.py`, by the module's own name: anybody may call it."""
    own = info.module.name.rpartition(".")[2].lstrip("_")
    public = info.owner is None and not info.name.startswith("_")
    return public and UTILITIES.fullmatch(own) is not None


# Decorators that try a function with smaller and smaller batches until memory suffices.
SEEKING = ("find_executable_", "find_batch_size", "find_optimal_batch", "auto_find_")
# Words of a module's name that say it: a model is quantised, or its weights packed, once. What runs
# in each step there has a name that says so, or is seen to be called.
OFFLINE = frozenset((
    "quantization", "compression", "compressor", "compressors", "gptq", "awq", "autoround",
))  # fmt: skip
# Names of modules that hold what any part of a program may call.
UTILITIES = re.compile(r"(?:\w+_)?(?:utils?|utilities|misc|helpers?|tools?)")


# Methods that are called once with all the data, as scikit-learn's are; their loops are over steps.
# `fit_one_batch` and `fit_step` are not.
FITTING = re.compile(r"fit(?!\w*(?:batch|step))(?:_\w+)?$")


def ends_evaluation(info: FunctionInfo) -> bool:
    """``compute(self)`` of a metric, which makes its result of what all batches left behind."""
    if info.name != "compute" or info.owner is None or len(info.node.args.args) != 1:
        return False
    return any(name.endswith(("Metric", "Metrics")) for name in _lineage(info.owner, info.module))


def _lineage(owner: ClassInfo, module: ModuleMap) -> set[str]:
    """The last names of a class and its bases, and of the bases of those in the same module."""
    found: set[str] = set()
    waiting = [owner.name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            known = module.classes.get(name)
            waiting += [] if known is None else [b.rpartition(".")[2] for b in known.bases]
    return found


def decided(info: FunctionInfo, hot: tuple[str, ...], cold: tuple[str, ...]) -> bool:
    """Does a function's name, decorator or kind say how often it runs, whoever calls it?"""
    return (
        is_entry_point(info)
        or (named_heat(info, hot, cold) is not None and not makes(info, cold))
        or _runs_seldom(info)
        or any(d in ("torch.compile", "torch.jit.script") for d in info.decorators)
    )


MODULE_HEAT = Heat(Level.COLD, "at module level")


def makes(info: FunctionInfo, cold: tuple[str, ...]) -> bool:
    """Is a function cold by its name only until it is seen who calls it?"""
    return bool(MAKING.match(info.name)) and not named_in(info, cold)
