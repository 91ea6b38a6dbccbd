"""Operations that end the graph in code that ``torch.compile`` compiles or a transform runs."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.leaked_gradients import ends_graph
from flake8_torchperf.interpreter.events.recording import emit, names_rows
from flake8_torchperf.knowledge.batching import ROW_BY_ROW, ROW_BY_ROW_METHODS
from flake8_torchperf.knowledge.graph_breaks import breaking_calls
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import OWN_TRAITS, SiteKind
from flake8_torchperf.values.values import (
    UNKNOWN,
    BoundMethod,
    External,
    Instance,
    NDArray,
    Reason,
    Strength,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments

# Switches of torch._dynamo.config that keep an operation from breaking the graph.
SWITCHED_OFF = {
    "print": ("reorderable_logging_functions", "ignore_logging_functions"),
    "warn": ("reorderable_logging_functions", "ignore_logging_functions"),
    "logger": (
        "reorderable_logging_functions",
        "ignore_logging_functions",
        "ignore_logger_methods",
    ),
    "autograd.grad": ("trace_autograd_ops",),
    "backward": ("trace_autograd_ops",),
    "rnn": ("allow_rnn",),
}
# Operations that seldom run if they are alone in a branch. A `print` may run more often.
ADVICE = frozenset(("warn", "logger"))
RECURRENT = frozenset(("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"))
TENSOR_FACTORIES = frozenset((
    "torch.ones", "torch.zeros", "torch.empty", "torch.full", "torch.rand", "torch.randn",
    "torch.tensor", "torch.ones_like", "torch.zeros_like", "torch.empty_like", "torch.full_like",
    "torch.rand_like", "torch.randn_like",
))  # fmt: skip
# Libraries that the tracer skips (torch/_dynamo/trace_rules.py, THIRDPARTY_SKIPLIST), and scipy,
# whose functions all end in its own compiled code. The tracer does follow `TRACED_FUNCTIONS`.
SKIPPED = frozenset((
    "networkx", "onnxruntime", "pandas", "scipy", "sklearn", "tabulate", "tqdm", "tree", "xarray",
))  # fmt: skip
TRACED_FUNCTIONS = frozenset(
    ("scipy.special.softmax", "scipy.special.log_softmax", "scipy.special.logsumexp")
)
COPY_FUNCTIONS = frozenset(("copy.copy", "copy.deepcopy"))
# Methods that fail on a batched tensor, and methods that only fail in a compiled vmap
# (torch 2.13, as run: tests/lint/torch_compile/test_compiled_transforms.py).
UNANSWERED = frozenset((
    "data_ptr", "is_pinned", "is_shared", "is_set_to", "is_coalesced", "is_distributed",
    "backward", "requires_grad_", "untyped_storage",
))  # fmt: skip
UNANSWERED_COMPILED = frozenset(
    ("storage_offset", "is_conj", "is_neg", "is_inference", "is_same_size", "is_signed")
)


def entered(place: Context, node: ast.AST) -> Context:
    """Return the context inside a function; its frame and sites are marked if it is compiled."""
    code = place.analysis.compiled
    if code is None:
        return place
    compilation = code.functions.get(id(node))
    transform = code.transformed.get(id(node), "")
    traits = place.traits - OWN_TRAITS - code.switches
    if compilation is None:
        if transform == "vmap":
            traits |= {"vmap"}
        return place.but(compiled="", traits=traits)
    traits |= {"compiled", *code.switches}
    if compilation.settings.fullgraph:
        traits |= {"fullgraph"}
    if transform == "vmap":
        traits |= {"vmap"}
    frame = replace(place.frame, compiled=getattr(node, "name", "a lambda"))
    return place.but(compiled=compilation.words, traits=traits, frame=frame)


def note_call(callee: Value, arguments: Arguments, ctx: Context) -> None:
    """Record the sites of a call in a module that compiles something."""
    _note_mark(arguments.node, ctx)
    if "vmap" in ctx.traits:
        _under_vmap(callee, arguments, ctx)
    if ctx.compiled:
        _breaking(callee, arguments, ctx)


def note_statement(node: ast.stmt, ctx: Context) -> None:
    """Record the sites of an assignment in a module that compiles something."""
    _note_mark(node, ctx)


def note_attribute(node: ast.Assign, target: ast.Attribute, owner: Value, ctx: Context) -> None:
    """Record ``t.requires_grad = flag`` in compiled code, which ends the graph for any flag.

    Few objects but tensors have this attribute, so the owner may be unknown.
    """
    if not ctx.compiled or target.attr != "requires_grad":
        return
    tensor = tensor_of(_asked_for_gradients(owner, target.value))
    if tensor is not None:
        emit(ctx, SiteKind.GRAPH_BREAK, "requires_grad", node, tensor, operand_node=target.value)


def _note_mark(node: ast.AST, ctx: Context) -> None:
    code = ctx.analysis.compiled
    mark = None if code is None else code.marks.get(id(node))
    if mark is None:
        return
    transform = mark.operation in ("over-compiled", "compiled-inside", "row-by-row")
    kind = SiteKind.TRANSFORM if transform else SiteKind.RECOMPILE
    emit(ctx, kind, mark.operation, node, traits=(mark.operation,))


def _under_vmap(callee: Value, arguments: Arguments, ctx: Context) -> None:
    node = arguments.node
    match callee:
        case External(name=name) if name in ROW_BY_ROW and _repeats(name, arguments, 1):
            if names_rows(node, ctx):
                emit(ctx, SiteKind.TRANSFORM, "row-by-row", node, operand_node=node)
        case BoundMethod(owner=owner, name=name) if tensor_of(owner) is not None:
            asked = callee.node or node
            compiled = bool(ctx.compiled) and name in UNANSWERED_COMPILED
            if (compiled or name in UNANSWERED) and names_rows(asked, ctx):
                emit(ctx, SiteKind.TRANSFORM, name, node, owner, operand_node=asked)
            looped = name in ROW_BY_ROW_METHODS and _repeats(name, arguments, 0)
            if looped and names_rows(node, ctx):
                emit(ctx, SiteKind.TRANSFORM, "row-by-row", node, owner, operand_node=node)


def _repeats(name: str, arguments: Arguments, place: int) -> bool:
    """True if the call runs row by row; ``repeat_interleave`` does so only with tensor lengths."""
    if name.rpartition(".")[2] != "repeat_interleave":
        return True
    given = arguments.get(place, "repeats")
    lengths = given.value if given is not None else arguments.value(0)
    return tensor_of(lengths) is not None


def _breaking(callee: Value, arguments: Arguments, ctx: Context) -> None:
    operation, operand = _operation(callee, arguments)
    if operation == "requires_grad" and operand is not None and not ends_graph(arguments.node, ctx):
        return
    if not operation or not ctx.traits.isdisjoint(SWITCHED_OFF.get(operation, ())):
        return
    code = ctx.analysis.compiled
    if operation in ADVICE and code is not None and id(arguments.node) in code.advice:
        ctx = ctx.demote(Cause.ERROR)
    covers = tuple(argument.node for argument in arguments.all())
    node = arguments.node
    emit(ctx, SiteKind.GRAPH_BREAK, operation, node, operand, operand_node=node, covers=covers)


def _operation(callee: Value, arguments: Arguments) -> tuple[str, Value | None]:
    """Return the operation that the compiler cannot follow, "" if none, and its operand."""
    match callee:
        case External(name=name):
            return _function(name, arguments), None
        case BoundMethod(owner=Tensor() as owner, name=name):
            if _turns_off(name, arguments):
                return "", None
            operation = breaking_calls().get(f"Tensor.{name}", "")
            told = _asked_for_gradients(owner, callee.node or arguments.node)
            return operation, told if name == "requires_grad_" else owner
        case BoundMethod(owner=NDArray(), name="astype"):
            return ("numpy object" if _no_number(arguments.get(0, "dtype")) else ""), None
        case Instance(name=name, info=None) if name in RECURRENT:
            return "rnn", None
    match arguments.node.func:
        case ast.Attribute(value=asked, attr="requires_grad_") if callee is UNKNOWN:
            on = not _turns_off("requires_grad_", arguments)
            return ("requires_grad" if on else ""), _asked_for_gradients(UNKNOWN, asked)
    return "", None


def _asked_for_gradients(owner: Value, node: ast.expr) -> Value:
    """Return a tensor for an object of unknown or assumed type that is asked to require gradients.

    Few objects but tensors and modules are asked for that, and no module is taken for a tensor.
    """
    assumed = isinstance(owner, Tensor) and owner.reason.strength is Strength.ASSUMED
    if owner is UNKNOWN or assumed:
        return Tensor(Reason("asked to require gradients", node, None, Strength.INFERRED))
    return owner


def _function(name: str, arguments: Arguments) -> str:
    if name in COPY_FUNCTIONS:
        copied = arguments.value(0)
        return "copy" if tensor_of(copied) is not None else ""
    if name in TENSOR_FACTORIES:
        asked = arguments.keywords.get("requires_grad")
        on = asked is not None and isinstance(asked.node, ast.Constant) and asked.node.value is True
        return "requires_grad" if on else ""
    if name.startswith("logging.Logger."):
        return "logger"  # torch/_dynamo/variables/misc.py, LoggingLoggerVariable: any method
    if name.startswith("numpy.") and _no_number(arguments.keywords.get("dtype")):
        return "numpy object"
    if name.partition(".")[0] in SKIPPED and name not in TRACED_FUNCTIONS:
        return "library"
    return breaking_calls().get(name, "")


def _turns_off(name: str, arguments: Arguments) -> bool:
    """True for ``requires_grad_(False)``, which does not break the graph."""
    given = arguments.get(0, "requires_grad") if name == "requires_grad_" else None
    return given is not None and not (
        isinstance(given.node, ast.Constant) and given.node.value is True
    )


def _no_number(argument: object) -> bool:
    """True for a dtype that holds no numbers: ``object``, ``str``, "U10", ``np.object_``."""
    node = getattr(argument, "node", None)
    match node:
        case ast.Name(id="object" | "str" | "bytes"):
            return True
        case ast.Attribute(attr="object_" | "str_" | "bytes_"):
            return True
        case ast.Constant(value=str(text)):
            return text in ("object", "str", "O") or text.startswith(("U", "S", "<U", "datetime64"))
    return False
