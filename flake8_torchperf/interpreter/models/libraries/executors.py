"""Executors and pools, whose results are those of what they are given to run, and queues.

A process sends a tensor back where it lies: on the host, or on the device by its handle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import apply
from flake8_torchperf.values.arguments import Argument
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.values import UNKNOWN, External, Sequence, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env

# The kinds of sequences of which a queue and a future are: one gives what was put, one its result.
QUEUE, FUTURE = "queue", "future"
_EXECUTOR = "concurrent.futures.Executor"
_MADE: dict[str, Value] = {
    **dict.fromkeys(
        (
            "concurrent.futures.ThreadPoolExecutor",
            "concurrent.futures.ProcessPoolExecutor",
            "multiprocessing.Pool",
            "multiprocessing.pool.Pool",
            "multiprocessing.pool.ThreadPool",
        ),
        External(_EXECUTOR),
    ),
    **dict.fromkeys(
        (
            "queue.Queue",
            "queue.LifoQueue",
            "queue.SimpleQueue",
            "multiprocessing.Queue",
            "multiprocessing.SimpleQueue",
        ),
        Sequence(QUEUE, UNKNOWN, ()),
    ),
}
# Methods that return a future, or the result itself.
RUNNING_ONE = ("submit", "apply_async", "apply")
RUNNING_EACH = ("map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async")
# Methods that give the value of a queue or a future.
OUT_OF = ("get", "get_nowait", "result")


def call(name: str, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the result of a function of concurrent.futures, multiprocessing or queue."""
    owner, _, method = name.rpartition(".")
    if owner != _EXECUTOR:
        if method == "as_completed":
            return Sequence("iterator", element_of(arguments.value(0)))
        return _MADE.get(name, UNKNOWN)
    given = _given(method, arguments)
    if given is None:
        return UNKNOWN
    ctx.budget.opaque_calls += 1  # what it runs need not work on a batch as on one sample
    result = apply(arguments.value(0), given, env, ctx.silent())
    if method in RUNNING_EACH:
        result = Sequence("iterator", result)
    late = method == "submit" or method.endswith("_async")
    return Sequence(FUTURE, result) if late else result


def _given(method: str, arguments: Arguments) -> Arguments | None:
    """Return the arguments with which an executor calls what it is given; None for no such call."""
    rest = arguments.rest()
    if method == "submit":
        return rest
    each: list[Value]
    if method in RUNNING_ONE:  # a tuple of arguments
        tuple_ = rest.value(0, "args")
        each = list(tuple_.items or ()) if isinstance(tuple_, Sequence) else []
    elif method.startswith("starmap"):
        row = element_of(rest.value(0))
        each = list(row.items or ()) if isinstance(row, Sequence) else []
    elif method in RUNNING_EACH:
        each = [element_of(one.value) for one in rest.positional]
    else:
        return None
    placed = tuple(Argument(rest.node, value) for value in each)
    return replace(rest, positional=placed, keywords={})
