"""Evaluations: functions that run a model in a loop without gradients."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import (
    STATEMENTS,
    feeds_back,
    head_of,
    may_step,
    names_in,
)
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.names import is_name, named_parameters
from flake8_torchperf.syntax.traversal import walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# Contexts and decorators that record no gradients.
GRADIENTS_OFF = frozenset((
    "torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad",
    "torch.autograd.inference_mode",
))  # fmt: skip


def runs_without_gradients(info: FunctionInfo) -> bool:
    """True if a function takes no step, and runs a model in a loop with gradients switched off.

    ``model.eval()`` counts as switching them off, and so does a method that the loop calls. A loop
    that computes with what its last round made is no evaluation: a sampler makes its next token of
    it.
    """
    if not goes_over_examples(info):
        return False
    loops = info.nodes.of_any(*STATEMENTS)
    if _calls_eval(info) or (_switches_off(info) and _calls_value(info, loops)):
        return True
    return any(_calls_eval(one) or _switches_off(one) for one in _methods_called(info, loops))


def goes_over_examples(info: FunctionInfo) -> bool:
    """True if a function has loops, takes no step, and no round computes with what one made."""
    loops = info.nodes.of_any(*STATEMENTS)
    return bool(loops) and not may_step(info.node) and not any(map(feeds_back, loops))


def runs_model_once(info: FunctionInfo) -> bool:
    """True if a function runs a model with gradients switched off, for one example or batch."""
    return not may_step(info.node) and _switches_off(info) and _calls_value(info, [info.node])


def _methods_called(info: FunctionInfo, loops: Sequence[ast.AST]) -> list[FunctionInfo]:
    """Return the methods of the same class that loops of a method call."""
    if info.owner is None:
        return []
    found = []
    for node in walk([inner for loop in loops for inner in getattr(loop, "body", ())]):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                if name in info.owner.methods:
                    found.append(info.owner.methods[name])
    return found


def _calls_value(info: FunctionInfo, codes: Iterable[ast.AST]) -> bool:
    """True if a name that the function binds, or an attribute that is no method, is called.

    ``codes`` are the parts of the function whose calls count.
    """
    bound = bound_in(info.node) | {one.arg for one in named_parameters(info.tree.args)}
    methods = {} if info.owner is None else info.owner.methods
    for code in codes:
        for node in walk(list(getattr(code, "body", ()))):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in bound:
                    return True
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    if name not in methods:
                        return True
    return False


def opens(context: ast.expr, module: ModuleMap, names: Collection[str]) -> bool:
    """True if a ``with`` item or a decorator is one of some names, or a call of one."""
    called = context.func if isinstance(context, ast.Call) else context
    return module.qualify(called) in names


def _switches_off(info: FunctionInfo) -> bool:
    if not GRADIENTS_OFF.isdisjoint(info.decorators):
        return True
    blocks: list[ast.With | ast.AsyncWith] = [
        *info.nodes.of(ast.With),
        *info.nodes.of(ast.AsyncWith),
    ]
    return any(
        opens(item.context_expr, info.module, GRADIENTS_OFF)
        for block in blocks
        for item in block.items
    )


def _calls_eval(info: FunctionInfo) -> bool:
    """True for ``model.eval()``, which switches a model to evaluation."""
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "eval"
        and not call.args
        and not is_name(call.func.value, "self")
        for call in info.nodes.of(ast.Call)
    )


def samples(info: FunctionInfo, loops: Sequence[ast.AST]) -> bool:
    """True if one of a function's loops samples: gradients are off, and a round feeds the next.

    Such a loop counts its rounds or runs until something holds; one over data is no sampler.
    """
    counting = [loop for loop in loops if isinstance(loop, ast.While) or _counts(loop)]
    return any(map(feeds_back, counting)) and not may_step(info.node) and _switches_off(info)


def _counts(loop: ast.AST) -> bool:
    """True for ``for i in range(n)``, with or without a bar that shows the progress."""
    head = head_of(loop)
    return head is not None and "range" in names_in(head.iter)
