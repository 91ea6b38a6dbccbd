"""The interpreter's knowledge of an expression: immutable values, and how two of them join."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.values import devices
from flake8_torchperf.values.dtypes import joined_dtype
from flake8_torchperf.values.provenance import Reason as Reason
from flake8_torchperf.values.provenance import Strength as Strength
from flake8_torchperf.values.record import record

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Mapping

    from flake8_torchperf.project.module_index import (
        ClassInfo,
        FunctionInfo,
        FunctionNode,
        ModuleMap,
    )

# How many operation names a tensor stores: enough for `isinf -> any -> item`.
CHAIN_LENGTH = 4


@record
class Tensor:
    """A ``torch.Tensor``.

    ``dtype`` is a class of dtypes: "bool", "int", "float", "complex" or "unknown". ``device`` is
    "host", "device" (an accelerator), CHOSEN, "unknown", or BESIDE_HOST. ``scalar`` says whether it
    has no dimensions (None: not known). ``chain`` names the operations that made it, oldest first.
    ``role`` is "parameter" of a module, "gradient" for a ``.grad``, "state" in a ``state_dict``,
    "element" by integer index, "iterated" for what iterating a tensor yields, "inverted" for ``~x``
    if that alone shows that it is boolean, "asked" if a test showed its dtype, else "".

    For a tensor on the host, ``origin`` is what it was made from: "factory" (numbers alone),
    "python" or "numpy" data, SOMETIMES if only one path made it there, "" if unknown; ``memory`` is
    "pinned", "pageable" or "". ``arrives`` is not 0 for a queued copy to the host: it is the number
    of waits at that point. ``rank`` is the number of dimensions, if the way it was made shows it;
    ``info`` is the subclass that it is declared to be of. ``partly``: another path may give a
    number or something else (but not None, which no operation takes).
    """

    reason: Reason = field(compare=False)
    dtype: str = "unknown"
    device: str = "unknown"
    scalar: bool | None = None
    chain: tuple[str, ...] = field(default=(), compare=False)
    role: str = field(default="", compare=False)
    origin: str = ""
    memory: str = ""
    arrives: int = field(default=0, compare=False)
    rank: int | None = None
    info: ClassInfo | None = field(default=None, compare=False)
    partly: bool = False


@record
class Scalar:
    """A Python number, string or bytes on the host.

    ``kind`` is "int", "float", "bool", "str", "bytes", "complex" or "number". ``value`` is the
    literal where ``known``. ``read`` is the node that read it from ``tensor``; ``size_of`` the path
    of the tensor whose length it is.
    """

    kind: str
    value: Any = None
    known: bool = False
    read: ast.AST | None = field(default=None, compare=False)
    tensor: Tensor | None = field(default=None, compare=False)
    size_of: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class NoneValue:
    """``None``."""


@record
class NDArray:
    """A numpy array or numpy scalar on the host, whose reads are free.

    ``late``: a copy in flight in its memory; ``of_numbers``: made of one; ``several``: an array.
    """

    late: Tensor | None = field(default=None, compare=False)
    of_numbers: bool = field(default=False, compare=False)
    several: bool = field(default=False, compare=False)


@record
class Opaque:
    """A value only known not to be a tensor: a shape, a dtype, a range, a logger."""

    what: str


@record
class Device:
    """A ``torch.device``: ``kind`` is "host", "device", CHOSEN or "unknown".

    ``stated`` is False for the device of a tensor that lies on the host only because the code names
    no other; a move to that device may copy nothing. ``sure`` is False for the ``.device`` of a
    value that is only assumed to be a tensor.
    """

    kind: str
    stated: bool = True
    sure: bool = field(default=True, compare=False)


@record
class DType:
    """A ``torch.dtype`` of class "bool", "int", "float", "complex" or "unknown"."""

    kind: str


@record
class Sequence:
    """A list, tuple, set, generator or iterator.

    ``items`` holds the values if the length is known, ``element`` a value that covers all of them;
    ``names`` holds the field names of a named tuple, ``info`` its class if it can be read.
    """

    kind: str
    element: Value
    items: tuple[Value, ...] | None = None
    names: tuple[str, ...] = ()
    info: ClassInfo | None = field(default=None, compare=False)


@record
class Mapping_:
    """A dict: ``items`` holds the values under known string keys, ``element`` that of all others.

    ``made`` is True if this code made it empty, so that it holds only what this code puts in.
    ``info`` is its class if that is a subclass of dict that can be read.
    """

    key: Value
    element: Value
    items: tuple[tuple[str, Value], ...] = ()
    made: bool = False
    info: ClassInfo | None = field(default=None, compare=False)

    def any_value(self) -> Value:
        """Return the value under an arbitrary key: the join of the known values."""
        known = [value for _, value in self.items]
        if known and self.element is UNKNOWN:
            return join_all(known)
        return join_all([*known, self.element])


@record
class Told:
    """A test whose outcome a name holds, with the values of the test's names at that time."""

    test: ast.expr
    names: tuple[tuple[str, Value | None], ...] = field(compare=False)


