"""Grades: what an expression may be, as far as nomination cares, in one integer.

Bits 0-15 say what the object itself may be, bits 16-31 what its items may be, bits 32-47 what
theirs may be. Zero is "surely no tensor, or nothing that the interpreter could know as one". Bits
48-79 name the unannotated parameters that the object is, or is an element of. Bits from 80 on name
the classes that TYPED stands for, at any depth.
"""

from __future__ import annotations

TENSOR = 1
LIST = 2  # a Python list: as an index it costs a copy
OBJECT = 4  # an object or callable of which nothing is known but that it is the project's
TORCH = 8  # an object of one of torch's classes
GROUPS = 16  # an optimizer's `param_groups`
GROUP = 32  # one of them
READ = 64  # a number that was read from a tensor
TYPED = 128  # an object of one of the classes named from bit 80 on
WEAK = 256  # a tensor or something else, as `float | Tensor` says: only its methods tell
MAPPING = 512  # a dict whose keys are no tensors
SEQUENCE = 1024  # anything that iterating gives the items of
ROLE = 2048  # a tensor that may be a parameter or a gradient
HOST = 4096  # a tensor that may lie on the host
CPU = 8192  # a device or string that may name the host

WIDTH = 16
PARAMETERS = 48
CLASSES = 80
MAX_PARAMETERS = CLASSES - PARAMETERS
OWN = (1 << WIDTH) - 1
TENSORS = TENSOR | TENSOR << WIDTH | TENSOR << 2 * WIDTH  # a tensor, at any depth
_ITEMS = ((1 << 2 * WIDTH) - 1) << WIDTH
_DEEPEST = OWN << 2 * WIDTH
_PARAMETER_BITS = ((1 << MAX_PARAMETERS) - 1) << PARAMETERS
_CLASS_BITS = -1 << CLASSES
_KEPT = _PARAMETER_BITS | _CLASS_BITS
_SHIFTED = OWN & ~(MAPPING | SEQUENCE) | OWN << WIDTH
KNOWN = ~_PARAMETER_BITS
ITEM = TENSOR << WIDTH
ONE = TENSOR | LIST | OBJECT | TORCH | READ | ROLE | HOST | SEQUENCE
ANY = ONE | ONE << WIDTH | ONE << 2 * WIDTH


def element(grade: int) -> int:
    """What an item of it is."""
    found = (grade & _ITEMS) >> WIDTH | grade & (_DEEPEST | _KEPT)
    if grade & (TENSOR | WEAK):
        found |= TENSOR | grade & HOST
    if grade & GROUPS:
        found |= GROUP
    return found


def iterated(grade: int) -> int:
    """What iterating it gives: a dict gives its keys."""
    if grade & (MAPPING | SEQUENCE | LIST | OBJECT) == MAPPING:
        return grade & _PARAMETER_BITS
    return element(grade)


def holding(grade: int) -> int:
    """A container of such objects."""
    return (grade & (OWN | OWN << WIDTH)) << WIDTH | grade & (_DEEPEST | _CLASS_BITS) | SEQUENCE


def mapping(grade: int) -> int:
    """A dict of such objects."""
    return holding(grade) & ~SEQUENCE | MAPPING


def has_items(grade: int) -> int:
    """Is anything known of its items?"""
    return grade & _ITEMS


def parameters_in(grade: int) -> int:
    """The unannotated parameters it is made of."""
    return grade & _PARAMETER_BITS


def matters(grade: int) -> int:
    """Is it, or does it hold, anything that a tensor may come out of?"""
    return grade & ~(_PARAMETER_BITS | CPU | MAPPING | SEQUENCE | LIST)
