"""Objects of unknown class that are modules by their use: moved or put into a mode, and called.

A tensor is moved as well, but isn't called; a processor is called, but isn't moved.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_moves import RETURNING_SELF
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.names import called_a_device, dotted_name
from flake8_torchperf.syntax.traversal import DEFINITIONS, children, inside, once
from flake8_torchperf.values.devices import BESIDE_HOST, is_host_name, names_device
from flake8_torchperf.values.values import UNKNOWN, Instance, Value, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.place import Context, Frame
    from flake8_torchperf.values.arguments import Arguments

# The fact of a module that only its use shows.
BY_USE = "by its use"
MODULE = Instance("torch.nn.Module", facts=frozenset((BY_USE,)))
# Methods that move to an accelerator.
TO_DEVICE = frozenset(("cuda", "xpu", "hpu", "npu"))
# Where a module lies.
ON_HOST, ELSEWHERE = frozenset(("host",)), frozenset(("elsewhere",))


def module_called(func: ast.expr, arguments: Arguments, ctx: Context) -> Value:
    """Return a module for an object of unknown class that is called with a tensor.

    UNKNOWN if nothing moves the object or puts it into a mode, and if it is moved to the host.
    """
    if not _takes_tensor(arguments):
        return UNKNOWN
    if isinstance(func, ast.Call):  # `model.to(device)(x)`
        return MODULE if _told(func) == ELSEWHERE else UNKNOWN
    path = dotted_name(func)
    if not path:
        return UNKNOWN
    told = {one for uses in _places(path, ctx) for one in uses.get(path, ())}
    return MODULE if told == ELSEWHERE else UNKNOWN


def _takes_tensor(arguments: Arguments) -> bool:
    """True if an argument is a tensor, and not all that are lie on the host."""
    tensors = [tensor for one in arguments.all() if (tensor := tensor_of(one.value)) is not None]
    return any(tensor.device not in ("host", BESIDE_HOST) for tensor in tensors)


def _places(path: str, ctx: Context) -> Iterator[dict[str, frozenset[str]]]:
    """Yield the uses of objects in the code that has the same one under this name."""
    head = path.partition(".")[0]
    if ctx.owner is not None and head == ctx.self_name:
        for base in lineage(ctx.owner, ctx.analysis):
            # A base of another module would be read whole, for each model that it has.
            if not isinstance(base, str) and base.module is ctx.module:
                for method in base.functions:
                    yield _uses(method.node)
        return
    frame: Frame | None = ctx.frame
    while frame is not None:
        if frame.info is not None:
            node = frame.info.node
            yield _uses(node)
            if head in _names(node):
                return
        frame = frame.outer
    level = ctx.module.level
    if level is not None:
        yield _uses_outside(level)


@once
def _names(function: ast.AST) -> frozenset[str]:
    """Return the names that a function binds, its parameters among them."""
    return bound_in(function).union([one.arg for one in inside(function, ast.arg)])


# The nodes that `_collected` looks at.
_MOVING = (ast.Call, ast.Assign, ast.AnnAssign, ast.NamedExpr)


@once
def _uses(code: ast.AST) -> dict[str, frozenset[str]]:
    """Return where a piece of code moves each object, by its name, and which it gives a mode."""
    return _collected([one for kind in _MOVING for one in inside(code, kind)])


@once
def _uses_outside(module: ast.AST) -> dict[str, frozenset[str]]:
    """Return the same for the statements of a module outside its functions and classes."""
    found: list[ast.AST] = []
    waiting = [module]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, DEFINITIONS):
            waiting += children(node)
    return _collected(found)


def _collected(nodes: Iterable[ast.AST]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner)):
                told, places = _of_call(node), [_object(owner)]
            case ast.Assign(targets=targets, value=ast.Call() as value):
                told, places = _told(value), targets
            case (
                ast.AnnAssign(target=target, value=ast.Call() as value)
                | ast.NamedExpr(target=target, value=ast.Call() as value)
            ):
                told, places = _told(value), [target]
            case _:
                continue
        for path in filter(None, map(dotted_name, places)) if told else ():
            found[path] = found.get(path, frozenset()) | told
    return found


def _told(call: ast.expr) -> frozenset[str]:
    """Return where ``Net().eval().to(device)`` moves the object that it returns."""
    found: frozenset[str] = frozenset()
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if call.func.attr not in RETURNING_SELF:
            break
        found |= _of_call(call)
        call = call.func.value
    return found


def _object(node: ast.expr) -> ast.expr:
    """Return ``model`` for the ``model.eval()`` of ``model.eval().to(device)``."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in RETURNING_SELF
    ):
        node = node.func.value
    return node


def _of_call(call: ast.Call) -> frozenset[str]:
    """Return where a call moves its owner; a mode shows a module that may lie anywhere."""
    match call:
        case ast.Call(func=ast.Attribute(attr="eval"), args=[], keywords=[]):
            return ELSEWHERE
        case ast.Call(func=ast.Attribute(attr="train"), args=[] | [ast.Constant()]):
            return ELSEWHERE
        case ast.Call(func=ast.Attribute(attr="cpu"), args=[]):
            return ON_HOST
        case ast.Call(func=ast.Attribute(attr=name)) if name in TO_DEVICE:
            return ELSEWHERE
        case (
            ast.Call(func=ast.Attribute(attr="to"), args=[where, *_])
            | ast.Call(
                func=ast.Attribute(attr="to"), keywords=[ast.keyword(arg="device", value=where)]
            )
        ):
            return _destination(where)
    return frozenset()


def _destination(where: ast.expr) -> frozenset[str]:
    match where:
        case (
            ast.Call(args=[ast.Constant(value=str() as text), *_])
            | ast.Constant(value=str() as text)
        ):
            if not names_device(text):
                return frozenset()
            return ON_HOST if is_host_name(text) else ELSEWHERE
    return ELSEWHERE if called_a_device(where) else frozenset()
