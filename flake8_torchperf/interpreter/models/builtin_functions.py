"""Python's own functions, math, numpy, logging and other libraries that are used with torch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.row_storage import listed_calls, stored_calls
from flake8_torchperf.interpreter.engine.dispatch import apply, attribute_of
from flake8_torchperf.interpreter.events.recording import emit_read
from flake8_torchperf.interpreter.inference.iterables import iterable
from flake8_torchperf.interpreter.inference.named_attributes import attributes_like
from flake8_torchperf.interpreter.models import (
    builtin_reductions,
    containers,
    torch_classes,
    wrappers,
)
from flake8_torchperf.interpreter.models.libraries import arrays, einops, executors
from flake8_torchperf.interpreter.stated_types.annotations import annotated
from flake8_torchperf.interpreter.transfer.iteration import (
    BESIDE_LIST,
    added_up,
    unpack_reads,
    unpacked_calls,
)
from flake8_torchperf.interpreter.transfer.operators import binary, formatted
from flake8_torchperf.knowledge.logging_calls import LOG_LEVELS
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.named_types import KEEPERS
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    FLOAT,
    INT,
    LOADED,
    LOADED_TENSOR,
    NDARRAY,
    NONE,
    NUMBER,
    STR,
    UNKNOWN,
    Closure,
    External,
    Instance,
    Mapping_,
    NoneValue,
    Opaque,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    join_all,
    tensor_of,
    weaken,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env

CONVERSIONS = {
    "float": "float", "int": "int", "bool": "bool", "complex": "complex", "round": "number",
    "index": "int",
}  # fmt: skip


def call_builtin(name: str, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Call one of Python's built-in functions or types."""
    if name in CONVERSIONS and name != "index":
        return _number(name, arguments, ctx)
    if name in builtin_reductions.REDUCTIONS:
        return builtin_reductions.reduction(name, arguments, env, ctx)
    handler = BUILTIN_MODELS.get(name)
    if handler is not None:
        return handler(arguments, env, ctx)
    return BUILTIN_RESULTS.get(name, UNKNOWN)


