"""The origin of host tensors' memory, and the cost of copying them to a device."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.dropped_flags import drops_flag
from flake8_torchperf.idioms.first_call import written_above
from flake8_torchperf.idioms.repeated_moves import repeats_move
from flake8_torchperf.interpreter.events.recording import early, emit
from flake8_torchperf.interpreter.inference.argument_writes import may_fill
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.names import called_name, given_to
from flake8_torchperf.syntax.traversal import once, plain_names, walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.devices import BESIDE_HOST, SOMETIMES, names_device
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.host_data import (
    CHOSEN,
    EMPTY,
    FACTORY,
    NAMED,
    PAGEABLE,
    PINNED,
    PYTHON,
    STRIDED,
    common_origin,
)
from flake8_torchperf.values.provenance import Strength
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    UNKNOWN,
    Device,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
    weaken,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.knowledge.table import Op
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env

# The traits of sites in a `with device:` block, where factories make their tensors there: of any
# device, and of one that is named and no CPU.
ELSEWHERE, ACCELERATED = "default-device", "default-accelerator"
DEFAULTS = ("set_default_device", "set_default_tensor_type")


def factory_device(ctx: Context) -> str:
    """Return the place where a factory without ``device=`` puts its tensor.

    That is the host, unless the program sets another default.
    """
    if ACCELERATED in ctx.traits:
        return "device"
    if ELSEWHERE in ctx.traits:
        return CHOSEN
    return _default_of(ctx.module)


@once_per_module
def _default_of(module: ModuleMap) -> str:
    """Return the default device that a module sets: "device" if it names one, else CHOSEN."""
    if not any(module.says(name) for name in DEFAULTS):
        return "host"
    calls = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and called_name(node.func) in DEFAULTS
    ]
    if not calls:
        return "host"
    return "device" if all(map(names_accelerator, calls)) else CHOSEN


def names_accelerator(node: ast.expr) -> bool:
    """True for ``torch.device("cuda")``, and for another call with such a literal."""
    match node:
        case ast.Call(args=[ast.Constant(value=str(text)), *_]):
            return names_device(text) and text != "cpu"
        case ast.Call(args=[ast.Call() as made]):
            return names_accelerator(made)
    return False


def computed(value: Tensor, op: Op, tensors: list[Tensor], arguments: Arguments) -> Tensor:
    """Return the result of an operation; if it is on the host, with its origin and memory."""
    if value.device == BESIDE_HOST and _all_of_numbers(tensors):
        return replace(value, origin=PYTHON)
    if value.device != "host":
        return value
    if op.factory:
        return of_factory(value, arguments)
    if not tensors:
        return replace(value, origin=PYTHON)  # of numbers alone
    if op.like:
        return replace(value, origin=FACTORY, memory=PAGEABLE)
    shared = op.view or op.in_place
    memory = tensors[0].memory if shared else PAGEABLE
    arrives = tensors[0].arrives if op.view else 0
    origin = common_origin(tensors)
    if op.in_place and origin not in (FACTORY, CHOSEN):
        origin = ""  # a buffer on the host was filled, which the data needed anyway
    return replace(value, origin=origin, memory=memory, arrives=arrives)


def _all_of_numbers(tensors: list[Tensor]) -> bool:
    """True if an operation is given numbers alone, or tensors that torch made of numbers."""
    return all(tensor.origin == PYTHON for tensor in tensors)


def pieces(value: Value, op: Op, tensors: list[Tensor], arguments: Arguments) -> Value:
    """Return the pieces of ``torch.randperm(n).split(size)``, with the origin of the whole."""
    if not isinstance(value, Sequence) or not isinstance(value.element, Tensor):
        return value
    items = value.items
    if items is not None:
        items = tuple(
            computed(i, op, tensors, arguments) if isinstance(i, Tensor) else i for i in items
        )
    return replace(value, element=computed(value.element, op, tensors, arguments), items=items)


def of_factory(value: Tensor, arguments: Arguments) -> Tensor:
    """Return the tensor of a factory such as ``torch.zeros(n)``, with its origin and memory.

    If the call names a device or a generator, or pins the memory, the host was chosen on purpose.
    """
    chosen = allocated(arguments) == PINNED or any(
        name in arguments.keywords and not isinstance(arguments.keywords[name].value, NoneValue)
        for name in ("device", "generator", "out")
    )
    origin = CHOSEN if chosen else "" if arguments.open else FACTORY
    if origin and _holds_nothing(arguments):
        origin = EMPTY
    return replace(value, origin=origin, memory=allocated(arguments))


def _holds_nothing(arguments: Arguments) -> bool:
    """True for ``torch.empty(0)`` and ``torch.zeros((0, n))``, which have no elements."""
    match [argument.value for argument in arguments.positional]:
        case [Scalar(known=True, value=0)]:
            return True
        case [Sequence(items=sizes), *_] if sizes is not None:
            return any(isinstance(s, Scalar) and s.known and s.value == 0 for s in sizes)
    return False


def allocated(arguments: Arguments) -> str:
    """Return the memory that ``pin_memory=`` requests; "" if it is not known."""
    given = arguments.keywords.get("pin_memory")
    if given is None:
        return "" if arguments.open else PAGEABLE
    match given.value:
        case Scalar(kind="bool", value=True):
            return PINNED
        case Scalar(kind="bool", value=False):
            return PAGEABLE
    return ""


def to_device(
    tensor: Tensor,
    name: str,
    arguments: Arguments,
    owner: ast.expr | None,
    ctx: Context,
) -> None:
    """Record a copy from the host to a device."""
    if tensor.origin == EMPTY:
        return
    if _renewed_there(arguments.node, owner, ctx):
        ctx = ctx.demote(Cause.FIRST_CALL)
    elif _kept_there(arguments.node, owner, ctx):
        if ctx.compiled and ctx.self_name and _head(arguments.node.func) == ctx.self_name:
            emit(ctx, SiteKind.RECOMPILE, "moved", arguments.node, tensor, operand_node=owner)
            return
        ctx = ctx.demote(Cause.FIRST_CALL)
    if isinstance(owner, ast.Subscript) and _beside_its_index(owner, arguments.node):
        return
    queued = False if owner is None else not_waiting(arguments)
    traits = {"non-blocking"} if queued is not False else set()
    if tensor.memory and queued is not None:
        traits |= {PAGEABLE, STRIDED} if tensor.memory == STRIDED else {tensor.memory}
    other = tensor_of(arguments.value(0, "other"))
    if other is not None and other.reason.strength >= Strength.INFERRED:
        traits.add("as-another")
    where = arguments.keywords.get("device")
    named = where.value if where is not None else arguments.value(0, "device")
    if isinstance(named, Device) and named.sure:
        traits.add("device-object")
    _brought(tensor, name, arguments.node, owner, ctx, traits)


def fetched(
    source: Tensor,
    by: Tensor,
    operation: str,
    node: ast.AST,
    ctx: Context,
    traits: Iterable[str] = (),
) -> None:
    """Record a host tensor that an operation on ``by`` copies: ``x[0] = source``, ``x[source]``.

    The residence of ``by`` is often unknown. A tensor made of numbers lies on the host only because
    the code names no device. Any other host tensor lies there for a reason, which may apply to
    ``by`` as well. What some paths make on the host says so of nothing that they may make there,
    too.
    """
    on_host = source.device == "host" or source.origin == SOMETIMES
    if not on_host or by.device == "host" or source.origin == EMPTY or by.origin == SOMETIMES:
        return
    if by.device != "device" and source.origin not in NAMED and source.origin != SOMETIMES:
        source = weaken(source, Strength.ASSUMED)
    stated = {"by-stated"} if by.reason.strength >= Strength.STATED else set()
    _brought(source, operation, node, None, ctx, stated.union(traits))


def chosen_on_host(arguments: Arguments, tensors: list[Tensor], ctx: Context) -> None:
    """Record the copies of 0-d host tensors in ``torch.where(mask, x, torch.tensor(0.0))``."""
    by = next((t for t in tensors if t.device != "host"), None)
    for argument in arguments.all() if by is not None else ():
        given = tensor_of(argument.value)
        if by is not None and given is not None and given.scalar:
            fetched(given, by, "where", argument.node, ctx)


def _brought(
    tensor: Tensor,
    name: str,
    node: ast.AST,
    owner: ast.expr | None,
    ctx: Context,
    traits: set[str],
) -> None:
    """Record the site of a copy to a device, with traits for the data."""
    traits.add("to-device")
    if isinstance(node, ast.Call) and repeats_move(node, owner, [one.node for one in ctx.loops]):
        traits.add("repeated")
    if ctx.node is not None and drops_flag(ctx.node):
        traits.add("flag-dropped")
    if tensor.origin in NAMED:
        traits.add(f"from-{tensor.origin}")
    if tensor.memory == STRIDED:
        traits.add(STRIDED)
    if tensor.origin == PYTHON and tensor.scalar:
        traits.add("scalar")
    whole = owner.value if isinstance(owner, ast.Subscript) else owner
    if isinstance(whole, ast.Attribute) and _head(whole) == (ctx.self_name or None):
        traits.add("kept")
    emit(ctx, SiteKind.TRANSFER, name, node, tensor, operand_node=owner, traits=traits)


def _kept_there(node: ast.Call, owner: ast.expr | None, ctx: Context) -> bool:
    """True for ``self.alpha = self.alpha.to(x.device)``: only the first call moves anything.

    ``self.tables = [table.to(x.device) for table in self.tables]`` counts as well. Compiled code is
    compiled again in such a case, for the new device (torch 2.13, as run).
    """
    if owner is None or ctx.node is None:
        return False
    assignment = _assigning(ctx.node).get(id(node))
    if assignment is None:
        return False
    path = _moved(assignment.value, node, owner)
    if path is None or all(path_of(target) != path for target in assignment.targets):
        return False
    return path not in written_above(ctx.node).get(id(assignment), ())


def _renewed_there(node: ast.Call, owner: ast.expr | None, ctx: Context) -> bool:
    """True for ``self.grid[i].to(x.device)`` below ``self.grid[i] = make().to(x.device)``.

    What was made anew lies there already, in this call or in an earlier one.
    """
    if owner is None or ctx.node is None or _head(owner) != (ctx.self_name or None):
        return False
    where = [ast.unparse(argument) for argument in node.args]
    return any(
        made is not node
        and made.lineno < node.lineno
        and [ast.unparse(argument) for argument in made.args] == where
        for made in _renewals(ctx.node).get(ast.unparse(owner), ())
    )


@once
def _renewals(function: ast.AST) -> dict[str, list[ast.Call]]:
    """Return the moves whose result a statement assigns to an attribute or an item, by its text."""
    found: dict[str, list[ast.Call]] = {}
    for statement in walk([function]):
        match statement:
            case ast.Assign(
                targets=[ast.Attribute() | ast.Subscript() as target],
                value=ast.Call(func=ast.Attribute(attr="to")) as move,
            ):
                found.setdefault(ast.unparse(target), []).append(move)
    return found


@once
def _assigning(function: ast.AST) -> dict[int, ast.Assign]:
    """Return the assignments of each call that is the whole value, or every element of it."""
    return {
        id(value.elt if isinstance(value, ast.ListComp) else value): statement
        for statement in walk([function])
        if isinstance(statement, ast.Assign)
        for value in (statement.value,)
    }


def _moved(value: ast.expr, node: ast.Call, owner: ast.expr) -> str | None:
    """Return the attribute that ``value`` moves by the call ``node``, whole or item by item."""
    match value:
        case ast.Call() if value is node and isinstance(owner, ast.Attribute):
            return path_of(owner)
        case ast.ListComp(elt=elt, generators=[ast.comprehension(target=target, iter=source)]):
            each = elt is node and path_of(target) == path_of(owner)
            return path_of(source) if each and isinstance(source, ast.Attribute) else None
    return None


def _beside_its_index(owner: ast.Subscript, call: ast.Call) -> bool:
    """True for ``table[t].to(t.device)``: a host tensor cannot be indexed by a tensor on a device.

    aten/src/ATen/native/IndexingUtils.h: "indices should be either on cpu or on the same device".
    The bounds of a slice are numbers.
    """
    index = owner.slice.elts if isinstance(owner.slice, ast.Tuple) else [owner.slice]
    by = [one for one in index if not isinstance(one, ast.Slice)]
    for given in given_to(call):
        match given:
            case ast.Attribute(value=ast.Name(id=name), attr="device"):
                return any(name in plain_names(one) for one in by)
    return False


def _head(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def not_waiting(arguments: Arguments) -> bool | None:
    """Return the value of ``non_blocking``; None if it is not known."""
    given = arguments.keywords.get("non_blocking")
    if given is None:
        flags = [
            argument.value
            for argument in arguments.positional[1:]
            if isinstance(argument.value, Scalar) and argument.value.kind == "bool"
        ]
        if not flags:
            return None if arguments.open else False
        found: Value = flags[0]
    else:
        found = given.value
    if isinstance(found, Scalar) and isinstance(found.value, bool):
        return found.value
    return None


def written(node: ast.expr, env: Env, origin: str = "") -> None:
    """Give a tensor the origin that it has after it was written into, by default that of data."""
    path = path_of(node)
    value = UNKNOWN if path is None else env.get(path, UNKNOWN)
    if path is not None and isinstance(value, Tensor) and value.origin:
        env[path] = replace(value, origin=origin)


def filled(owner: ast.expr, tensor: Tensor, value: Value, ctx: Context) -> str:
    """Return the origin of a tensor of which a part is assigned; "" if data may be in it.

    What the rounds of a loop fill, by lengths for one, is data.
    """
    loop = ctx.loops[-1].node if ctx.loops else None
    if loop is not None and _head(owner) not in bound_in(loop):
        return ""
    match value:
        case Scalar(read=None):
            return tensor.origin
        case Tensor(device="host"):
            return common_origin((tensor, value))
    return ""


def _reshaped(node: ast.expr, env: Env) -> None:
    """Clear the rank of a tensor that is reshaped in place: ``x.squeeze_(1)``."""
    path = path_of(node)
    value = None if path is None else env.get(path)
    if path is not None and isinstance(value, Tensor):
        env[path] = replace(value, rank=None, scalar=None)


def written_by(node: ast.Call, value: Value, callee: Value | None, env: Env, ctx: Context) -> None:
    """Apply a call that writes into its arguments: ``x.copy_(data)``, or a ``callee`` that may."""
    late = isinstance(value, Tensor) and value.arrives
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr[-1] == "_" != func.attr[0]:
        if func.attr in methods_of("reshapes-in-place"):
            _reshaped(func.value, env)
        if func.attr == "copy_" and late:
            path = path_of(func.value)
            if path is not None:
                env[path] = value
        elif not isinstance(value, Tensor) or not value.origin:
            written(func.value, env)
    if callee is not None:
        for position, argument in enumerate(node.args):
            made = env.get(path_of(argument) or "")
            if (
                isinstance(made, Tensor)
                and made.origin
                and may_fill(callee, position, ctx.analysis)
            ):
                written(argument, env)


# --- copies to the host that the program has not waited for


def queued(tensor: Tensor, ctx: Context) -> Tensor:
    """Return a copy to the host that arrives some time later."""
    return replace(tensor, arrives=ctx.budget.waits)


def fills_later(arguments: Arguments) -> bool:
    """True for ``buffer.copy_(x, non_blocking=True)`` if ``x`` does not lie on the host."""
    source = tensor_of(arguments.value(0, "src"))
    return source is not None and source.device != "host" and not_waiting(arguments) is True


def waited(ctx: Context) -> None:
    """Note that the program waited for the device, or may have: all earlier copies have arrived."""
    ctx.budget.waits += 1


def used_by(
    op: Op,
    name: str,
    arguments: Arguments,
    tensors: list[Tensor],
    ctx: Context,
    owner: ast.expr | None = None,
) -> None:
    """Record an early use if a host operation reads a copy in flight; a view reads nothing."""
    late = next((t for t in tensors if t.arrives), None)
    if late is None or op.view or op.like:
        return
    if op.in_place and tensors[0].device != "host":
        return  # the device reads it after the copy, in the same queue
    node = next((a.node for a in arguments.all() if tensor_of(a.value) is late), owner)
    early(ctx, name, arguments.node, late, node)