@record
class External:
    """An imported or built-in object, by its qualified name: ``torch.isinf``, ``builtins.len``."""

    name: str


@record
class Imported:
    """A name that an import inside a function binds, looked up when it is used."""

    name: str


@record
class Function:
    """A function of the linted module or of another in the project; ``bound`` is its ``self``."""

    info: FunctionInfo = field(compare=False)
    key: str
    bound: Value | None = None


@record
class Closure:
    """A nested function or lambda with the environment it was defined in."""

    node: FunctionNode | ast.Lambda = field(compare=False)
    key: int
    env: Mapping[str, Value] = field(compare=False)
    module: ModuleMap = field(compare=False)


@record
class ClassValue:
    """A class of the linted module or of another module in the project."""

    info: ClassInfo = field(compare=False)
    key: str


@record
class Instance:
    """An object of a class whose source is read (``info``), or of torch's (``name`` alone).

    ``facts`` holds the constructor's arguments that matter later. ``parts`` holds the modules that
    were passed to one of torch's containers. ``held`` holds the attributes that this code gave it.
    """

    name: str
    info: ClassInfo | None = field(default=None, compare=False)
    facts: frozenset[str] = frozenset()
    parts: Sequence | None = None
    held: Mapping_ | None = None


@record
class BoundMethod:
    """A method looked up on a value whose class is not read: ``x.sum`` before the call."""

    owner: Value
    name: str
    node: ast.expr | None = field(default=None, compare=False)


@record
class Partial:
    """``functools.partial(callee, *positional, **keywords)``, ``open`` if some are hidden."""

    callee: Value
    positional: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    open: bool = False


@record
class Returning:
    """A callable of which only the result is known, e.g. annotated ``Callable[..., Tensor]``."""

    value: Value


