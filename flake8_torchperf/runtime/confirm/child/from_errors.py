"""In the child: specs that an error message suggests: it names the size or rank that was expected.

A guessed batch of four features does not fit a layer of 512; torch says so, and with which number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from flake8_torchperf.runtime.confirm.child.search import Assignment, Dimension
from flake8_torchperf.runtime.confirm.specs.input_specs import WIDTH, InputSpec, unique

# Larger numbers in a message are no sizes that a test should make.
LARGEST = 20_000
MOST_NUMBERS = 4
MOST_SUGGESTED = 16
# Errors of shapes and dtypes, from torch and from unpacking a shape.
_SHAPE_ERROR = re.compile(
    r"shape|size|dimension|channels|expected \d|\bD\b|\dD|values to unpack|indices|equal|einops"
    r"|rearrange|normalized|match|multipl",
    re.IGNORECASE,
)
_RANKS = (
    re.compile(r"(\d)D \((?:un)?batched"),
    re.compile(r"expected (\d)D"),
    re.compile(r"to unpack \(expected (\d)"),
    re.compile(r"expected (\d) dim"),
    re.compile(r"(\d)-dimensional"),
)
_BEYOND = re.compile(r"range of \[-?\d+, -?\d+\], but got (-?\d)\b")
_FEW = re.compile(r"too many indices for tensor of dimension (\d)")
# Messages that say which number is the size of which dimension, counted from the last one.
_EXACT = (
    (re.compile(r"cannot be multiplied \(\d+x\d+ and (\d+)x"), -1),
    (re.compile(r"normalized_shape=\[(\d+)\]"), -1),
    (re.compile(r"equal to input_size. Expected (\d+)"), -1),
    (re.compile(r"to have (\d+) channels"), 1),
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,5}(?![\w.]*\d)|(?<=x)\d{1,5}|\d{1,5}(?=x)")


def suggested(
    dimensions: Sequence[Dimension], assignment: Assignment, error: str
) -> list[Dimension]:
    """Return the dimensions, with further candidates for each tensor of an assignment at the end.

    The same dimensions if the error is not about shapes.
    """
    if not _SHAPE_ERROR.search(error):
        return list(dimensions)
    found: list[Dimension] = []
    for dimension, choice in zip(dimensions, assignment, strict=True):
        made = list(_changed(dimension.candidates[choice], error))[:MOST_SUGGESTED]
        more = [one for one in unique(made) if one not in dimension.candidates]
        found.append(Dimension(dimension.name, [*dimension.candidates, *more], dimension.start))
    return found


def _changed(spec: InputSpec, error: str) -> Iterator[InputSpec]:
    match spec:
        case {"kind": "tensor", "shape": shape}:
            yield from ({**spec, "shape": one} for one in _shapes(list(shape), error))
        case {"kind": "list", "item": item}:
            yield from ({**spec, "item": one} for one in _changed(item, error))


def _shapes(shape: list[int | str], error: str) -> Iterator[list[int | str]]:
    """Return shapes of the rank, and with the sizes, that the message names."""
    for pattern, place in _EXACT:
        for number in pattern.findall(error):
            if shape and place < len(shape):
                yield [*shape[:place], int(number), *(shape[place + 1 :] if place >= 0 else [])]
    for rank in _ranks(error):
        if rank > len(shape):
            more = rank - len(shape)
            yield [2, *[WIDTH] * (more - 1), *shape]
            yield [*shape, *[WIDTH] * more]
        elif rank < len(shape):
            yield shape[len(shape) - rank :]
    for number in _numbers(error):
        for place in reversed(range(len(shape))):
            if shape[place] != number:
                yield [*shape[:place], number, *shape[place + 1 :]]


def _ranks(error: str) -> list[int]:
    found = [int(one) for pattern in _RANKS for one in pattern.findall(error)]
    found += [int(one) + 1 for one in _FEW.findall(error)]
    found += [int(one) + 1 if int(one) >= 0 else -int(one) for one in _BEYOND.findall(error)]
    return [one for one in dict.fromkeys(found) if 0 < one <= 5]


def _numbers(error: str) -> list[int]:
    found = dict.fromkeys(int(one) for one in _NUMBER.findall(error))
    return [one for one in found if 0 < one <= LARGEST][:MOST_NUMBERS]
