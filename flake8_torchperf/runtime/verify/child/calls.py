"""In the child: calls one version of a function, each time with its own variation of the inputs.

The results and side effects of a call become snapshots, its costs become counts.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.builder import Builder, seed
from flake8_torchperf.runtime.confirm.child.load import one_line
from flake8_torchperf.runtime.confirm.child.target import Ready, Subject
from flake8_torchperf.runtime.confirm.child.traced_call import Spots, time_limit, traced
from flake8_torchperf.runtime.confirm.specs.input_specs import HOST, PLACE, InputSpec, simple
from flake8_torchperf.runtime.counting.counter import DispatchCounter
from flake8_torchperf.runtime.verify.child.snapshot import Taker, worded
from flake8_torchperf.runtime.verify.child.variations import Variation, VariedBuilder

# The share of a version's time that one call may take.
CALL_SHARE = 0.25
_PLAIN = (bool, int, float, complex, str, list, dict, tuple, set, torch.Tensor)


def snapshot_of(
    subject: Subject,
    specs: dict[str, InputSpec],
    builder: VariedBuilder,
    seconds: float,
    spots: Spots | None = None,
) -> dict[str, Any]:
    """Make one call; return its result, exception, output and changes. Raises TooLate.

    What runs of ``spots`` is counted there.
    If the inputs could not be made, "unmade" says why, and there is nothing else.
    """
    _seed(builder.variation.seed)
    with time_limit(seconds):
        try:
            ready = subject.ready(specs, builder)
        except (Exception, SystemExit) as error:
            return {"unmade": one_line(error)}
        _seed(builder.variation.seed)
        with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with traced(subject.job["path"], spots.lines, spots) if spots else nullcontext():
                result, raised = _called(ready)
            backward = _backward([result, ready.given], builder) if not raised else ""
    taker = Taker()
    return {
        "error": raised,
        "result": taker.take(result),
        "given": taker.take(ready.given),
        "globals": taker.take(_globals(subject)),
        "gradients": taker.take([leaf.grad for leaf in builder.leaves]),
        "backward": backward,
        "printed": worded(printed.getvalue()),
        "random": int(torch.get_rng_state().to(torch.int64).sum()),
    }


def _called(ready: Ready) -> tuple[Any, list[str]]:
    """Return the result, and the type and text of the exception, if any."""
    try:
        return ready.run(), []
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return None, [type(error).__name__, worded(error)]


def _seed(number: int) -> None:
    seed(number)
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number)


def _backward(value: Any, builder: VariedBuilder) -> str:
    """Backpropagate from all tensors that require gradients; return the exception's text."""
    total: Any = None
    for one in _tensors(value, set(), 0):
        if not one.requires_grad or not one.is_floating_point() or one.is_leaf:
            continue
        weights = torch.arange(one.numel(), device=one.device).cos().reshape(one.shape)
        part = (one.to(torch.float64) * weights).sum()
        total = part if total is None else total + part
    if total is None or not builder.leaves:
        return ""
    try:
        total.backward()
    except Exception as error:
        return one_line(error)
    return ""


def _tensors(value: Any, seen: set[int], depth: int) -> Iterator[torch.Tensor]:
    """Return the tensors in containers and results, each once."""
    if id(value) in seen or depth > 4:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one, seen, depth + 1)
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from _tensors(one, seen, depth + 1)


def _globals(subject: Subject) -> dict[str, Any]:
    """Return the module's own data, which calls may have changed."""
    names = dict(subject.loaded.names)
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("__") and type(value) in _PLAIN
    }


def counts_of(
    subject: Subject,
    specs: dict[str, InputSpec],
    how: Variation,
    seconds: float,
    lines: tuple[int, int],
) -> dict[str, Any]:
    """Return the counts of one call, and how often lines between ``lines`` ran. Raises TooLate.

    "flagged" is how often the line of the finding ran, in the text before.

    Holds nothing but the size where the inputs cannot be made.
    """
    path, cuda = subject.job["path"], subject.job["device"] == "cuda"
    counter = DispatchCounter("full", owner=[path], host_as_device=not cuda)
    ran: Counter[int] = Counter()
    with time_limit(seconds):
        try:
            call = subject.ready(specs, varied(subject, specs, how)).run
            again = subject.ready(specs, varied(subject, specs, how)).run
        except (Exception, SystemExit):
            return {"size": how.n}
        with contextlib.suppress(Exception, SystemExit), counter:
            call()
            if cuda:
                torch.cuda.synchronize()  # noqa: TPF106 - the counts must be complete
        with contextlib.suppress(Exception, SystemExit), traced(path, ran):
            again()
    first, last = lines
    rounds = sum(count for line, count in ran.items() if first <= line <= last)
    flagged = ran[int(subject.job["targets"][0]["first"])]
    return {"size": how.n, "ran": rounds, "flagged": flagged, **counter.evidence.totals.to_dict()}


def varied(subject: Subject, specs: dict[str, InputSpec], how: Variation) -> VariedBuilder:
    """Return the builder of one variation, on the device of the job."""
    on_host = specs.get(PLACE) == simple(HOST)
    plain: Builder = subject._builder(how.n, on_host)
    return VariedBuilder(
        plain.n, plain.device, plain.names, plain.construct, dtype=how.dtype, variation=how
    )
