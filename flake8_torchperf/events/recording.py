"""Recording of sites: all sites that the interpreter sees are made here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.heat import Cause, Level
from flake8_torchperf.absint.domain.site import Loop, Site, SiteKind
from flake8_torchperf.absint.domain.values import BESIDE_HOST, NDArray, Tensor, Value, tensor_of
from flake8_torchperf.absint.engine.caches import Cache
from flake8_torchperf.absint.inference.parameters import literal_default
from flake8_torchperf.hotness.branch_frequency import (
    EXCEPT,
    FALLBACK,
    GIVEN_AWAY,
    HOST_ONLY,
    LATER,
)
from flake8_torchperf.hotness.loop_kinds import around_steps
from flake8_torchperf.hotness.own_heat import waits_on_purpose
from flake8_torchperf.hotness.place_heat import costs_without_device, heat, over_elements
from flake8_torchperf.intent.collective_metadata import exchanged
from flake8_torchperf.intent.explicit_copies import (
    AS_ARRAY,
    AS_DECLARED,
    AS_NAMED,
    made_arrays,
    made_lists,
)
from flake8_torchperf.intent.host_names import given_to_host, moved_later, names_on_way, root
from flake8_torchperf.intent.number_or_tensor import NumberOrTensor
from flake8_torchperf.syntax.traversal import once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.absint.engine.analysis import Context, LoopPlace
    from flake8_torchperf.project.module_index import FunctionNode


# Sites that copy a tensor to the host, or take it apart, for another reader.
HANDING_OVER = (SiteKind.TRANSFER, SiteKind.TENSOR_ITERATION)
# Sites that need a size that only the device knows.
SIZED = (SiteKind.DYNAMIC_SHAPE, SiteKind.MASK_INDEX)
# Sites that read a value or a size by a call.
READING = (
    SiteKind.HOST_READ, SiteKind.TRANSFER, SiteKind.HOST_COMPARISON, SiteKind.SYNCHRONIZE,
    SiteKind.TORCH_CALL, *SIZED,
)  # fmt: skip
# Sites that cost nothing if the tensor lies on the host.
FROM_DEVICE = (
    *READING, SiteKind.NUMBER_USE, SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS,
    SiteKind.HOST_REDUCTION, SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH, SiteKind.FORMAT,
    SiteKind.LIST_INDEX, SiteKind.NUMBER_ASSIGNED,
)  # fmt: skip
# Sites that end a graph if they read an array.
OF_ARRAYS = (SiteKind.HOST_READ, SiteKind.NUMBER_USE, SiteKind.TRANSFER)
# The trait of a site that ends the graph of compiled code, but is free or intended anywhere else:
# compiled code holds tensors on the host and arrays in its graph like any other value.
COMPILER_ONLY = "compiler-only"
# Sites at which the host waits, whatever the operand holds.
WAITING = (SiteKind.SYNCHRONIZE, SiteKind.TORCH_CALL, *SIZED)


def emit(
    ctx: Context,
    kind: SiteKind,
    operation: str,
    node: ast.AST,
    operand: Value | None = None,
    *,
    operand_node: ast.AST | None = None,
    traits: Iterable[str] = (),
    covers: tuple[ast.AST, ...] = (),
) -> None:
    """Record a site; do nothing if the context is silent."""
    if kind in WAITING:
        ctx.budget.waits += 1
        ctx.budget.decided += 1
    sink = ctx.sink
    if sink is None:
        return
    if kind is SiteKind.TRANSFER and "to-host" in traits and _made_array(ctx, node, operand):
        traits = (*traits, AS_ARRAY)
    if kind in NUMBERS and not ctx.loops and _declares(ctx.node, NAMED, OF_NUMBERS):
        traits = (*traits, AS_DECLARED)
    if kind in READING and _is_returned(ctx.node, node):
        traits = (*traits, AS_NAMED)
    if "vmap" in ctx.traits and not names_rows(operand_node or node, ctx):
        ctx = ctx.unmark("vmap")
    why = _for_a_purpose(ctx, kind, operation, node, traits)
    if why is None:
        why = _wanted(ctx, kind, operation, node, operand, operand_node, traits)
        reads = kind in FROM_DEVICE and "to-device" not in traits
        if ctx.compiled and reads and (why is not None or not waits(operand)):
            traits, why = (*traits, COMPILER_ONLY), None
    if why is not None:
        ctx = ctx.demote(why)
    sink.append(
        Site(
            kind,
            operation,
            node,
            operand,
            heat(ctx, kind, operation),
            tuple(_loop(place) for place in ctx.loops),
            ctx.function,
            ctx.traits.union(traits),
            covers,
            operand_node,
            _compiled(kind, ctx, operation),
        )
    )


# Each by the identity of the function around a site.
MADE_ARRAYS: Cache[int, frozenset[int]] = Cache("copies made to be arrays")
MADE_LISTS: Cache[int, frozenset[int]] = Cache("copies made to be lists")
EITHER: Cache[int, NumberOrTensor] = Cache("reads of what may be a number")
MOVED_LATER: Cache[int, dict[str, int]] = Cache("names moved later")
EXCHANGED: Cache[int, frozenset[str]] = Cache("numbers that processes exchange")
GIVEN_TO_HOST: Cache[int, frozenset[str]] = Cache("names given to the host's code")


def _made_array(ctx: Context, node: ast.AST, operand: Value | None) -> bool:
    """True if a copy becomes an array of more than one number."""
    if ctx.node is None or (isinstance(operand, Tensor) and operand.scalar is True):
        return False
    function, module = ctx.node, ctx.module
    made = MADE_ARRAYS.kept(
        ctx.analysis,
        id(function),
        lambda: made_arrays(module.nodes(function), module.qualify),
    )
    return id(node) in made


def _made_list(ctx: Context, node: ast.AST) -> bool:
    """True if a list is made of the value, which waits anyway.

    False in a function that runs every step, where both waits are reported.
    """
    if ctx.node is None or ctx.base.level is Level.STEP:
        return False
    nodes = ctx.module.nodes(ctx.node)
    return id(node) in MADE_LISTS.kept(ctx.analysis, id(ctx.node), lambda: made_lists(nodes))


def _either(function: FunctionNode, ctx: Context) -> NumberOrTensor:
    """Return the reads of a function that make a number of a tensor; cached."""
    return EITHER.kept(ctx.analysis, id(function), lambda: NumberOrTensor(function))


def _of_either(
    ctx: Context,
    kind: SiteKind,
    node: ast.AST,
    operand_node: ast.AST | None,
    traits: Iterable[str],
) -> bool:
    """True if the code tests that the value is a tensor before it makes a number or list of it.

    A parameter whose default is a number counts as well.
    """
    if ctx.node is None or ctx.loops or not isinstance(operand_node, ast.expr):
        return False
    if kind is not SiteKind.HOST_READ and (
        kind is not SiteKind.TRANSFER or "to-host" not in traits
    ):
        return False
    if _number_by_default(root(operand_node), ctx.node):
        return True
    return _either(ctx.node, ctx).made_a_number(node, ast.unparse(operand_node))


def _number_by_default(name: str, function: FunctionNode) -> bool:
    """True for a parameter whose default is a number: ``def f(x, dims=2)``."""
    default = literal_default(name, function)
    return default is not None and type(default.value) in (int, float)


# Copies that are useful without their result: they write into something, or a module moves itself.
WRITING = ("to", "cuda", "copy_", "index_put_")


def _for_a_purpose(
    ctx: Context, kind: SiteKind, operation: str, node: ast.AST, traits: Iterable[str]
) -> Cause | None:
    """Return the reason that a site here runs once, or serves another reader; None if none."""
    if node is ctx.unused and "to-device" in traits and operation not in WRITING:
        return Cause.START_UP
    if kind is SiteKind.FORMAT and not ctx.traits.isdisjoint((EXCEPT, LATER)):
        return Cause.ERROR_TEXT
    if kind in HANDING_OVER and GIVEN_AWAY in ctx.traits and not ctx.given:
        return Cause.HANDED_OVER
    if "to-host" in traits and ctx.loops and around_steps(ctx.loops[-1].node):
        return Cause.OUTSIDE_STEPS
    if "to-host" in traits and not ctx.loops and _makes_text(ctx.node):
        return Cause.TEXT_MADE
    if kind is SiteKind.TRANSFER and FALLBACK in ctx.traits:
        return Cause.FALLBACK
    return None


def _makes_text(function: FunctionNode | None) -> bool:
    """True for a function declared to return text, or text with scores: ``tuple[str, float]``."""
    return _declares(function, frozenset(("str",)), TEXTUAL)


def _declares(function: FunctionNode | None, some: frozenset[str], only: frozenset[str]) -> bool:
    """True if the declared result names one of ``some``, and no type outside ``only``."""
    if function is None or function.returns is None:
        return False
    told = [n for n in ast.walk(function.returns) if isinstance(n, (ast.Name, ast.Attribute))]
    names = {n.id if isinstance(n, ast.Name) else n.attr for n in told}
    return not names.isdisjoint(some) and names <= only


# The parts of an annotation of text with its scores; the keys of a dict are no text.
TEXTUAL = frozenset(("str", "list", "List", "tuple", "Tuple", "float", "int", "Optional", "typing"))
# Sites that read one number, and the parts of an annotation of a result made of numbers.
NUMBERS = (SiteKind.HOST_READ, SiteKind.HOST_COMPARISON)
NAMED = frozenset(("dict", "Dict", "Mapping"))
OF_NUMBERS = TEXTUAL | NAMED | {"bool", "Sequence", "Union"}


def _wanted(
    ctx: Context,
    kind: SiteKind,
    operation: str,
    node: ast.AST,
    operand: Value | None,
    operand_node: ast.AST | None,
    traits: Iterable[str],
) -> Cause | None:
    """Return the reason that a wait here is intended, or takes place on the host; None if none."""
    if kind in READING and not ctx.loops and isinstance(node, ast.Call) and _wraps(ctx, node):
        return Cause.OPERATION
    if isinstance(operand, Tensor) and operand.device == BESIDE_HOST:
        return Cause.BESIDE_HOST
    if kind in SIZED and _made_list(ctx, node):
        return Cause.LIST_MADE
    placed = isinstance(operand, Tensor) and operand.device == "device"
    if not placed and "to-device" not in traits and _lies_on_host(ctx, kind, node, operand_node):
        return Cause.HOST_NAME
    elements = over_elements(ctx, kind, operation)
    if "to-device" in traits:
        if _made_for_ranks(ctx, node):
            return Cause.EXCHANGED
    elif not elements and _told_by_ranks(ctx, kind, node, operand_node):
        return Cause.EXCHANGED
    if _of_either(ctx, kind, node, operand_node, traits):
        return Cause.EITHER
    if kind is SiteKind.HOST_COMPARISON and not ctx.loops and _answers(ctx, node):
        return Cause.ANSWER
    if HOST_ONLY in traits:
        return Cause.HOST_ONLY
    if kind is SiteKind.SYNCHRONIZE and waits_on_purpose(ctx.node, ctx.base):
        return Cause.MEASURING
    return None


def _lies_on_host(
    ctx: Context, kind: SiteKind, node: ast.AST, operand_node: ast.AST | None
) -> bool:
    """True if the value lies on the host, by its name or because the function passes it to numpy.

    A name that the function moves to a device later lies on the host before.
    """
    if kind not in FROM_DEVICE:
        return False
    read = [operand_node if operand_node is not None else node]
    if isinstance(node, ast.Subscript):
        read += [node.value, node.slice]
    table = ctx.analysis.conventions
    if any(table.says("variable", name, "on-host") for part in read for name in names_on_way(part)):
        return True
    if ctx.node is None:
        return False
    given = _given_to_host(ctx.node, ctx)
    if given and any(root(part) in given for part in read):
        return True
    moved = _moved_later(ctx.node, ctx)
    return bool(moved) and any(
        isinstance(part, ast.expr) and part.lineno < moved.get(root(part), 0) for part in read
    )


def _moved_later(function: FunctionNode, ctx: Context) -> dict[str, int]:
    """Return the names that a function moves to a device, with the lines; cached."""
    return MOVED_LATER.kept(
        ctx.analysis, id(function), lambda: moved_later(ctx.module.nodes(function))
    )


def _exchanged(function: FunctionNode, ctx: Context) -> frozenset[str]:
    """Return the names of the values that processes exchange in a function; cached."""
    qualify = ctx.module.qualify
    return EXCHANGED.kept(
        ctx.analysis, id(function), lambda: exchanged(ctx.module.nodes(function), qualify)
    )


def _made_for_ranks(ctx: Context, node: ast.AST) -> bool:
    """True for ``size = torch.tensor([n], device=device)`` if processes exchange ``size``."""
    names = frozenset() if ctx.node is None else _exchanged(ctx.node, ctx)
    return ctx.node is not None and any(
        _whole(assign.value) is node and isinstance(target, ast.Name) and target.id in names
        for assign in (ctx.module.nodes(ctx.node).of(ast.Assign) if names else ())
        for target in assign.targets
    )


def _told_by_ranks(
    ctx: Context, kind: SiteKind, node: ast.AST, operand_node: ast.AST | None
) -> bool:
    """True if the value read is one that the processes of a group exchange."""
    if ctx.node is None or kind not in FROM_DEVICE:
        return False
    names = _exchanged(ctx.node, ctx)
    read = operand_node if operand_node is not None else node
    return bool(names) and any(
        isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(read)
    )


def _given_to_host(function: FunctionNode, ctx: Context) -> frozenset[str]:
    """Return the names that a function passes to code that works on the host; cached."""
    return GIVEN_TO_HOST.kept(
        ctx.analysis,
        id(function),
        lambda: given_to_host(
            ctx.module.nodes(function), ctx.module.qualify, ctx.analysis.table.method_names()
        ),
    )


def _is_returned(function: FunctionNode | None, node: ast.AST) -> bool:
    """True if the call is the result of a function registered as an operation's implementation.

    ``@linalg.inv.register`` above ``def _(x): return torch.linalg.inv(x)``.
    """
    if function is None or not isinstance(node, ast.Call):
        return False
    made = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    if not any(isinstance(one, ast.Attribute) and one.attr == "register" for one in made):
        return False
    return _hands_back(function, node)


def _answers(ctx: Context, node: ast.AST) -> bool:
    """True for ``return torch.equal(a, b)``: the function's callers ask for a Python bool.

    In a function that is known to run in each step, that is no excuse.
    """
    if ctx.node is None or ctx.base.level is Level.STEP:
        return False
    return _hands_back(ctx.node, node)


def _hands_back(function: FunctionNode, node: ast.AST) -> bool:
    """True if the function returns the value of this node, or a part of it."""
    return any(isinstance(s, ast.Return) and _whole(s.value) is node for s in ast.walk(function))


def _whole(value: ast.expr | None) -> ast.expr | None:
    """Return ``solve(a, b)`` for ``solve(a, b).solution`` and ``solve(a, b)[0]``."""
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        value = value.value
    return value


def _wraps(ctx: Context, node: ast.Call) -> bool:
    """True for ``def unique(x): return torch.unique(x)``: its callers ask for the operation."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            same = ctx.function.rpartition(".")[2].strip("_") == name.strip("_")
            return same and ctx.node is not None and _hands_back(ctx.node, node)
    return False