@record
class Union:
    """One of several values, no Union or Unknown; ``met`` if paths give them, else declared."""

    options: tuple[Value, ...]
    met: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class UnknownValue:
    """A value of which nothing is known; no finding may depend on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """The result of comparing unknown values: a bool, or a mask if they are tensors."""


Value: TypeAlias = (
    Tensor | Scalar | NoneValue | NDArray | Opaque | Device | DType | Sequence | Mapping_ | Told
    | External | Imported | Function | Closure | ClassValue | Instance | BoundMethod | Partial
    | Returning | Union | Compared | UnknownValue
)  # fmt: skip

UNKNOWN = UnknownValue()
COMPARED = Compared()
NONE = NoneValue()
NDARRAY = NDArray()
BOOL = Scalar("bool")
INT = Scalar("int")
FLOAT = Scalar("float")
STR = Scalar("str")
NUMBER = Scalar("number")
SHAPE = Sequence("tuple", INT)
# Named host tensors, as a tokenizer returns them: attributes and items are tensors on the host.
HOST_BATCH = Opaque("host batch")
# Data read from a file onto the host: tensors, or dicts and lists of tensors.
LOADED = Opaque("loaded on the host")
LOADED_TENSOR = Tensor(Reason("read from a file"), device="host")

NUMBER_KINDS = {"int", "float", "bool", "complex", "number"}
# A union with more options than this becomes Unknown.
MAX_OPTIONS = 6


def literal(kind: str, value: Any) -> Scalar:
    """Return a host scalar whose value is written in the source."""
    return Scalar(kind, value, known=True)


def join(a: Value, b: Value) -> Value:
    """Return the least value that covers both: the value of a name where two paths meet."""
    if a is b or a == b:
        return _weaker(a, b)
    if isinstance(a, Compared):
        return join(UNKNOWN, UNKNOWN if isinstance(b, Compared) else b)
    if isinstance(b, Compared):
        return join(a, UNKNOWN)
    match a, b:
        case Tensor(), Tensor():
            return join_tensors(a, b)
        case (UnknownValue(), Tensor() as t) | (Tensor() as t, UnknownValue()):
            # One path states that it is a tensor, and names seldom change their type.
            origin = devices.SOMETIMES if t.device == "host" else t.origin
            return replace(weaken(t), origin=origin, memory="", arrives=0, partly=True)
        case (UnknownValue(), _) | (_, UnknownValue()):
            return _tensor_or_unknown(a, b)
        case Scalar(kind="str", value=x), Scalar(kind="str", value=y) if (
            devices.either_names_a_device(x, y)
        ):
            return Device("device")
        case (Device(kind="device"), Scalar(kind="str", value=text)) | (
            Scalar(kind="str", value=text),
            Device(kind="device"),
        ) if devices.names_device(text):
            return Device("device")
        case External(name=x), External(name=y) if chosen := devices.on_either_device(x, y):
            return External(chosen)
        case Scalar(), Scalar():
            return _join_scalars(a, b)
        case Sequence(), Sequence():
            return _join_sequences(a, b)
        case Mapping_(), Mapping_():
            made, info = a.made and b.made, a.info if a.info is b.info else None
            return Mapping_(join(a.key, b.key), _mapped(a, b), _common_items(a, b), made, info)
        case Instance(), Instance() if _are_alike(a, b):
            return _same_object(a, b)
    # A path gives the tensor, even if the other path only declares its options.
    declared = (isinstance(a, Union) and not a.met) or (isinstance(b, Union) and not b.met)
    met = not declared or isinstance(a, Tensor) or isinstance(b, Tensor)
    result = union((a, b))
    return Union(result.options, met) if met and isinstance(result, Union) else result


def join_all(values: Iterable[Value]) -> Value:
    """Return the join of any number of values; Unknown where there are none."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def union(values: Iterable[Value]) -> Value:
    """Return a union of the values; tensors among them are merged into one, and so are scalars."""
    flat: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, Union) else (value,):
            if isinstance(option, (UnknownValue, Compared)):
                return UNKNOWN
            _merge_into(flat, option)
    if len(flat) == 1:
        return flat[0]
    if not all(isinstance(option, (Tensor, NoneValue)) for option in flat):
        flat = [replace(o, partly=True) if isinstance(o, Tensor) else o for o in flat]
    return Union(tuple(flat)) if 1 < len(flat) <= MAX_OPTIONS else UNKNOWN


def join_tensors(a: Tensor, b: Tensor) -> Tensor:
    """Return a tensor with the facts that both tensors share."""
    weak = a if a.reason.strength <= b.reason.strength else b
    made = (a.dtype, bool(a.chain)), (b.dtype, bool(b.chain))
    return Tensor(
        weak.reason,
        joined_dtype(*made, asked="asked" in (a.role, b.role)),
        devices.joined_device(a.device, b.device),
        a.scalar if a.scalar == b.scalar else None,
        a.chain if len(a.chain) >= len(b.chain) else b.chain,
        a.role if a.role == b.role else "",
        devices.joined_origin((a.device, a.origin), (b.device, b.origin)),
        a.memory if a.memory == b.memory else "",
        a.arrives if a.arrives == b.arrives else 0,
        a.rank if a.rank == b.rank else None,
        partly=a.partly or b.partly,
    )


def weaken(tensor: Tensor, to: Strength = Strength.INFERRED) -> Tensor:
    """Return the tensor with a reason that is at most as strong as ``to``."""
    why = tensor.reason
    return tensor if why.strength <= to else replace(tensor, reason=replace(why, strength=to))