def _number(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the read of ``float(t)``; the conversion of a number keeps the number's origin."""
    if not arguments.positional:
        return Scalar(CONVERSIONS[name])
    argument = arguments.positional[0]
    operand = _meant(argument.value, name)
    if isinstance(operand, Tensor) and name != "bool":  # no tuple and no dict has a number
        operand = torch_classes.shown_by_use(operand, f"given to `{name}`")
    read = emit_read(
        ctx, SiteKind.HOST_READ, name, arguments.node, operand, operand_node=argument.node
    )
    if isinstance(argument.value, Scalar):
        return Scalar(CONVERSIONS[name], read=argument.value.read, tensor=argument.value.tensor)
    return Scalar(CONVERSIONS[name], read=None if read is None else arguments.node, tensor=read)


def _meant(value: Value, name: str) -> Value:
    """Return the tensor of a ``float | Tensor`` given to ``float(x)``; numbers don't need it."""
    if not isinstance(value, Union):
        return value
    others = [o for o in value.options if not isinstance(o, (Tensor, NoneValue))]
    tensors = [o for o in value.options if isinstance(o, Tensor)]
    same = all(isinstance(o, Scalar) and o.kind == CONVERSIONS[name] for o in others)
    return weaken(tensors[0]) if tensors and same else value


def _text(operation: str) -> Callable[[Arguments, Env, Context], Value]:
    def handler(arguments: Arguments, env: Env, ctx: Context) -> Value:
        for argument in arguments.positional:
            formatted(argument.value, operation, argument.node, ctx)
        return NONE if operation == "print" else STR

    return handler


def _len(arguments: Arguments, env: Env, ctx: Context) -> Value:
    return INT


def _range(arguments: Arguments, env: Env, ctx: Context) -> Value:
    for argument in arguments.positional:
        emit_read(
            ctx,
            SiteKind.NUMBER_USE,
            "range",
            argument.node,
            argument.value,
            operand_node=argument.node,
        )
    return Sequence("range", INT)


def _iterating(name: str) -> Callable[[Arguments, Env, Context], Value]:
    def handler(arguments: Arguments, env: Env, ctx: Context) -> Value:
        sources = arguments.positional[1:] if name in ("map", "filter") else arguments.positional
        iterated = [a for a in sources if tensor_of(a.value) is not None]
        traits: tuple[str, ...] = ()
        if name == "zip" and not all(_sets_no_pace(a.value) for a in sources):
            # A list among the arguments sets the number of rounds. Only rounds that are added up
            # are known to have the same shape.
            added = ctx.node is not None and id(arguments.node) in added_up(ctx.node)
            iterated = iterated if added else []
            traits = (BESIDE_LIST,)
        for argument in iterated[:1]:  # report one loop once, whatever the number of tensors
            apart = _taken_apart(name, arguments.node, ctx)
            place = ctx.demote(Cause.AT_ONCE) if apart else ctx
            unpack_reads(argument.value, name, argument.node, place, traits)
        elements = [element_of(iterable(a.node, a.value, ctx)) for a in sources]
        match name:
            case "enumerate":
                pair = (INT, elements[0] if elements else UNKNOWN)
                return Sequence("iterator", Sequence("tuple", join_all(pair), pair))
            case "zip":
                row = tuple(elements)
                return Sequence("iterator", Sequence("tuple", join_all(row), row))
            case "map":
                return _mapped(arguments, elements, env, ctx)
            case "filter":
                return _filtered(arguments, elements, env, ctx)
        return Sequence("iterator", elements[0] if elements else UNKNOWN)

    return handler


def _taken_apart(name: str, call: ast.Call, ctx: Context) -> bool:
    """True if the rows are put away, or if the code has a name for each of them."""
    if ctx.node is None:
        return False
    if name == "map":
        return id(call) in unpacked_calls(ctx.node)
    stored = id(call) in listed_calls(ctx.node) or id(call) in stored_calls(ctx.node)
    return name == "zip" and stored


def _sets_no_pace(value: Value) -> bool:
    """True for a tensor or a range, with which a zip over tensors could run on the device."""
    if tensor_of(value) is not None:
        return True
    return isinstance(value, Sequence) and value.kind == "range"


def _mapped(arguments: Arguments, elements: list[Value], env: Env, ctx: Context) -> Value:
    function = arguments.value(0)
    given = containers.several(arguments, elements)
    inside = containers.inside_loop(arguments, ctx)
    return Sequence("iterator", apply(function, given, env, inside))


def _filtered(arguments: Arguments, elements: list[Value], env: Env, ctx: Context) -> Value:
    element = elements[0] if elements else UNKNOWN
    function = arguments.value(0)
    if isinstance(function, Closure):
        inside = containers.inside_loop(arguments, ctx)
        given = containers.several(arguments, elements)
        verdict = apply(function, given, env, inside)
        emit_read(
            inside, SiteKind.BRANCH, "filter", arguments.node, verdict, operand_node=arguments.node
        )
    if element is UNKNOWN and containers.grad_filter(function):
        # `filter(lambda p: p.grad is not None, ...)`: only tensors have a `.grad`.
        reason = Reason("its `.grad` is asked for", arguments.node, None, Strength.INFERRED)
        element = Tensor(reason, "float", role="parameter")
    elif isinstance(element, Tensor) and containers.grad_filter(function):
        element = Tensor(element.reason, element.dtype, element.device, role="parameter")
    return Sequence("iterator", element)


def _collection(kind: str) -> Callable[[Arguments, Env, Context], Value]:
    def handler(arguments: Arguments, env: Env, ctx: Context) -> Value:
        if not arguments.positional:
            return Sequence(kind, UNKNOWN, ())
        argument = arguments.positional[0]
        unpack_reads(argument.value, kind, argument.node, ctx)
        items = argument.value.items if isinstance(argument.value, Sequence) else None
        return Sequence(kind, element_of(argument.value), items)

    return handler


def _dict(arguments: Arguments, env: Env, ctx: Context) -> Value:
    return containers.dict_of(arguments)


def _getattr(arguments: Arguments, env: Env, ctx: Context) -> Value:
    wanted = arguments.value(1)
    if isinstance(wanted, Scalar) and isinstance(wanted.value, str):
        found = attribute_of(arguments.value(0), wanted.value, None, ctx)
        default = arguments.get(2)
        if default is None or found is UNKNOWN:
            return found
        return join_all((found, default.value))
    owner = arguments.value(0)
    if isinstance(owner, Instance) and len(arguments.positional) > 1:
        return attributes_like(owner, arguments.positional[1].node, ctx)
    return UNKNOWN


def _setattr(arguments: Arguments, env: Env, ctx: Context) -> Value:
    name = arguments.value(1)
    own = len(arguments.positional) > 2 and _is_self(arguments.positional[0].node, ctx)
    if own and ctx.writes is not None and isinstance(name, Scalar) and isinstance(name.value, str):
        ctx.writes[name.value] = arguments.value(2)
    return NONE


def _type(arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the class of a plain list, tuple or dict; a call of it makes another one."""
    match arguments.value(0):
        case Sequence(kind="list" | "tuple" as kind, names=()) if len(arguments.positional) == 1:
            return External(f"builtins.{kind}")
        case Mapping_(info=None):
            return External("builtins.dict")
    return Opaque("class")


def _next(arguments: Arguments, env: Env, ctx: Context) -> Value:
    first = arguments.get(0)
    found = UNKNOWN if first is None else element_of(iterable(first.node, first.value, ctx))
    return join_all((found, arguments.value(1))) if len(arguments.positional) > 1 else found


def _abs(arguments: Arguments, env: Env, ctx: Context) -> Value:
    value = arguments.value(0)
    return tensor_of(value) or (value if isinstance(value, Scalar) else UNKNOWN)


BUILTIN_MODELS: dict[str, Callable[[Arguments, Env, Context], Value]] = {
    "print": _text("print"),
    "str": _text("str"),
    "repr": _text("repr"),
    "format": _text("format"),
    "ascii": _text("repr"),
    "len": _len,
    "range": _range,
    "enumerate": _iterating("enumerate"),
    "zip": _iterating("zip"),
    "map": _iterating("map"),
    "filter": _iterating("filter"),
    "reversed": _iterating("reversed"),
    "iter": _iterating("iter"),
    "list": _collection("list"),
    "tuple": _collection("tuple"),
    "set": _collection("set"),
    "frozenset": _collection("set"),
    "dict": _dict,
    "getattr": _getattr,
    "setattr": _setattr,
    "next": _next,
    "type": _type,
    "abs": _abs,
    "pow": _abs,
}
BUILTIN_RESULTS: dict[str, Value] = {
    "isinstance": BOOL, "issubclass": BOOL, "hasattr": BOOL, "callable": BOOL, "id": INT,
    "hash": INT, "ord": INT, "chr": STR, "hex": STR, "bin": STR, "oct": STR, "input": STR,
    "open": Opaque("file"), "slice": Opaque("slice"),
    "bytes": Scalar("bytes"), "bytearray": Scalar("bytes"), "object": Opaque("object"),
    "divmod": NUMBER,
}  # fmt: skip


def call_library(name: str, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Call a function of another library, by its qualified name."""
    head, _, rest = name.partition(".")
    made = containers.made_object(name, arguments, ctx)
    if made is not None:
        return made
    match head:
        case "math" | "cmath":
            return _math(name, rest, arguments, ctx)
        case "numpy":
            return arrays.call_numpy(rest, arguments, ctx)
        case "logging":
            return _logging(rest, arguments, ctx)
        case "warnings":
            for argument in arguments.positional:
                formatted(argument.value, "warnings", argument.node, ctx)
            return NONE
        case "copy" if rest in ("copy", "deepcopy"):
            return arguments.value(0)
        case "typing" | "typing_extensions" if rest == "cast" and len(arguments.positional) == 2:
            return _cast(arguments, ctx)
        case "functools" if rest == "reduce":
            return _reduced(arguments, env, ctx)
        case "operator" if rest in OPERATORS and len(arguments.positional) == 2:
            left, right = (a.value for a in arguments.positional)
            return binary(OPERATORS[rest], left, right, arguments.node, ctx)
        case "triton" if rest == "cdiv" and len(arguments.positional) == 2:
            # triton/__init__.py: (x + y - 1) // y, of tensors too
            left, right = (a.value for a in arguments.positional)
            return binary(ast.FloorDiv(), left, right, arguments.node, ctx)
        case "operator":
            return _number("index", arguments, ctx) if rest == "index" else UNKNOWN
        case "collections" | "itertools" | "functools":
            return containers.call_library(name, arguments, env, ctx)
        case "concurrent" | "multiprocessing" | "queue":
            return executors.call(name, arguments, env, ctx)
        case "pandas" | "polars" if rest in TABLES:
            return NDARRAY
        case "einops":
            return einops.call_einops(rest.removeprefix("einops."), arguments)
        case "torchvision" if rest.startswith("datasets."):
            return Instance(name)
        case "accelerate" | "lightning" | "lightning_fabric" if name in KEEPERS:
            return Instance(name)
        case "deepspeed" if rest == "initialize":  # engine, optimizer, loader, scheduler
            engine = wrappers.wrapped(arguments) or UNKNOWN
            return Sequence("tuple", UNKNOWN, (engine, UNKNOWN, UNKNOWN, UNKNOWN))
        case "safetensors" if rest.endswith(".load_file"):
            where = arguments.get(1, "device")  # "cpu" where it is not named
            return Mapping_(STR, LOADED_TENSOR) if where is None else UNKNOWN
    if name.endswith("logging.get_logger"):
        return External(LOGGER)  # transformers.utils.logging, accelerate.logging
    return LIBRARY_RESULTS.get(name, UNKNOWN)


LOGGER = "logging.Logger"
# Functions that make a data frame.
TABLES = frozenset(("DataFrame", "Series", "concat", "read_csv", "read_parquet", "merge"))
OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(), "iadd": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "truediv": ast.Div(),
    "and_": ast.BitAnd(), "or_": ast.BitOr(), "xor": ast.BitXor(), "matmul": ast.MatMult(),
}  # fmt: skip


def _reduced(arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the result of ``reduce(f, values)``, by calls of ``f`` on two values."""
    element = element_of(arguments.value(1, "iterable"))
    start = arguments.value(2, "initial") if arguments.get(2, "initial") else element
    inside = containers.inside_loop(arguments, ctx)
    first = containers.several(arguments, [start, element])
    made = apply(arguments.value(0), first, env, inside)
    again = containers.several(arguments, [made, element])
    return apply(arguments.value(0), again, env, inside.silent())


LIBRARY_RESULTS: dict[str, Value] = {
    "time.time": FLOAT, "time.perf_counter": FLOAT, "time.monotonic": FLOAT,
    "random.random": FLOAT, "random.uniform": FLOAT, "random.randint": INT,
    "random.randrange": INT, "os.environ.get": STR, "os.getenv": STR, "os.path.join": STR,
    "os.cpu_count": INT, "contextlib.nullcontext": Opaque("context manager"),
    # Objects with methods that otherwise show a tensor: `detach`, `sqrt`.
    "socket.socket": Opaque("socket"), "socket.create_connection": Opaque("socket"),
    "weakref.finalize": Opaque("finalizer"), "io.TextIOWrapper": Opaque("stream"),
    "io.BufferedReader": Opaque("stream"), "io.BufferedWriter": Opaque("stream"),
    "contextvars.ContextVar": External("contextvars.ContextVar"),
    "decimal.Decimal": NUMBER, "fractions.Fraction": NUMBER,
    "scipy.optimize.linear_sum_assignment": Sequence("tuple", NDARRAY, (NDARRAY, NDARRAY)),
    # Functions that read files or make tensors of pictures return host tensors.
    "torchaudio.load": Sequence("tuple", LOADED, (LOADED_TENSOR, INT)),
    "torchvision.io.read_image": LOADED_TENSOR,
    **dict.fromkeys(
        (f"torchvision.transforms{v2}.functional.{call}"
         for v2 in ("", ".v2") for call in ("to_tensor", "pil_to_tensor")), LOADED_TENSOR),
}  # fmt: skip


# The trait of a logarithm to a base; torch's own logarithm takes no base.
BASE = "base"


def _math(name: str, rest: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the reads of a math function, which calls a tensor's ``__float__``."""
    origin: Tensor | None = None
    traits = (BASE,) if rest == "log" and len(arguments.positional) > 1 else ()
    for argument in arguments.positional:
        read = emit_read(
            ctx,
            SiteKind.HOST_READ,
            name,
            arguments.node,
            argument.value,
            operand_node=argument.node,
            traits=traits,
        )
        origin = read or origin
    if rest in ("isnan", "isinf", "isfinite", "isclose"):
        return BOOL
    return Scalar(
        "int" if rest in ("ceil", "floor", "trunc") else "float",
        read=None if origin is None else arguments.node,
        tensor=origin,
    )


def _logging(rest: str, arguments: Arguments, ctx: Context) -> Value:
    if rest == "getLogger":
        return External(LOGGER)
    if rest.rpartition(".")[2] in LOG_LEVELS:
        for argument in arguments.positional:
            formatted(argument.value, "logging", argument.node, ctx)
        return NONE
    return UNKNOWN


def _is_self(node: ast.expr, ctx: Context) -> bool:
    """True if this expression is the method's own ``self``."""
    return isinstance(node, ast.Name) and node.id == ctx.self_name


def _cast(arguments: Arguments, ctx: Context) -> Value:
    """Return the value of ``typing.cast(T, x)``."""
    reason = Reason("`typing.cast`", arguments.node)
    return annotated(arguments.positional[0].node, ctx.module, ctx.analysis, reason)
