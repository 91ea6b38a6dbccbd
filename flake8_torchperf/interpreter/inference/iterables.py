"""Values that loops go over, also those that only the rest of the program shows."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import iterated_of
from flake8_torchperf.interpreter.inference.objects_of_program import of_objects
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.values import UNKNOWN

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.values import Value


def iterable(node: ast.expr, value: Value, ctx: Context) -> Value:
    """Return what a loop over an expression goes over, as a value whose elements are known.

    Where nothing in the function shows the value, it is what the program shows the expression to
    hold, if that has elements: a data loader that a caller passes, or an object that yields.
    """
    if value is not UNKNOWN:
        return iterated_of(value, ctx)
    found = of_objects(node, lambda one: iterated_of(one, ctx), ctx)
    return UNKNOWN if element_of(found) is UNKNOWN else found
