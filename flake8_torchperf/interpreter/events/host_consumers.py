"""Values passed to code that works on the host: other libraries, queues, files."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.host_names import PACKING
from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.events.guards import GIVEN_AWAY
from flake8_torchperf.syntax.names import given_to
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.values import UNKNOWN, External, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env

# Libraries whose functions take tensors on a device, or never get any.
OURS = (
    "torch",
    "builtins",
    "numpy",
    "math",
    "cmath",
    "operator",
    "functools",
    "itertools",
    "collections",
    "copy",
    "logging",
    "warnings",
    "typing",
)
# Functions of torch that need an argument on the host: torch/nn/utils/rnn.py ("lengths ... must
# be on the CPU"), torch/random.py and torch/cuda/random.py ("new_state (torch.ByteTensor)").
TAKING_HOST = frozenset((
    PACKING, "torch.set_rng_state", "torch.random.set_rng_state",
    "torch.cuda.set_rng_state", "torch.cuda.random.set_rng_state",
))  # fmt: skip
# Methods that pass their argument to another thread, another process or a file.
SENDING = frozenset((
    "put", "put_nowait", "send", "write", "writerow", "writelines",
))  # fmt: skip
# Methods of a tokenizer that make text of numbers.
DECODING = frozenset(("decode", "batch_decode"))


def for_arguments(callee: Value, node: ast.Call, ctx: Context) -> Context:
    """Return the context for a call's arguments, marked if the callee needs them on the host.

    numpy's functions copy a tensor themselves, which is reported separately. A comprehension among
    the arguments is no loop around the call.
    """
    if ctx.sink is None:
        return ctx
    if isinstance(callee, External) and "pil" in callee.name.rpartition(".")[2].split("_"):
        return ctx.mark(GIVEN_AWAY).but(given=0)  # images for people, one by one
    sent = callee is UNKNOWN and isinstance(node.func, ast.Attribute) and _sends(node.func)
    if sent or _takes_host(callee) or _wants_tensors(node.keywords):
        return ctx.mark(GIVEN_AWAY).but(given=len(ctx.loops))
    return ctx.unmark(GIVEN_AWAY) if GIVEN_AWAY in ctx.traits else ctx


def _sends(method: ast.Attribute) -> bool:
    """True for ``queue.put(x)`` and ``self.tokenizer.decode(ids)``."""
    if method.attr in DECODING:
        return "tokenizer" in (path_of(method.value) or "").lower()
    return method.attr in SENDING


def _wants_tensors(keywords: list[ast.keyword]) -> bool:
    return bool(keywords) and any(k.arg == "return_tensors" for k in keywords)


def _takes_host(callee: Value) -> bool:
    return isinstance(callee, External) and (
        callee.name.partition(".")[0] not in OURS or callee.name in TAKING_HOST
    )


def handed_on(name: str, env: Env, ctx: Context) -> bool:
    """True if the value of a name, or a part of it, is passed to a function of another library."""
    if ctx.node is None:
        return False
    silent = ctx.silent()
    rows, given = _rows(ctx.node), _given(ctx.node)
    callees: dict[str, ast.expr] = {}
    for one in (name, *rows.get(name, ())):
        callees |= given.get(one, {})
    looked_at = list(callees.values())[:MAX_CALLEES]
    return any(_takes_host(evaluate(callee, env, silent)) for callee in looked_at)


# The most callees that are looked at for one name.
MAX_CALLEES = 20


@once
def _rows(function: ast.AST) -> dict[str, tuple[str, ...]]:
    """Return the names that loops bind, by the names that they iterate over."""
    found: dict[str, dict[str, None]] = {}
    for loop in walk([function]):
        if isinstance(loop, (ast.For, ast.comprehension)):
            bound = dict.fromkeys(_names(loop.target))
            for name in _names(loop.iter):
                found.setdefault(name, {}).update(bound)
    return {name: tuple(bound) for name, bound in found.items()}


@once
def _given(function: ast.AST) -> dict[str, dict[str, ast.expr]]:
    """Return the functions that each name, or an item of it, is passed to, by the callee's text."""
    found: dict[str, dict[str, ast.expr]] = {}
    for call in walk([function]):
        if isinstance(call, ast.Call) and isinstance(call.func, (ast.Name, ast.Attribute)):
            for one in given_to(call):
                part = one.value if isinstance(one, ast.Subscript) else one
                if isinstance(part, ast.Name):
                    found.setdefault(part.id, {}).setdefault(ast.unparse(call.func), call.func)
    return found


def _names(node: ast.expr) -> list[str]:
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
