"""The table of logging calls, which report to the user or to a tracker.

A method counts by its name unless its owner is known to be something else; a function by its full
name. Sources: Python's logging; torch.utils.tensorboard.SummaryWriter; tqdm; lightning's
LightningModule.log; the trackers' own documentation, named next to each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# Python's logging, absl's, loguru's.
LOG_LEVELS = frozenset((
    "debug", "info", "warning", "warn", "error", "critical", "exception", "log",
))  # fmt: skip
# Calls that log and read a tensor among their arguments at once: tensorboard
# (torch/utils/tensorboard/_convert_np.py, make_np), wandb (wandb/sdk/data_types/utils.py,
# val_to_json), tqdm (tqdm/std.py, set_postfix: it makes text of it). Lightning's ``log`` reads what
# the progress bar shows (lightning/pytorch/trainer/connectors/logger_connector/logger_connector.py,
# progress_bar_metrics).
READING_METHODS = frozenset((
    # SummaryWriter, tqdm
    "add_histogram", "add_scalar", "add_scalars", "set_postfix",
    # lightning, accelerate, mlflow, comet
    "log_metric", "log_metrics",
    # baselines and stable-baselines3, clearml
    "logkv", "logkv_mean", "record_mean", "report_scalar",
))  # fmt: skip
READING_FUNCTIONS = frozenset(("wandb.log", "mlflow.log_metric", "mlflow.log_metrics"))
# The last names of these functions.
READERS = frozenset(name.rpartition(".")[2] for name in READING_FUNCTIONS)
# These log, too, but read nothing by themselves.
LOGGING_METHODS = LOG_LEVELS | READING_METHODS | {
    "add_text", "log_dict", "log_scalar", "set_description", "set_postfix_str",
}  # fmt: skip
LOGGING_FUNCTIONS = READING_FUNCTIONS | {
    "print", "builtins.print", "pprint.pprint", "rich.print", "tqdm.write", "tqdm.tqdm.write",
    "tqdm.auto.tqdm.write",
}  # fmt: skip
# Arguments of Lightning's `log`.
IN_PROGRESS_BAR, IN_EACH_STEP = "prog_bar", "on_step"
# Libraries with a ``log`` that computes a logarithm.
NUMERIC = frozenset((
    "cmath", "jax", "math", "numpy", "scipy", "sympy", "tensorflow", "torch",
))  # fmt: skip


def reads(qualified: str, method: str, keywords: Collection[str]) -> bool:
    """True if a logging call reads the tensors that it is given; ``method`` as for `logs`."""
    if qualified in READING_FUNCTIONS:
        return True
    return method in READING_METHODS or (
        method in ("log", "log_dict") and IN_PROGRESS_BAR in keywords
    )


def logs(qualified: str, method: str) -> bool:
    """True if a call logs. ``method`` is its name after an owner, "" for a plain function."""
    if qualified in LOGGING_FUNCTIONS:
        return True
    return method in LOGGING_METHODS and qualified.partition(".")[0] not in NUMERIC
