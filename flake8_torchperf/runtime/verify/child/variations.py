"""In the child: the same inputs in other sizes, with other numbers, layouts and dtypes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.builder import Builder
from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec

# Between the numbers of two seeds: far more than the tensors of one call.
_SEEDS_APART = 10_000_019
# The range of starting points that attribute names are hashed to.
_NAMES = 1_000_000


@dataclass(frozen=True)
class Variation:
    """The changes to the inputs of one call, compared with those that the search found.

    ``data`` names the change to the numbers in floating tensors, ``words`` is the variation's name
    in a report. ``mixed`` gives the floating tensors of one call several dtypes in turn.
    ``lenient`` is for inputs that a function need not take: an error says only that it does not.
    ``without`` says which parameters have no ``.grad``: "all", or "some", which is every other one.
    """

    words: str = ""
    n: int = 16
    seed: int = 0
    data: str = ""
    strided: bool = False
    gradients: bool = False
    dtype: torch.dtype = torch.float32
    mixed: bool = False
    without: str = ""
    lenient: bool = False

    @property
    def half(self) -> bool:
        """True if some floating tensors have 16-bit numbers."""
        return self.dtype in (torch.float16, torch.bfloat16) or self.mixed

    @property
    def finite(self) -> bool:
        """True if all numbers are finite."""
        return self.data not in ("special", "infinite", "nan")


# Variations of the first inputs found; the size of the search comes first.
ALL_VARIATIONS = (
    Variation(),
    Variation("another seed", seed=1),
    Variation("", n=5, seed=2),
    Variation("", n=1),
    Variation("", n=0),
    Variation("", n=64, seed=3),
    Variation("with NaN and infinities", data="special", seed=4),
    Variation("with one infinity", data="infinite"),
    Variation("with one NaN", data="nan", n=5),
    Variation("negated", data="negated"),
    Variation("all zero, masks all False", data="zeros"),
    Variation("masks all True", data="true"),
    Variation("not contiguous", strided=True),
    Variation("in float16", dtype=torch.float16),
    Variation("in bfloat16", dtype=torch.bfloat16),
    Variation("in float64", dtype=torch.float64),
    Variation("that require gradients", gradients=True),
    Variation("that require gradients", gradients=True, n=5, seed=5),
    Variation("that saturate and require gradients", data="saturating", gradients=True),
    Variation("with one infinity, that require gradients", data="infinite", gradients=True, n=5),
    Variation("with one NaN, that require gradients", data="nan", gradients=True, n=5),
    Variation(
        "with NaN and infinities, that require gradients", data="special", gradients=True, seed=4
    ),
    Variation("all zero, that require gradients", data="zeros", gradients=True, n=5),
    Variation("with one zero, that require gradients", data="zero", gradients=True, n=5),
    Variation("with one negative, that require gradients", data="negative", gradients=True, n=5),
    Variation("with no parameter's gradient", without="all"),
    Variation("with some parameters' gradients", without="some"),
    Variation("with numbers of any size", data="wide"),
)
# Variations that are counted besides the sizes: other numbers take other, and more, branches.
COUNTED_TOO = tuple(ALL_VARIATIONS[index] for index in (1, 6, 7, 9, 10, 11))
# Variations of further inputs, which differ in shapes or options.
SHORT = tuple(ALL_VARIATIONS[index] for index in (0, 4, 6, 10, 12, 13, 16, 18))
# A factor at which softmax, sigmoid, tanh and exp saturate: a logarithm behind them is infinite.
_SATURATING = 1e4
# A factor that leads out of the domain of functions such as acos, on both sides.
_WIDE = 8.0
# The dtypes of the floating tensors of a mixed call, in turn.
VARIED_DTYPES = (torch.float32, torch.float64, torch.float16)


@dataclass
class VariedBuilder(Builder):
    """Builds inputs as one variation says; ``leaves`` are the tensors that get gradients."""

    variation: Variation = field(default_factory=Variation)
    leaves: list[torch.Tensor] = field(default_factory=list)
    # The dtypes of the floating tensors made so far.
    mixed: list[torch.dtype] = field(default_factory=list)

    def has_gradient(self, index: int) -> bool:
        """True unless the variation takes the gradient of this parameter away."""
        return not self.variation.without or (self.variation.without == "some" and index % 2 == 1)

    def attribute(self, name: str) -> Any:
        """Return the same numbers for a name, independent of what was made before it."""
        before = self.made
        self.made = zlib.crc32(name.encode()) % _NAMES
        try:
            return super().attribute(name)
        finally:
            self.made = before

    def tensor(self, shape: tuple[int, ...], dtype: str, data: str) -> torch.Tensor:
        """Return a tensor as `Builder.tensor` makes it, varied."""
        how = self.variation
        self.made += how.seed * _SEEDS_APART
        made = super().tensor(shape, dtype, data)
        self.made -= how.seed * _SEEDS_APART
        return self._vary(made)

    def build(self, spec: InputSpec) -> Any:
        """Return an object as `Builder.build` makes it, but vary objects that user code makes."""
        made = super().build(spec)
        return self._vary_all(made) if spec["kind"] == "source" else made

    def _vary_all(self, made: Any) -> Any:
        if type(made) is torch.Tensor and made.is_leaf and not made.requires_grad:
            return self._vary(made)
        if type(made) in (list, tuple):
            return type(made)(self._vary_all(one) for one in made)
        if type(made) is dict:
            return {key: self._vary_all(one) for key, one in made.items()}
        return made

    def _vary(self, made: torch.Tensor) -> torch.Tensor:
        how = self.variation
        if made.dtype is torch.bool:
            made = _mask(made, how)
        if not made.is_floating_point():
            return _strided(made) if how.strided else made
        made = _numbers(made, how.data)
        if made.dtype is torch.float32:
            made = made.to(
                VARIED_DTYPES[len(self.mixed) % len(VARIED_DTYPES)] if how.mixed else how.dtype
            )
            self.mixed.append(made.dtype)
        if how.strided:
            made = _strided(made)
        if not how.gradients:
            return made
        self.leaves.append(made.requires_grad_())
        return made.clone()  # code may change it in place, which autograd forbids for a leaf


def _mask(made: torch.Tensor, how: Variation) -> torch.Tensor:
    match how.data:
        case "zeros":
            return torch.zeros_like(made)
        case "true":
            return torch.ones_like(made)
    return ~made if how.seed % 2 else made


def _numbers(made: torch.Tensor, data: str) -> torch.Tensor:
    made = made.clone(memory_format=torch.contiguous_format)
    match data:
        case "negated":
            return -made
        case "zeros":
            return torch.zeros_like(made)
        case "saturating":
            return made * _SATURATING
        case "special":
            for start, number in enumerate((float("nan"), float("inf"), float("-inf"))):
                made.view(-1)[start::4] = number
        case "infinite":
            made.view(-1)[-1:] = float("inf")
        case "nan":
            made.view(-1)[:1] = float("nan")
        case "zero":
            made.view(-1)[:1] = 0.0
        case "negative":
            made.view(-1)[:1] *= -1
        case "wide":
            return (made - 0.5) * _WIDE
    return made


def _strided(made: torch.Tensor) -> torch.Tensor:
    """Return the same numbers as every second element of a larger tensor."""
    wide = made.new_zeros((*made.shape[:-1], 2 * made.shape[-1])) if made.dim() else None
    if wide is None:
        return torch.stack((made, made))[1]
    wide[..., ::2] = made
    return wide[..., ::2]
