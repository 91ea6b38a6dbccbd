"""Calls: the callee decides which part of the interpreter evaluates the call."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from flake8_torchperf.idioms.host_names import root
from flake8_torchperf.interpreter.calls import closures, helper_moves, instances, summaries
from flake8_torchperf.interpreter.calls.call_log import note_outward, note_unclear
from flake8_torchperf.interpreter.engine.dispatch import apply, evaluate
from flake8_torchperf.interpreter.events import (
    graph_breaks,
    host_consumers,
    kernel_launches,
    logged_tensors,
    moved_modules,
    rebuilt_masks,
    transfers,
    waiting_wrappers,
)
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training import (
    accumulation,
    evaluations,
    input_pipeline,
    kept_graphs,
)
from flake8_torchperf.interpreter.inference.modules_by_use import module_called
from flake8_torchperf.interpreter.inference.objects_of_program import callee_of
from flake8_torchperf.interpreter.inference.placed import as_placed, placed_in
from flake8_torchperf.interpreter.inference.tensor_api import (
    MODULE_METHODS,
    knows_arrays,
    of_a_size,
    told_by_call,
    told_by_cast,
)
from flake8_torchperf.interpreter.inference.usage_inference import OF_CONTAINERS
from flake8_torchperf.interpreter.models import (
    builtin_functions,
    container_methods,
    containers,
    tensor_methods,
    torch_call_waits,
    torch_classes,
    torch_functions,
    wrappers,
)
from flake8_torchperf.interpreter.models.libraries import arrays
from flake8_torchperf.interpreter.stated_types.class_hierarchy import kind_of_instance
from flake8_torchperf.interpreter.transfer import attributes
from flake8_torchperf.interpreter.transfer.evaluated_arguments import evaluate_arguments
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import changes_in
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values import host_data
from flake8_torchperf.values.arguments import Arguments
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    COMPARED,
    HOST_BATCH,
    LOADED,
    UNKNOWN,
    BoundMethod,
    ClassValue,
    Closure,
    External,
    Function,
    Instance,
    Mapping_,
    NDArray,
    Opaque,
    Partial,
    Reason,
    Returning,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    UnknownValue,
    Value,
    join,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env


def call(node: ast.Call, env: Env, ctx: Context) -> Value:
    """Return the value of a call expression."""
    if isinstance(node.func, ast.Name) and node.func.id == "super" and "super" not in env:
        return instances.super_instance(ctx)
    owner: Value | None = None
    if isinstance(node.func, ast.Attribute):
        callee, owner = attributes.with_owner(node.func, env, ctx)
    else:
        callee = evaluate(node.func, env, ctx)
    is_partial = False
    if callee is UNKNOWN:
        callee, is_partial = callee_of(node.func, owner, ctx)
    arguments = evaluate_arguments(node, env, host_consumers.for_arguments(callee, node, ctx))
    if callee is UNKNOWN:
        callee = module_called(node.func, arguments, ctx)
    _named_call(callee, node, ctx)
    if ctx.sink is not None and ctx.analysis.compiled is not None:
        graph_breaks.note_call(callee, arguments, ctx)
    note_outward(callee, arguments, ctx)
    note_unclear(callee, arguments, ctx)
    if ctx.sink is not None and isinstance(callee, Function):
        waiting_wrappers.note_helper(callee, arguments, ctx)
        helper_moves.note_copies(callee, arguments, ctx)
    elif ctx.sink is not None:
        logged_tensors.note_logged(node, owner, arguments, ctx)
    told_by_use(node, arguments, env, ctx)
    opaque = isinstance(callee, OPAQUE)
    if opaque:
        if isinstance(callee, READABLE) and not _another_each_round(node.func, ctx):
            ctx.budget.plain_calls += 1  # its body shows if the call is opaque
        else:
            ctx.budget.opaque_calls += 1
        model = _called_model(callee, owner, node)
        if model is not None:
            _note_model(model, node, ctx)
        transfers.waited(ctx)
    value = apply(callee, arguments, env, ctx)
    if is_partial:
        value = join(value, UNKNOWN)
    if opaque and ctx.sink is not None:
        _lambdas(arguments, ctx)
    if ctx.sink is not None:
        rebuilt_masks.note_mask(node, value, ctx)
        moved_modules.note_move(node, callee, owner, ctx)
        evaluations.note_evaluation(node, callee, ctx)
        kernel_launches.note_launch(node, env, ctx)
    transfers.written_by(node, value, callee if opaque else None, env, ctx)
    if ctx.loops:
        accumulation.appended(node, ctx)
        kept_graphs.appended_part(node, ctx)
    if value is UNKNOWN and "return_tensors" in arguments.keywords:
        # A tokenizer or processor: its results lie on the host.
        return HOST_BATCH
    if value is UNKNOWN and isinstance(node.func, ast.Attribute):
        if owner is None:
            owner = evaluate(node.func.value, env, ctx.silent())
        value = unknown_method(node, node.func, owner, arguments, env, ctx)
        if callee is UNKNOWN and value is not UNKNOWN:
            ctx.budget.opaque_calls -= 1  # it is a tensor's method after all
    return value


def _another_each_round(called: ast.expr, ctx: Context) -> bool:
    """True if each round calls another object, as ``layers[i](x)`` does."""
    return bool(ctx.loops) and changes_in(called, ctx.loops[-1].node)


def _called_model(callee: Value, owner: Value | None, node: ast.Call) -> Instance | None:
    """Return the object that a call runs, also one of ``model.forward(x)``."""
    if isinstance(callee, Instance):
        return callee
    is_forward = isinstance(node.func, ast.Attribute) and node.func.attr == "forward"
    return owner if is_forward and isinstance(owner, Instance) else None


def _note_model(callee: Instance, node: ast.Call, ctx: Context) -> None:
    """Note a call of a model in a loop, which runs over steps, and a call of a single layer."""
    if kind_of_instance(callee, ctx.analysis) != "module":
        return
    if ctx.loops:
        ctx.analysis.models_called.add(id(node))
    if callee.info is None and not HOLDS_LAYERS.search(callee.name):
        ctx.analysis.queued[id(node)] = node


# Modules of torch that run other modules, or many operations.
HOLDS_LAYERS = re.compile(
    r"\.Module$|Sequential|Module(?:List|Dict)|Parallel|RNN|LSTM|GRU|Transformer|Attention"
)


# Methods that modules have as well; the output of a model is no module.
OF_OUTPUTS = frozenset(("cpu", "type", "float", "double", "half"))


def _confirmed(tensor: Tensor, name: str) -> Tensor:
    """Return the output of ``model(x).mean()`` as a tensor: no tuple and no dict has a mean."""
    told = name not in OF_CONTAINERS and (name not in MODULE_METHODS or name in OF_OUTPUTS)
    return torch_classes.shown_by_use(tensor, f"asked for `.{name}`") if told else tensor


def _chosen(option: Value, options: tuple[Value, ...], ctx: Context) -> Context:
    """Return an option's context: in ``torch if is_tensor(x) else np``, numpy gets no tensor."""
    names = [o.name for o in options if isinstance(o, External)]
    of_torch = any(name.startswith("torch.") for name in names)
    other = isinstance(option, External) and not option.name.startswith("torch.")
    return ctx.silent() if of_torch and other else ctx