def waits(operand: Value | None) -> bool:
    """True if reading this may wait for a device; False for an array or a tensor on the host."""
    tensor = None if operand is None else tensor_of(operand)
    if tensor is None:
        return not isinstance(operand, NDArray)
    return tensor.device != "host"


def note_work(tensor: Tensor, node: ast.AST, ctx: Context) -> None:
    """Note that an operator queues work, unless it computes on the host."""
    if tensor.device != "host":
        ctx.analysis.queued[id(node)] = node


def tells(operand: Value, ctx: Context) -> bool:
    """True if a read is worth reporting: it waits, or it ends a graph."""
    return bool(ctx.compiled) or waits(operand)


def emit_read(
    ctx: Context,
    kind: SiteKind,
    operation: str,
    node: ast.AST,
    operand: Value,
    *,
    operand_node: ast.AST | None = None,
    traits: Iterable[str] = (),
) -> Tensor | None:
    """Record a site that reads ``operand`` if it is a tensor that may live on an accelerator.

    Return the tensor read; None if there is nothing to read or reading is free.
    """
    tensor = tensor_of(operand)
    if tensor is None:
        looked_at(operand, operation, node, ctx)
        if _array_ends_graph(operand, kind, ctx):
            emit(ctx, kind, operation, node, operand, operand_node=operand_node, traits=traits)
        return None
    if tensor.device == "host" and not costs_without_device(ctx, kind, operation, tensor):
        if kind is not SiteKind.TENSOR_ITERATION:
            early(ctx, operation, node, tensor, operand_node)
            if ctx.compiled and not (kind is SiteKind.NUMBER_USE and tensor.origin == "python"):
                emit(ctx, kind, operation, node, tensor, operand_node=operand_node, traits=traits)
        return None
    if kind is not SiteKind.TENSOR_ITERATION and "non-blocking" not in traits:
        ctx.budget.waits += 1
        ctx.budget.decided += 1
    emit(ctx, kind, operation, node, tensor, operand_node=operand_node, traits=traits)
    return tensor


