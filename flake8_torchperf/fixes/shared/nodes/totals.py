"""Running totals as libcst's nodes: the tensor that is added, and the read of the total."""

from __future__ import annotations

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes.reductions import method


def detached(read: cst.Call, cast: str) -> cst.Call:
    """``t.item()``, ``float(t)`` -> ``t.detach().double()``, as ``cast`` says.

    A ``cpu()`` that only the read needed is removed.
    """
    tensor: cst.BaseExpression = read
    while isinstance(tensor, cst.Call):
        func = tensor.func
        if isinstance(func, cst.Name) and func.value in ("float", "int") and tensor.args:
            tensor = tensor.args[0].value
        elif (
            isinstance(func, cst.Attribute)
            and func.attr.value in ("item", "detach", "cpu")
            and not tensor.args
        ):
            tensor = func.value
        else:
            break
    call = cst.Call(cst.Attribute(cst.Call(method(tensor, "detach")), cst.Name(cast)))
    return call.with_changes(lpar=read.lpar, rpar=read.rpar)


def number(use: cst.CSTNode, kind: str) -> cst.Call:
    """Return ``float(total)`` for ``total``."""
    assert isinstance(use, cst.Name)
    return cst.Call(cst.Name(kind), [cst.Arg(build.bare(use))], lpar=use.lpar, rpar=use.rpar)


def read_line(name: str, kind: str) -> cst.SimpleStatementLine:
    """Return the statement ``total = float(total)`` to put after the loop."""
    total = build.expression(name)
    assert isinstance(total, (cst.Name, cst.Subscript))
    call = cst.Call(cst.Name(kind), [cst.Arg(build.expression(name))])
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(total)], call)])