def _lambdas(arguments: Arguments, ctx: Context) -> None:
    """Interpret lambdas with their recorded arguments, as in ``self._apply(lambda t: t.cpu())``."""
    for argument in arguments.all():
        match argument.value:
            case Closure(node=ast.Lambda(body=body), key=key, env=outer):
                given = ctx.analysis.given(key)
                if any(isinstance(value, Tensor) for value in given.values()):
                    evaluate(body, {**outer, **given}, ctx)


GENERATOR = Opaque("generator")
# Callees whose work can't become one tensor operation.
OPAQUE = (Function, Closure, Instance, Returning, UnknownValue)
READABLE = (Function, Closure, Instance)


def told_by_use(node: ast.Call, arguments: Arguments, env: Env, ctx: Context) -> None:
    """Note that the name in ``loss.backward()`` or ``x.detach()`` is a tensor from here on."""
    if not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    if name not in TOLD_BY_CALL and name != "tensor":
        return
    match node.func.value:
        case ast.Name(id="torch") if name == "tensor" and node.args:
            _is_data(node.args[0], env)
        case ast.Name() | ast.Attribute() as owner if name in TOLD_BY_CALL:
            if arguments.positional or of_a_size(node.func):
                return
            path = path_of(owner)
            if path is not None and env.get(path) is UNKNOWN and _told_here(owner, ctx):
                reason = Reason(f"`.{name}()` is called on it", node, None, Strength.INFERRED)
                env[path] = Tensor(reason)


def _is_data(given: ast.expr, env: Env) -> None:
    """Clear a declared tensor passed to ``torch.tensor(scale)``, which warns if given a tensor."""
    if not isinstance(given, ast.Name):
        return
    value = env.get(given.id)
    if not isinstance(value, Tensor) or value.chain:
        return
    told = (value.reason, value.reason.because)
    if any(r is not None and r.source is Source.PARAMETER_ANNOTATION for r in told):
        env[given.id] = UNKNOWN


