"""Runs the examples of a rule page under the dispatch counter: a page in, what it showed out.

Must not know the linter: whether an example is flagged is somebody else's question.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Literal

import torch

from flake8_torchperf.findings.documentation import Documentation
from flake8_torchperf.runtime.counter import DispatchCounter
from flake8_torchperf.runtime.evidence import Counts

Which = Literal["bad", "good"]
# Two sizes give a slope; both are small, because a per-element loop is what they are for.
SIZES = (4, 12)


@dataclass(frozen=True)
class Shown:
    """What a page's examples counted: per call, or per unit of n, as the page's law says."""

    bad: float
    good: float
    problem: str

    @property
    def confirmed(self) -> bool:
        """Whether the bad example showed the declared evidence and the good one did not."""
        return not self.problem


def run_examples(page: Documentation) -> Shown:
    """Run both examples of ``page`` at its law's sizes and compare with its evidence.

    Raises ValueError where the page has no examples or no evidence, and whatever they raise.
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
    """The page's counter for one example: its count per call, or its growth per unit of n."""
    if page.evidence is None:
        raise ValueError(f"{page.rule.code} declares no evidence")
    counter = page.evidence.counter
    if page.evidence.law == "call":
        return float(getattr(probe(page, which, SIZES[0]), counter))
    small, large = (float(getattr(probe(page, which, n), counter)) for n in SIZES)
    return (large - small) / (SIZES[1] - SIZES[0])


def probe(page: Documentation, which: Which, n: int) -> Counts:
    """What one call of an example counts at input size ``n``, in the example's own lines.

    The inputs are made before the counter opens, from a fixed seed. Tensors on the host stand for
    tensors on a device, except where the page needs CUDA and makes them there.
    """
    if page.example is None:
        raise ValueError(f"{page.rule.code} has no examples to run")
    example, filename = page.example, f"<{page.rule.code} {which}>"
    names: dict[str, Any] = {"torch": torch, "n": n, "__name__": filename}
    exec(compile(example.bad if which == "bad" else example.good, filename, "exec"), names)
    if example.setup:
        exec(compile(example.setup, f"<{page.rule.code} setup>", "exec"), names)
    torch.manual_seed(0)
    inputs = {name: eval(source, dict(names)) for name, source in example.inputs.items()}
    call: Callable[..., Any] = names[example.call]
    needs_device = page.evidence is not None and page.evidence.needs == "cuda"
    counter = DispatchCounter(host_as_device=not needs_device)
    with redirect_stdout(io.StringIO()), counter:
        call(**inputs)
    return counter.evidence.totals
