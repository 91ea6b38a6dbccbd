"""Findings that have to be told, whatever the names of functions, classes and files.

A line of the programs ends with the codes of its findings. The weights are fitted to them as to
places that readers found worth telling, but they are no sample of what programs hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from worth_table.measuring import linter_digest
from worth_table.places import Measured, Source

DEMANDED = "demanded"
# Each counts as much as so many places: with none, the index in the method is not told.
TIMES = 5
_CODES = re.compile(r"# (TPF\d+(?:, TPF\d+)*)$")
# A method that a loop of `forward` calls, the loops over gradients and their parts of
# pytorch/pytorch#82206, and a loop over training steps that reads its loss.
PROGRAMS = {
    "method.py": """\
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(12):
            x = self.scaled(x)
        return x

    def scaled(self, x: Tensor) -> Tensor:
        if x.abs().max().item() > 10:  # TPF101
            x = x / 2
        return x[x > 0]  # TPF402
""",
    "scaling.py": """\
import torch
from torch import Tensor


def scale(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    for grad in grads:
        for part in grad:  # TPF201
            if torch.isinf(part).any().item() or torch.isnan(part).any().item():  # TPF203, TPF203
                found_inf.fill_(1.0)
                break
            part.data *= inv_scale.item()  # TPF101
""",
    "training.py": """\
import torch
from torch import Tensor, nn


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]) -> float:
    total = 0.0
    for batch in batches:
        loss = model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()  # TPF206
        if torch.isnan(loss):  # TPF301
            raise ValueError("the loss is not a number")
    return total
""",
}


def measure() -> tuple[Source, list[Measured]]:
    """Return the findings with their evidence. Raises ValueError if one is missing."""
    found = [place for name in sorted(PROGRAMS) for place in _measured(name)]
    return Source(DEMANDED, "", linter_digest()), found


def _measured(name: str) -> Iterator[Measured]:
    text = PROGRAMS[name]
    told = lint(text, name, Options(min_worth=0.0))
    for number, line in enumerate(text.splitlines(), 1):
        codes = _CODES.search(line)
        for code in codes[1].split(", ") if codes else ():
            yield _place(name, number, code, told)


def _place(name: str, line: int, code: str, told: Iterable[Finding]) -> Measured:
    for one in told:
        if (one.line, one.code) == (line, code):
            evidence = tuple(sorted(features(one.site, code)))
            place = (DEMANDED, name, line, one.column + 1, code, "A")
            return Measured(*place, by_default=True, match="exact", features=evidence)
    raise ValueError(f"{name}:{line}: {code} is not found")


def as_many(pairs: Iterable[tuple[str, Measured]]) -> list[tuple[str, Measured]]:
    """Return the places, each of these as often as it counts."""
    return [pair for pair in pairs for _ in range(TIMES if pair[0] == DEMANDED else 1)]