def _array_ends_graph(operand: Value, kind: SiteKind, ctx: Context) -> bool:
    """True if an array is read in compiled code, where it is a tensor of the graph.

    A number that a function of numpy computes from Python's numbers is known when tracing, so it
    ends the graph only as a condition (torch 2.13, as run: tests/lint/test_compiled_host.py).
    """
    if not ctx.compiled or not isinstance(operand, NDArray):
        return False
    return kind is SiteKind.BRANCH or (kind in OF_ARRAYS and not operand.of_numbers)


def early(
    ctx: Context, operation: str, node: ast.AST, tensor: Tensor, operand_node: ast.AST | None
) -> None:
    """Record that a copy to the host is used, if nothing has waited since it was queued."""
    if not tensor.arrives or tensor.arrives != ctx.budget.waits:
        return
    if operation == "numpy" and ctx.node is not None and _waits_somewhere(ctx.node):
        return  # the array shares the memory: it is read where something looks at it
    emit(ctx, SiteKind.RACE, operation, node, tensor, operand_node=operand_node)


def looked_at(value: Value, operation: str, node: ast.AST, ctx: Context) -> None:
    """Record the read of an array that may share the memory of a copy that has not arrived."""
    if not isinstance(value, NDArray) or value.late is None or ctx.node is None:
        return
    if _waits_somewhere(ctx.node):
        early(ctx, operation, node, value.late, node)


