"""Switches for debugging that make a program wait, switched on for every run.

A switch under a branch is a choice of whoever runs the program, and so is one in a test, or in a
module that asks for the state before.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_beside_steps
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.suspects.words import VARIABLES
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import UNKNOWN, Scalar, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments

# Functions of torch, each with the parameter that switches it on; "" if calling it does.
# torch/autograd/anomaly_mode.py; torch/cuda/__init__.py, set_sync_debug_mode
DEBUG_SWITCHES = {
    "torch.autograd.set_detect_anomaly": "mode",
    "torch.autograd.detect_anomaly": "",
    "torch.cuda.set_sync_debug_mode": "debug_mode",
}
# Values that switch nothing on.
OFF = (False, 0, "default", "0", "")
OS_ENVIRON = "os.environ"


def switch(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record a call that switches debugging on."""
    parameter = DEBUG_SWITCHES[name]
    given = arguments.value(0, parameter) if parameter else None
    literal = isinstance(given, Scalar) and given.known and given.value not in OFF
    restored = ctx.module.says(name.rpartition(".")[2].replace("set_", "get_", 1))
    if (given is None or literal) and not (restored and parameter):
        _note(name.rpartition(".")[2], arguments.node, ctx)
    return UNKNOWN


def variable(target: ast.Subscript, value: Value, ctx: Context) -> None:
    """Record ``os.environ["CUDA_LAUNCH_BLOCKING"] = "1"``."""
    match target.slice, value:
        case ast.Constant(value=str(name)), Scalar(kind="str", known=True, value=text) if (
            name in VARIABLES and text not in OFF
        ):
            if ctx.module.qualify(target.value) == OS_ENVIRON:
                _note(name, target, ctx)


def _note(operation: str, node: ast.AST, ctx: Context) -> None:
    code = ctx.module.tree if ctx.node is None else ctx.node
    chosen = id(node) in _under_branches(code)
    if not chosen and not is_beside_steps(ctx.module, ctx.analysis.conventions):
        emit(ctx, SiteKind.SWITCH, operation, node)


@once
def _under_branches(code: ast.AST) -> frozenset[int]:
    """Return the identities of the nodes under the branches of a function or a module."""
    branches = [node for node in walk([code]) if isinstance(node, ast.If) and not _is_main(node)]
    return frozenset(
        id(inner) for branch in branches for inner in walk([*branch.body, *branch.orelse])
    )


def _is_main(node: ast.If) -> bool:
    """True for ``if __name__ == "__main__":``."""
    match node.test:
        case ast.Compare(left=ast.Name(id="__name__")):
            return True
    return False
