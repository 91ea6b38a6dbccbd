"""Records the calls of a function while it is interpreted, for code that follows calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.analysis import EVERY_FUNCTION, SeenCall
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method, torch_kind
from flake8_torchperf.values.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    Closure,
    External,
    Function,
    Instance,
    Mapping_,
    Partial,
    Returning,
    Scalar,
    Sequence,
    Union,
    UnknownValue,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments

# Libraries that run no function of the project except those that they are passed.
KNOWN_LIBRARIES = frozenset(("torch", "builtins", "numpy", *sys.stdlib_module_names))
# Functions of torch that call the modules that they are passed, not only functions.
CALLING_MODULES = ("torch.utils.checkpoint.checkpoint", "torch.func.functional_call")
MAKE_GRAPHED = "torch.cuda.make_graphed_callables"
COMPILE = "torch.compile"
# The mode in which `torch.compile` records CUDA graphs.
RECORDING_MODE = "reduce-overhead"


def note(
    target: Function | Closure | None,
    node: ast.AST,
    given: dict[str, Value],
    ctx: Context,
    into: str = "",
) -> None:
    """Note a call, if sites are recorded: only then is the function itself interpreted."""
    if ctx.analysis.log is not None and ctx.sink is not None:
        ctx.analysis.log.append(SeenCall(ctx.function, node, target, given, into))


def note_outward(callee: Value, arguments: Arguments, ctx: Context) -> None:
    """Note the functions that a call passes to code outside the project or to unknown code."""
    if ctx.analysis.log is None or ctx.sink is None:
        return
    if _leads_somewhere(callee, ctx):
        return
    name = callee.name if isinstance(callee, External) else ""
    graphs = _records_graphs(name, arguments)
    modules = graphs or name in CALLING_MODULES
    for argument in arguments.all():
        for target in _callables(argument.value, ctx, modules=modules):
            note(target, arguments.node, {}, ctx, name if graphs else "")
    told = isinstance(callee, Instance) or any(_holds_tensor(a.value) for a in arguments.all())
    if told and _is_unclear(callee):
        note(None, arguments.node, {}, ctx)


def note_unclear(callee: Value, arguments: Arguments, ctx: Context) -> None:
    """Note what a call of an unknown value passes, for functions that it is known to run."""
    analysis = ctx.analysis
    is_added = isinstance(callee, BoundMethod) and isinstance(callee.owner, Function)
    unknown = callee is UNKNOWN or is_added  # a decorator gives a function its own methods
    if unknown and analysis.watched == EVERY_FUNCTION and ctx.sink is not None:
        line = ctx.module.name, arguments.node.lineno
        analysis.unclear.setdefault(line, {})[arguments.node] = arguments


def _records_graphs(name: str, arguments: Arguments) -> bool:
    if name == MAKE_GRAPHED:
        return True
    mode = arguments.keywords.get("mode")
    return (
        name == COMPILE
        and mode is not None
        and isinstance(mode.value, Scalar)
        and mode.value.value == RECORDING_MODE
    )


def _leads_somewhere(callee: Value, ctx: Context) -> bool:
    """True if the call leads to a function of the project, which notes the call itself."""
    match callee:
        case Function() | Closure() | ClassValue() | Partial():
            return True
        case Instance(info=info) if info is not None:
            return any(find_method(info, n, ctx.analysis) for n in ("forward", "__call__"))
        case Union(options=options):
            return any(_leads_somewhere(option, ctx) for option in options)
    return False


def _is_unclear(callee: Value) -> bool:
    """True if the callee is unknown, or belongs to a library that may wait."""
    match callee:
        case UnknownValue() | Returning():
            return True
        case External(name=name):
            return name.partition(".")[0] not in KNOWN_LIBRARIES
        case Instance(name=name, info=info):
            return info is not None or not name.startswith("torch.")
        case BoundMethod(owner=Instance(name=name)):
            return not name.startswith("torch.")
    return False


def _callables(value: Value, ctx: Context, *, modules: bool) -> Iterator[Function | Closure]:
    """Yield the functions of the project that a call of the value may run."""
    match value:
        case Function() | Closure():
            yield value
        case Partial(callee=callee):
            yield from _callables(callee, ctx, modules=modules)
        case Sequence(items=items) if items is not None and modules:
            for item in items:
                yield from _callables(item, ctx, modules=modules)
        case Instance(info=info) if info is not None and modules:
            if torch_kind(info, ctx.analysis) == "module":
                method = find_method(info, "forward", ctx.analysis)
                if method is not None:
                    yield Function(method.info, method.key, value)


def _holds_tensor(value: Value) -> bool:
    match value:
        case Sequence(element=element, items=items):
            return any(map(_holds_tensor, (element,) if items is None else items))
        case Mapping_():
            return _holds_tensor(value.any_value())
    return tensor_of(value) is not None
