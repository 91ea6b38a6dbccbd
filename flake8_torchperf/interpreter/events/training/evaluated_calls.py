"""Evaluations that record gradients: loops that call a module in evaluation mode over data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.evaluations import GRADIENTS_OFF, opens
from flake8_torchperf.idioms.loop_kinds import may_step
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.names import dotted_name, given_to
from flake8_torchperf.syntax.traversal import COMPREHENSIONS, inside, once, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.project.module_index import ModuleMap

# Words of code that computes gradients without `backward`, or chooses whether it records them.
OF_GRADIENTS = frozenset((
    "requires_grad", "requires_grad_", "grad", "enable_grad", "set_grad_enabled", "jacobian",
    "hessian", "vjp", "jvp", "jacrev", "jacfwd", "value_and_grad",
))  # fmt: skip
# Decorators that run the function as it stands.
UNSWITCHING_DECORATORS = frozenset(("staticmethod", "classmethod", "override", "typing.override"))
# Context managers that leave the recording of gradients as it is.
UNSWITCHING_CONTEXTS = frozenset((
    "open", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm", "contextlib.nullcontext", "torch.autocast",
    "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.device",
    "torch.profiler.record_function",
))  # fmt: skip

# The loops that may go over data.
_OVER_DATA = (ast.For, ast.AsyncFor, *COMPREHENSIONS)


@once
def evaluated_calls(code: ast.AST) -> frozenset[int]:
    """Return, by identity, the calls of modules over data that the code put in evaluation mode.

    Empty if the code takes a step, or computes or switches gradients.
    """
    if "eval" not in [part.attr for part in inside(code, ast.Attribute)]:
        return frozenset()  # most code
    if may_step(code) or not OF_GRADIENTS.isdisjoint(_words(code)):
        return frozenset()
    modes = list(_modes(code))
    if not any(evaluates for _, _, evaluates in modes):
        return frozenset()
    found = set()
    for loop in [one for kind in _OVER_DATA for one in inside(code, kind)]:
        bound = bound_in(loop)
        for call in walk([loop]):
            if isinstance(call, ast.Call) and _takes(call, bound) and _evaluates(call, modes):
                found.add(id(call))
    return frozenset(found)


def _words(code: ast.AST) -> Iterator[str]:
    yield from [name.id for name in inside(code, ast.Name)]
    yield from [part.attr for part in inside(code, ast.Attribute)]


def _takes(call: ast.Call, bound: set[str] | frozenset[str]) -> bool:
    """True if a call is given something that each round binds."""
    given = given_to(call)
    return any(
        isinstance(part, ast.Name) and part.id in bound for one in given for part in ast.walk(one)
    )


def _modes(code: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield the line, module and mode of each ``model.eval()`` and ``model.train()``."""
    for node in (*inside(code, ast.Call), *inside(code, ast.Assign)):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="eval"), args=[], keywords=[]):
                yield node.lineno, dotted_name(owner), True
            case ast.Call(func=ast.Attribute(value=owner, attr="train")):
                yield node.lineno, dotted_name(owner), False
            case ast.Assign(targets=[target], value=ast.Call() as made) if _ends_in_eval(made):
                yield node.lineno, dotted_name(target), True


def _ends_in_eval(made: ast.expr) -> bool:
    """True for ``Net().eval()`` and ``Net().eval().to(device)``."""
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
        if made.func.attr == "eval" and not made.args:
            return True
        made = made.func.value
    return False


def _evaluates(call: ast.Call, modes: list[tuple[int, str, bool]]) -> bool:
    """True if evaluation is the last mode, by line, that a called module was given."""
    module = dotted_name(call.func)
    before = [one for one in modes if one[0] < call.lineno and one[1] == module]
    return bool(module) and bool(before) and max(before)[2]


def is_switched_off(line: int, module: ModuleMap) -> bool:
    """True if gradients are, or may be, off in the calls of a line of a module.

    A context or a decorator that nothing is known of may switch them off.
    """
    return line in _lines_switched_off(module)


@once_per_module
def _lines_switched_off(module: ModuleMap) -> frozenset[int]:
    """Return the lines of the calls in a module where gradients are, or may be, off."""
    found = set()
    waiting: list[tuple[ast.AST, bool]] = [(module.tree, False)]
    while waiting:
        node, off = waiting.pop()
        if isinstance(node, ast.Call) and off:
            found.add(node.lineno)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            off = any(
                _may_switch(one, module, UNSWITCHING_DECORATORS) for one in node.decorator_list
            )
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            items = [item.context_expr for item in node.items]
            off = off or any(_may_switch(one, module, UNSWITCHING_CONTEXTS) for one in items)
        waiting.extend((child, off) for child in ast.iter_child_nodes(node))
    return frozenset(found)


def _may_switch(context: ast.expr, module: ModuleMap, plain: frozenset[str]) -> bool:
    return opens(context, module, GRADIENTS_OFF) or not opens(context, module, plain)
