"""How often a function runs, by its name, its class and what it is given.

Enters a function's name and facts; leaves its heat. Must not know rules or libcst.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from flake8_torchperf.sites.model import Heat, Level

if TYPE_CHECKING:
    from flake8_torchperf.suspects.modulemap import FunctionInfo

# Functions that run every step, by PyTorch's and Lightning's conventions.
HOT_NAMES = ("forward", "*_step", "step", "*_loss", "loss", "loss_fn", "compute_loss*", "__call__",
             "train_one_epoch", "train_epoch", "backward", "*_forward", "forward_*")  # fmt: skip
# Functions that run once, or when a person looks.
COLD_NAMES = (
    "__init__", "__new__", "__post_init__", "__repr__", "__str__", "__format__", "extra_repr",
    "__setstate__", "__getstate__", "__reduce__", "__reduce_ex__", "__deepcopy__", "__copy__",
    "__del__", "__init_subclass__", "__set_name__", "setup", "setup_*", "_setup*", "teardown*",
    "configure_*", "build", "build_*", "_build_*", "create_*", "_create_*", "make_*", "init_*",
    "_init_*", "reset_parameters", "_reset_parameters", "from_pretrained", "from_config",
    "save", "save_*", "_save_*", "load", "load_*", "_load_*", "*state_dict*", "*checkpoint*",
    "export*", "convert_*", "print_*", "_print_*", "log_*", "_log_*", "plot*", "_plot*",
    "visuali*", "draw_*", "show_*", "display*", "test_*", "test", "summary", "*_summary",
    "describe",
    "parse_args", "_repr_html_", "__dir__", "_validate_args",
)  # fmt: skip


def named_heat(name: str, hot: tuple[str, ...], cold: tuple[str, ...]) -> Heat | None:
    """The heat that a function's name alone decides; what the user names goes first."""
    for glob in hot:
        if fnmatchcase(name, glob):
            return Heat(Level.HOT, f"in {name}, which --torchperf-hot names")
    for glob in cold:
        if fnmatchcase(name, glob):
            return Heat(Level.COLD, f"in {name}, which --torchperf-cold names")
    if any(fnmatchcase(name, glob) for glob in COLD_NAMES):
        return Heat(Level.COLD, f"in {name}, which runs seldom")
    if any(fnmatchcase(name, glob) for glob in HOT_NAMES):
        return Heat(Level.HOT, f"in {name}, which runs every step")
    return None


def function_heat(
    info: FunctionInfo, given_tensors: bool, hot: tuple[str, ...], cold: tuple[str, ...]
) -> Heat:
    """The heat of a function: by name, by a compiling decorator, or by what it is given."""
    named = named_heat(info.name, hot, cold)
    if named is not None:
        return named
    if any(d in ("torch.compile", "torch.jit.script") for d in info.decorators):
        return Heat(Level.HOT, f"in {info.name}, which is compiled")
    if given_tensors:
        return Heat(Level.HOT, f"in {info.name}, which computes on the tensors it is given")
    return Heat(Level.COLD, f"in {info.name}")


MODULE_HEAT = Heat(Level.COLD, "at module level")