@once
def _waits_somewhere(node: ast.AST) -> bool:
    """True if a function mentions ``synchronize``, ``wait`` or ``query`` as an attribute."""
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in ("synchronize", "wait", "query")
        for inner in ast.walk(node)
    )


def names_rows(node: ast.AST, ctx: Context) -> bool:
    """True if an expression uses a value that stands for a whole batch under ``vmap``."""
    code = ctx.analysis.compiled
    if code is None or not code.rows:
        return False
    from flake8_torchperf.torch_compile.vmap import named

    return any(id(name) in code.rows for name in named(node, ctx.module.qualify))


def _compiled(kind: SiteKind, ctx: Context, operation: str) -> str:
    """Return the words for the compiled or transformed code that the site stands in."""
    if operation == "over-compiled":
        return "transforms a compiled function"
    if operation == "compiled-inside":
        return "calls a compiled function in a transform"
    if operation == "row-by-row":
        return "runs row by row under vmap"
    if "vmap" in ctx.traits and kind not in (SiteKind.GRAPH_BREAK, SiteKind.RECOMPILE):
        return "cannot run under vmap"
    if "fullgraph" in ctx.traits and kind is not SiteKind.RECOMPILE:
        return f"{ctx.compiled}, an error under fullgraph"
    return ctx.compiled


def _loop(place: LoopPlace) -> Loop:
    return Loop(0, place.kind, "", place.node)