def _told_here(owner: ast.expr, ctx: Context) -> bool:
    """True if the owner is not a name of a function, which `usage_inference` judges better."""
    return ctx.node is None or not isinstance(owner, ast.Name)


# Methods that only tensors have, if they are called without arguments.
TOLD_BY_CALL = frozenset(("backward", "detach", "requires_grad_", "numel", "contiguous"))


def _callable(value: Value) -> bool:
    return isinstance(
        value,
        (External, BoundMethod, Function, Closure, ClassValue, Instance, Partial, Returning),
    )


def _partial(callee: Partial, arguments: Arguments, env: Env, ctx: Context) -> Value:
    return apply(callee.callee, containers.completed(callee, arguments), env, ctx)


def _returning(callee: Returning, arguments: Arguments, env: Env, ctx: Context) -> Value:
    return callee.value


def _union(callee: Union, arguments: Arguments, env: Env, ctx: Context) -> Value:
    options = callee.options
    called = [o for o in options if _callable(o)]
    methods = [o for o in called if isinstance(o, Function) and o.bound is not None]
    is_overridden = len(methods) > 1 and len({one.info.name for one in methods}) == 1
    if is_overridden and len(methods) == len(options):
        # Each is interpreted once, by what it declares: there may be many, and many calls.
        for one in methods:
            summaries.observe(one.info, one.bound, arguments, ctx)
        return join_all([summaries.call_bound(o, ctx) for o in methods])
    return join_all([apply(o, arguments, env, _chosen(o, options, ctx)) for o in called])


def _external(callee: External, arguments: Arguments, env: Env, ctx: Context) -> Value:
    name = callee.name
    head, _, rest = name.partition(".")
    if head == "builtins":
        return builtin_functions.call_builtin(rest, arguments, env, ctx)
    if head == "torch":
        before = _recorded(ctx)
        value = torch_functions.call_torch(name, arguments, ctx)
        if _recorded(ctx) == before:
            torch_call_waits.note_function(name, arguments, value, ctx)
        return value
    return builtin_functions.call_library(name, arguments, env, ctx)


def _recorded(ctx: Context) -> int:
    """Return how many sites are recorded so far, so that a torch call's wait is recorded once."""
    return 0 if ctx.sink is None else len(ctx.sink)


def _method(callee: BoundMethod, arguments: Arguments, env: Env, ctx: Context) -> Value:
    owner, name = callee.owner, callee.name
    match owner:
        case Tensor():
            owner = _confirmed(owner, name)
            return tensor_methods.call_method(owner, callee.node, name, arguments, ctx)
        case Sequence() | Mapping_() | Scalar():
            return container_methods.call_method(owner, callee.node, name, arguments, env, ctx)
        case Instance():
            torch_call_waits.note_method(owner, name, arguments, ctx)
            return torch_classes.call_torch_method(owner, name, arguments, ctx)
        case Opaque(what="loaded on the host"):
            return host_data.call_method(name)
        case NDArray():
            return arrays.call_method(owner, callee.node, name, arguments, ctx)
    return UNKNOWN


def unknown_method(
    node: ast.Call,
    func: ast.Attribute,
    owner: Value,
    arguments: Arguments,
    env: Env,
    ctx: Context,
) -> Value:
    """Return the result of a method of an unknown owner, if the method alone shows it."""
    name = func.attr
    if isinstance(owner, Instance):
        return wrappers.prepared(owner, name, arguments, ctx)
    if owner == GENERATOR and name == "get_state":
        # A ByteTensor on the host, for any generator's device.
        return Tensor(Reason("`Generator.get_state` returns it", node), "int", "host", False)
    if owner not in (UNKNOWN, COMPARED):
        return UNKNOWN
    if _of_gradient(func, ctx):
        reason = Reason("`.grad` of something", func.value, None, Strength.INFERRED)
        gradient = Tensor(reason, "float", role="gradient")
        return tensor_methods.call_method(gradient, func.value, name, arguments, ctx)
    if name == "copy_" and isinstance(func.value, ast.Attribute) and func.value.attr == "data":
        reason = Reason("`.data.copy_` of something", func.value, None, Strength.INFERRED)
        return tensor_methods.call_method(Tensor(reason), func.value, name, arguments, ctx)
    if name == "zero_grad" and "set_to_none" in arguments.keywords:
        input_pipeline.zero_grad(arguments, ctx)  # only torch's optimizers and modules take it
    arrays = knows_arrays(ctx.module, ctx.node)
    told = told_by_call(node, ctx.analysis.table, ctx.module, ctx.node)
    if not told and owner is COMPARED and ctx.analysis.table.method(name) is not None:
        told = "" if arrays else f"a comparison is asked for `.{name}`"
    if told:
        reason = Reason(told, node, None, Strength.INFERRED)
        dtype = "bool" if owner is COMPARED or name in ("any", "all") else "unknown"
        tensor = Tensor(reason, dtype)
        if ctx.node is not None:
            placed = placed_in(ctx.node, ctx.module, ctx.owner, ctx.analysis)
            tensor = as_placed(tensor, root(func.value), placed)
        path = path_of(func.value)
        if path is not None and _told_here(func.value, ctx):
            env[path] = tensor
        return tensor_methods.call_method(tensor, func.value, name, arguments, ctx)
    why = _told_by_place(node, func, ctx)
    if why is not None:
        return tensor_methods.call_method(Tensor(why), func.value, name, arguments, ctx)
    cast = told_by_cast(func, ctx.analysis.table)
    if cast is not None and isinstance(func.value, ast.Call):
        return _cast_and_asked(func.value, cast, func, arguments, ctx)
    if name in ("named_parameters", "named_buffers", "parameters", "buffers"):
        return torch_classes.module_iteration(name, func)
    if name == "isoformat" or name in STRING_METHODS:
        return Scalar("str")
    if name == "cpu" and ctx.node is not None and id(node) in _stored(ctx.node):
        return LOADED
    return UNKNOWN


