"""Whole modules made up by hypothesmith, with torch's names put in.

hypothesmith writes syntactically valid Python of every kind; its names mean nothing to the linter,
so they are exchanged for ones that do.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from functools import cache

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from fuzzing.mutations import renamed

HEAD = "import torch\nfrom torch import nn, Tensor\n\ndef step(x: torch.Tensor, *item):\n    "
BATCH = 40


def with_torch(source: str, number: int) -> str:
    """Return a made-up module in which names are torch's, below a function that has a tensor."""
    rng = random.Random(number)
    body = renamed(source, rng)
    if rng.random() < 0.5:
        return HEAD + body.replace("\n", "\n    ") + "\n"
    return HEAD + "return x.item()\n\n" + body


def strategy() -> st.SearchStrategy[str]:
    """Return a strategy for modules, by libcst's nodes and by Python's grammar."""
    return _made()  # `st.deferred` takes a plain function alone


@cache
def _made() -> st.SearchStrategy[str]:
    # Seconds, which only those who draw from it are to pay.
    import hypothesmith

    made = st.one_of(hypothesmith.from_node(), hypothesmith.from_grammar())
    return st.builds(with_torch, made, st.integers(0, 2**16))


def modules(rng: random.Random) -> Iterator[str]:
    """Yield modules without end, the same ones for the same random generator."""
    while True:
        yield from _batch(rng)


def _batch(rng: random.Random) -> list[str]:
    batch: list[str] = []

    @seed(rng.randrange(2**32))
    @settings(
        max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy())
    def collect(source: str) -> None:
        batch.append(source)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return batch
