"""Runs the examples of a rule page under the dispatch counter, and compares with its evidence."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import sys
import types
import unittest.mock
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Literal

import torch

from flake8_torchperf.findings.documentation import Documentation, expected_findings
from flake8_torchperf.runtime.counting.counter import DispatchCounter
from flake8_torchperf.runtime.counting.counts import Counts
from flake8_torchperf.runtime.counting.fake_accelerator import standing_in
from flake8_torchperf.runtime.counting.graph_breaks import explain

Which = Literal["bad", "good"]
# Two sizes give a slope; both are small, because they are for per-element loops.
EXAMPLE_SIZES = (4, 12)


@dataclass(frozen=True)
class Shown:
    """The counts of a page's examples: per call, or per unit of n, as the page's law says."""

    bad: float
    good: float
    problem: str

    @property
    def confirmed(self) -> bool:
        """True if the bad example showed the declared evidence and the good one did not."""
        return not self.problem


def run_examples(page: Documentation) -> Shown:
    """Run both examples of ``page`` at its law's sizes and compare with its evidence.

    Raises ValueError if the page has no examples or no evidence, and passes on their exceptions.
    """
    if page.evidence is None:
        raise ValueError(f"{page.rule.code} declares no evidence")
    spec = page.evidence
    bad, good = measure(page, "bad"), measure(page, "good")
    unit = "per call" if spec.law == "call" else "per unit of n"
    problem = ""
    if bad < spec.at_least:
        problem = f"bad: {bad:g} {spec.counter} {unit}, {spec.at_least:g} or more expected"
    elif good > spec.good_at_most:
        problem = f"good: {good:g} {spec.counter} {unit}, {spec.good_at_most:g} at most expected"
    return Shown(bad, good, problem)


def measure(page: Documentation, which: Which) -> float:
    """Return the page's counter for one example: its count per call, or its growth per n."""
    if page.evidence is None:
        raise ValueError(f"{page.rule.code} declares no evidence")
    counter = page.evidence.counter
    if counter == "graph_breaks":
        return float(graph_breaks(page, which))
    if page.evidence.law == "call":
        return float(probe(page, which, EXAMPLE_SIZES[0]).of(counter))
    small, large = (float(probe(page, which, n).of(counter)) for n in EXAMPLE_SIZES)
    return (large - small) / (EXAMPLE_SIZES[1] - EXAMPLE_SIZES[0])


def graph_breaks(page: Documentation, which: Which) -> int:
    """Return how many graph breaks one traced call has.

    For a bad example, only breaks that name a marked line count; it counts none unless all of its
    marked lines are named.
    """
    if page.example is None:
        raise ValueError(f"{page.rule.code} has no examples to run")
    snippet = page.example.bad if which == "bad" else page.example.good
    with made(page, which, EXAMPLE_SIZES[0]) as (call, inputs), redirect_stdout(io.StringIO()):
        found = explain(call, (), inputs)
    filename = _filename(page, which)
    marked = {line for line, _ in expected_findings(snippet)}
    if not marked:
        return len(found.breaks)
    named = [one.lines_in(filename) & marked for one in found.breaks]
    return sum(map(bool, named)) if set().union(*named) == marked else 0


@dataclass(frozen=True)
class Probe:
    """One call of an example: the dispatch counter's evidence, and figures of its result."""

    counts: Counts
    compiled_graphs: int
    skipped_frames: int
    compile_calls: int
    kernel_compiles: int
    autograd_nodes: int

    def of(self, counter: str) -> int:
        """Return the count that a page's evidence names."""
        return int(getattr(self if counter in _OF_THE_RUN else self.counts, counter))


_OF_THE_RUN = frozenset(
    {"compiled_graphs", "skipped_frames", "compile_calls", "kernel_compiles", "autograd_nodes"}
)


_OF_THE_COMPILER = frozenset({"compiled_graphs", "skipped_frames", "compile_calls"})