@once
def _stored(function: ast.AST) -> frozenset[int]:
    """Return the expressions, by identity, whose values a function binds to names."""
    return frozenset(
        id(n.value)
        for n in walk([function])
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
    )


def _told_by_place(node: ast.Call, func: ast.Attribute, ctx: Context) -> Reason | None:
    """Return why a doubtful owner is a tensor, by the use of the result or by convention."""
    name = func.attr
    if name in ("to", "cpu") and _kept_in_new(node, func.value, ctx):
        return Reason(f"what `.{name}` gives is kept beside it", node, None, Strength.INFERRED)
    if name in methods_of("reads") and not (node.args or node.keywords):
        # An array has this method too, so the reason is a convention only.
        return Reason(f"`.{name}()` is called", node, None, Strength.ASSUMED)
    return None


def _kept_in_new(node: ast.Call, owner: ast.expr, ctx: Context) -> bool:
    """True for ``[v.to("cpu") for v in values]``: a module moves itself, so ``v`` is a tensor."""
    match ctx.loops[-1].node if ctx.loops else None:
        case ast.ListComp(elt=made) | ast.DictComp(value=made):
            return made is node and isinstance(owner, ast.Name)
    return False


def _of_gradient(func: ast.Attribute, ctx: Context) -> bool:
    """True for ``layer.weight.grad.norm(2)``: a ``grad`` with tensor methods is a tensor."""
    asked = isinstance(func.value, ast.Attribute) and func.value.attr == "grad"
    return (
        asked
        and func.attr not in OF_CONTAINERS
        and ctx.analysis.table.method(func.attr) is not None
    )


def _cast_and_asked(
    copied: ast.Call, cast: tuple[ast.expr, str], func: ast.Attribute, rest: Arguments, ctx: Context
) -> Value:
    """Return the result of ``x.cpu().numpy()`` by both calls, with ``x`` as a tensor."""
    owner, told = cast
    tensor = Tensor(Reason(told, copied, None, Strength.INFERRED))
    name = copied.func.attr if isinstance(copied.func, ast.Attribute) else ""
    value = tensor_methods.call_method(tensor, owner, name, Arguments(copied, (), {}), ctx)
    if not isinstance(value, Tensor):
        return UNKNOWN
    return tensor_methods.call_method(value, func.value, func.attr, rest, ctx)


# Methods of strings that neither tensors nor arrays have.
STRING_METHODS = frozenset(
    ("startswith", "endswith", "lower", "upper", "strip", "rstrip", "format")
)


def _named_call(callee: Value, node: ast.Call, ctx: Context) -> None:
    """Record a call that one of the user's own rule pages names."""
    if not ctx.analysis.called or ctx.sink is None:
        return
    name = ""
    match callee:
        case External(name=found):
            name = found
        case Function(info=info):
            name = f"{info.module.name}.{info.qualname}".lstrip(".")
    if name in ctx.analysis.called:
        emit(ctx, SiteKind.CALL, name, node, None)


CALL_HANDLERS: dict[type[Any], Callable[[Any, Arguments, Env, Context], Value]] = {
    External: _external,
    BoundMethod: _method,
    Function: summaries.call_function,
    Closure: closures.call_closure,
    ClassValue: instances.construct,
    Instance: instances.call_instance,
    Partial: _partial,
    Returning: _returning,
    Union: _union,
}