def tensor_of(value: Value) -> Tensor | None:
    """Return the tensor that ``value`` is, or may be on some path.

    A union counts if the other options are None, or a number that some path gives (``total = 0``
    before ``total += loss``). Parameters declared ``int | Tensor`` count as assumed.
    """
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, Union):
        return LOADED_TENSOR if value is LOADED else None
    tensor: Tensor | None = None
    certain = True
    for option in value.options:
        match option:
            case Tensor():
                tensor = option
            case NoneValue():
                pass
            case Scalar(known=known, kind=kind):
                certain = certain and (known or value.met) and kind != "str"
            case _:
                certain = False
    strength = Strength.INFERRED if certain else Strength.ASSUMED
    return None if tensor is None else weaken(tensor, strength)


def _weaker(a: Value, b: Value) -> Value:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return join_tensors(a, b)
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.read is not b.read:
        return a if a.read is not None else b
    return a


def _merge_into(flat: list[Value], option: Value) -> None:
    for i, seen in enumerate(flat):
        merged = type(seen) is type(option) and isinstance(option, MERGED)
        if seen == option or merged or _are_alike(seen, option):
            flat[i] = join(seen, option)
            return
    flat.append(option)


# Types of which a union holds at most one, so that joins always end.
MERGED = (Tensor, Scalar, Sequence, Mapping_)


def _are_alike(a: Value, b: Value) -> bool:
    """True for two objects that differ only in what their attributes hold."""
    return isinstance(a, Instance) and isinstance(b, Instance) and replace(a, held=b.held) == b


def _same_object(a: Instance, b: Instance) -> Instance:
    """Return an object with the attributes of both; what only one path sets stays known."""
    held = a.held or b.held if a.held is None or b.held is None else join(a.held, b.held)
    return replace(a, held=held) if isinstance(held, Mapping_) else a


def _tensor_or_unknown(a: Value, b: Value) -> Value:
    known = b if isinstance(a, UnknownValue) else a
    tensor = tensor_of(known) if isinstance(known, Union) else None
    if tensor is not None and tensor.reason.strength >= Strength.INFERRED:
        return tensor
    return UNKNOWN


def _join_scalars(a: Scalar, b: Scalar) -> Scalar:
    if a.known and b.known and a.kind == b.kind:
        return Scalar(a.kind, known=True)
    origin, kinds = a if a.read is not None else b, {a.kind, b.kind}
    kind = a.kind if len(kinds) == 1 else "number" if kinds <= NUMBER_KINDS else "object"
    return Scalar(kind, read=origin.read, tensor=origin.tensor)


def _join_sequences(a: Sequence, b: Sequence) -> Value:
    kind = a.kind if a.kind == b.kind else "sequence"
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        items = tuple(_either_item(x, y) for x, y in zip(a.items, b.items, strict=True))
        names, info = (a.names, a.info) if a.names == b.names else ((), None)
        return Sequence(kind, join_all(items), items, names, info)
    # An empty list shows nothing about its later contents.
    if a.items == ():
        return Sequence(kind, b.element)
    if b.items == ():
        return Sequence(kind, a.element)
    return Sequence(kind, _either_item(a.element, b.element, placed=kind == "tuple"))


def _mapped(a: Mapping_, b: Mapping_) -> Value:
    """Return the element of two joined dicts; one made empty shows nothing of its later values."""
    for empty, other in ((a, b), (b, a)):
        if empty.made and empty.element is UNKNOWN:
            return other.element
    return join(a.element, b.element)


def _either_item(a: Value, b: Value, *, placed: bool = False) -> Value:
    """Return the join of two list elements; a later test or the place shows which of them it is."""
    both = join(a, b)
    mixed = not placed and (isinstance(a, Union) or isinstance(b, Union))
    return replace(both, met=False) if isinstance(both, Union) and not mixed else both


def _common_items(a: Mapping_, b: Mapping_) -> tuple[tuple[str, Value], ...]:
    mine, other = dict(a.items), dict(b.items)
    met = {k: join(v, other[k]) for k, v in mine.items() if k in other}
    return tuple({**mine, **{k: v for k, v in other.items() if k not in mine}, **met}.items())