def probe(page: Documentation, which: Which, n: int) -> Probe:
    """Call an example once with inputs of size ``n``.

    The inputs are made before the counter opens, from a fixed seed. Tensors on the host stand for
    tensors on a device, except if the page needs CUDA and makes them there.
    """
    compiles = page.evidence is not None and page.evidence.counter in _OF_THE_COMPILER
    if compiles:
        _forget_compiled()
    needs_device = page.evidence is not None and page.evidence.needs == "cuda"
    counter = DispatchCounter(host_as_device=not needs_device)
    with _compiling() as calls, _kernels() as kernels, made(page, which, n) as (call, inputs):
        calls.clear()
        with redirect_stdout(io.StringIO()), standing_in(), counter:
            result = call(**inputs)
    graphs, skipped = _compiled() if compiles else (0, 0)
    nodes = _autograd_nodes(result)
    return Probe(counter.evidence.totals, graphs, skipped, len(calls), len(kernels), nodes)


@contextlib.contextmanager
def made(
    page: Documentation, which: Which, n: int, device: str = ""
) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """Yield an example's function, and inputs of size ``n`` made from a fixed seed.

    Where a ``device`` is named, everything is made there but the inputs that the page keeps on the
    host; the function itself is to be called without a default device. While the context is open
    the example is an importable module, as torch.compile requires of its functions.
    """
    if page.example is None:
        raise ValueError(f"{page.rule.code} has no examples to run")
    example, code = page.example, page.rule.code
    snippet = example.bad if which == "bad" else example.good
    module = types.ModuleType(f"torchperf_example_{code}_{which}")
    names = vars(module)
    names.update(torch=torch, n=n)
    sys.modules[module.__name__] = module
    filename = _filename(page, which)
    # Triton reads the source of its kernels.
    linecache.cache[filename] = (len(snippet), None, snippet.splitlines(keepends=True), filename)
    try:
        with torch.device(device) if device else contextlib.nullcontext():
            exec(compile(snippet, filename, "exec"), names)
            if example.setup:
                exec(compile(example.setup, f"<{code} setup>", "exec"), names)
        torch.manual_seed(0)
        inputs: dict[str, Any] = {}
        for name, source in example.inputs.items():
            there = device and name not in example.host
            with torch.device(device) if there else contextlib.nullcontext():
                inputs[name] = eval(source, dict(names))
        yield names[example.call], inputs
    finally:
        sys.modules.pop(module.__name__, None)
        linecache.cache.pop(filename, None)


def _filename(page: Documentation, which: Which) -> str:
    return f"<{page.rule.code} {which}>"


@contextlib.contextmanager
def _compiling() -> Iterator[list[str]]:
    """Let ``torch.compile`` trace without making machine code, and note its calls.

    The backend that only traces shows the same as the default one in all examples, and needs no C++
    compiler.
    """
    whole = torch.compile
    calls: list[str] = []

    def tracing(*args: Any, **options: Any) -> Any:
        calls.append("torch.compile")
        return whole(*args, **{"backend": "aot_eager", **options})

    with unittest.mock.patch.object(torch, "compile", tracing):
        yield calls


@contextlib.contextmanager
def _kernels() -> Iterator[list[str]]:
    """Note the kernels that Triton compiles: triton/runtime/jit.py, `create_binder`, as of 3.4.

    A kernel takes the function at its first launch, so the example must define its own kernels.
    """
    found: list[str] = []
    if importlib.util.find_spec("triton") is None:
        yield found
        return
    compiler = importlib.import_module("triton.compiler")
    whole = compiler.compile

    def noting(*args: Any, **options: Any) -> Any:
        found.append("triton")
        return whole(*args, **options)

    with unittest.mock.patch.object(compiler, "compile", noting):
        yield found


def _forget_compiled() -> None:
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()


def _compiled() -> tuple[int, int]:
    """Return the number of graphs compiled and functions given up since `_forget_compiled`."""
    from torch._dynamo.utils import counters

    frames = counters["frames"]
    return counters["stats"]["unique_graphs"], frames["total"] - frames["ok"]


def _autograd_nodes(result: object) -> int:
    """Return how many nodes of the autograd graph the returned tensor keeps alive."""
    first = result.grad_fn if isinstance(result, torch.Tensor) else None
    seen: set[Any] = set()
    waiting = [first]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(following for following, _ in node.next_functions)
    return len(seen)
