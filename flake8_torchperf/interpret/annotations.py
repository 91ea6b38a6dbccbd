"""Type annotations, written out or in a docstring, to values.

Enters an expression and the module it stands in; leaves the value an object of that type
has. Must not know statements, calls or sites.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.types import JAXTYPING, TENSOR_CLASSES, instance_of
from flake8_torchperf.interpret.values import (
    NONE,
    NUMBER,
    UNKNOWN,
    ClassValue,
    External,
    Instance,
    Mapping_,
    Opaque,
    Reason,
    Returning,
    Sequence,
    Strength,
    Tensor,
    Value,
    union,
)
from flake8_torchperf.parse.snippet import UnreadableError, parse_expression_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flake8_torchperf.interpret.machine import Machine
    from flake8_torchperf.suspects.modulemap import ClassInfo, ModuleMap

SEQUENCES = {
    "list": "list", "List": "list", "Sequence": "sequence", "MutableSequence": "list",
    "Iterable": "iterable", "Iterator": "iterator", "Generator": "iterator",
    "AsyncIterator": "iterator", "AsyncGenerator": "iterator", "AsyncIterable": "iterable",
    "Collection": "sequence", "set": "set", "Set": "set", "frozenset": "set", "FrozenSet": "set",
    "AbstractSet": "set", "deque": "list", "Deque": "list", "KeysView": "iterable",
    "ValuesView": "iterable", "Reversible": "iterable",
}  # fmt: skip
MAPPINGS = {
    "dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict",
    "Counter", "ChainMap",
}  # fmt: skip
WRAPPERS = {
    "Annotated", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "Awaitable",
    "Coroutine", "InitVar",
}  # fmt: skip
HOST_HOLDERS = {"numpy.typing.NDArray", "numpy.typing.ArrayLike"}

# Nested generics beyond this depth carry nothing the interpreter uses.
MAX_DEPTH = 12


def annotated(
    node: ast.expr, module: ModuleMap, machine: Machine, reason: Reason, depth: int = 0
) -> Value:
    """The value of an object whose annotation is ``node``; every tensor in it has ``reason``."""
    if depth > MAX_DEPTH:
        return UNKNOWN
    match node:
        case ast.Name() | ast.Attribute():
            return _named(node, module, machine, reason, depth)
        case ast.Constant(value=str(text)):
            return _from_string(text, module, machine, reason, depth)
        case ast.Constant(value=None):
            return NONE
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = (annotated(side, module, machine, reason, depth + 1) for side in (left, right))
            return _either(sides)
        case ast.Subscript(value=base):
            return _generic(base, _type_arguments(node), module, machine, reason, depth)
    return UNKNOWN


def _type_arguments(node: ast.Subscript) -> list[ast.expr]:
    """What stands in the square brackets of a generic type; ``*Ts`` without its star."""
    inside = node.slice
    several = inside.elts if isinstance(inside, ast.Tuple) and inside.elts else [inside]
    return [
        one.value if isinstance(one, ast.Starred) else one
        for one in several
        if not isinstance(one, ast.Slice)
    ]


def dotted_name(node: ast.expr) -> str:
    """``a.b.c`` for a name or attribute chain, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def resolve_dotted(name: str, module: ModuleMap, machine: Machine) -> Value:
    """What a dotted name means at the top level of a module."""
    head, *rest = name.split(".")
    value = machine.lookup(module, head)
    for part in rest:
        match value:
            case External(name=qualified):
                value = machine.external(f"{qualified}.{part}")
            case ClassValue(info=info) if f"{info.name}.{part}" in info.module.classes:
                nested = info.module.classes[f"{info.name}.{part}"]
                value = ClassValue(nested, nested.key)
            case _:
                return UNKNOWN
    return value


def _from_string(
    text: str, module: ModuleMap, machine: Machine, reason: Reason, depth: int
) -> Value:
    try:
        parsed = parse_expression_text(text.strip())
    except UnreadableError:
        return UNKNOWN  # a string in an annotation may be any text
    return annotated(parsed, module, machine, reason, depth + 1)


def _named(
    node: ast.Name | ast.Attribute,
    module: ModuleMap,
    machine: Machine,
    reason: Reason,
    depth: int,
) -> Value:
    name = dotted_name(node)
    value = resolve_dotted(name, module, machine) if name else UNKNOWN
    match value:
        case External(name=qualified):
            short = qualified.rpartition(".")[2]
            if short == "Tensor" and "." in name and not qualified.startswith("torch."):
                return UNKNOWN  # another framework's, or a kernel language's
            if short in SEQUENCES:
                return Sequence(SEQUENCES[short], UNKNOWN)
            if short in ("tuple", "Tuple"):
                return Sequence("tuple", UNKNOWN)
            if short in MAPPINGS:
                return Mapping_(UNKNOWN, UNKNOWN)
            if short in ("Callable", "Any", "Type"):
                return UNKNOWN
            return instance_of(qualified, reason)
        case ClassValue(info=info):
            return _of_class(info, machine, reason, depth)
    if name == "Tensor" and module.stars:
        weaker = Reason(reason.fact, reason.node, reason.because, Strength.INFERRED)
        return instance_of("torch.Tensor", weaker)
    return _alias(name, module, machine, reason, depth)


def _of_class(info: ClassInfo, machine: Machine, reason: Reason, depth: int) -> Value:
    """An object of a class of the project."""
    from flake8_torchperf.interpret.classes import lineage

    if any(base in TENSOR_CLASSES for base in lineage(info, machine)):
        return Tensor(reason)
    return record(info, machine, reason, depth) or Instance(info.key, info)


def record(info: ClassInfo, machine: Machine, reason: Reason, depth: int) -> Value | None:
    """A NamedTuple or TypedDict by its declared fields; None for other classes."""
    kinds = {base.rpartition(".")[2] for base in info.bases}
    if not kinds & {"NamedTuple", "TypedDict"} or depth > MAX_DEPTH:
        return None
    fields: dict[str, Value] = {}
    for name, node in info.annotations.items():
        stated = Reason(f"annotation of `{info.name}.{name}`", None, reason)
        fields[name] = annotated(node, info.module, machine, stated, depth + 1)
    if "TypedDict" in kinds:
        return Mapping_(UNKNOWN, UNKNOWN, tuple(fields.items()))
    return Sequence("tuple", UNKNOWN, tuple(fields.values()), tuple(fields))


def _alias(name: str, module: ModuleMap, machine: Machine, reason: Reason, depth: int) -> Value:
    """A type alias assigned at module level, here or in the module it is imported from."""
    home, short = module, name
    if name in module.imports:
        found = machine.project.find(module.imports[name])
        if found is None or len(found[1]) != 1:
            return UNKNOWN
        home, short = found[0], found[1][0]
    values = home.constants.get(short, [])
    if len(values) != 1:
        return UNKNOWN
    node = values[0]
    if isinstance(node, ast.Call):  # NewType("Mask", Tensor), TypeVar("T", bound=Tensor)
        return _type_variable(node, home, machine, reason, depth)
    if isinstance(node, ast.Constant) and node.value is not None and short not in home.annotations:
        return UNKNOWN  # any text, unlike `Pair: TypeAlias = "tuple[Tensor, int]"`
    return annotated(node, home, machine, reason, depth + 1)


def _type_variable(
    node: ast.Call, module: ModuleMap, machine: Machine, reason: Reason, depth: int
) -> Value:
    maker = dotted_name(node.func).rpartition(".")[2]
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if maker == "NewType" and len(given) == 2:
        return annotated(given[1], module, machine, reason, depth + 1)
    if maker == "TypeVar":
        for keyword in node.keywords:
            if keyword.arg == "bound":
                return annotated(keyword.value, module, machine, reason, depth + 1)
        options = node.args[1:]
        if options:
            return _either(annotated(o, module, machine, reason, depth + 1) for o in options)
    return UNKNOWN


def _generic(
    base: ast.expr,
    arguments: list[ast.expr],
    module: ModuleMap,
    machine: Machine,
    reason: Reason,
    depth: int,
) -> Value:
    name = dotted_name(base)
    short = name.rpartition(".")[2]
    if short in JAXTYPING and arguments:
        inner = annotated(arguments[0], module, machine, reason, depth + 1)
        return Tensor(inner.reason, JAXTYPING[short]) if isinstance(inner, Tensor) else inner

    def value(node: ast.expr) -> Value:
        return annotated(node, module, machine, reason, depth + 1)

    match short:
        case "Optional":
            return _either((value(arguments[0]), NONE))
        case "Union":
            return _either(value(a) for a in arguments)
        case "tuple" | "Tuple":
            return _tuple(arguments, value)
        case "Callable":
            result = value(arguments[-1]) if arguments else UNKNOWN
            return UNKNOWN if result == UNKNOWN else Returning(result)
        case "Literal":
            return Opaque("literal")
        case "Type" | "type":
            return Opaque("class")
    if short in SEQUENCES and arguments:
        return Sequence(SEQUENCES[short], value(arguments[0]))
    if short in MAPPINGS and len(arguments) == 2:
        return Mapping_(value(arguments[0]), value(arguments[1]))
    if short in WRAPPERS and arguments:
        return value(arguments[-1] if short == "Coroutine" else arguments[0])
    if isinstance(base, (ast.Name, ast.Attribute)):
        return _named(base, module, machine, reason, depth)
    return UNKNOWN


def _tuple(arguments: list[ast.expr], value: Callable[[ast.expr], Value]) -> Value:
    match arguments:
        case [_, ast.Constant(value=last)] if last is ...:
            return Sequence("tuple", value(arguments[0]))
    items = tuple(value(a) for a in arguments)
    element = union(items) if items else UNKNOWN
    return Sequence("tuple", element, items)


def _either(values: Iterable[Value]) -> Value:
    """A union of annotations; one unknown option leaves the tensors among the others assumed."""
    options = list(values)
    known = [o for o in options if o != UNKNOWN]
    if len(known) == len(options):
        return union(known)
    tensors = [o for o in known if isinstance(o, Tensor)]
    if not tensors:
        return UNKNOWN
    return union((*tensors, Opaque("something else")))


# Google: "x (torch.Tensor): ..."; NumPy: "x : torch.Tensor"; Sphinx: ":type x: torch.Tensor" and
# ":param torch.Tensor x: ...".
DOC_PATTERNS = (
    r"^[ \t]*\*{{0,2}}`{{0,2}}{name}`{{0,2}}[ \t]*\((?P<type>[^\n]+?)\)[ \t]*(?::|--|-)",
    r"^[ \t]*\*{{0,2}}{name}[ \t]*:[ \t]+(?P<type>[^\n]+)$",
    r":type[ \t]+{name}[ \t]*:[ \t]*(?P<type>[^\n]+)",
    r":param[ \t]+(?P<type>[^\n:]+?)[ \t]+{name}[ \t]*:",
)
DOC_ROLES = re.compile(r":(?:class|obj|py:class|math):|`|~|\*")
DOC_TENSOR = re.compile(
    r"^(?:a |an |the |optional |input |output |\d-?[dD] )*"
    r"(?:torch\.)?(?P<type>\w*Tensor)\b(?P<rest>.*)$"
)
DOC_LISTS = re.compile(
    r"^(?:an? |the )*(?P<kind>list|tuple|sequence|iterable|array)s? *"
    r"(?:\[(?:torch\.)?Tensor\]|of (?:torch\.)?[Tt]ensors?\b|\((?:torch\.)?Tensor\))(?P<rest>.*)$",
    re.I,
)
DOC_HOST = re.compile(r"^(?:python )?(int|float|bool|str|string|number)\b(?P<rest>.*)$")
OTHER_TYPE = re.compile(
    r"\b(?:or|\|)\s*(?!None\b)|\bint\b|\bfloat\b|\bnp\b|ndarray|\blist\b|\bNumber\b"
)


def documented(docstring: str, name: str, reason: Reason) -> Value:
    """What a docstring says of a parameter, in Google, NumPy or Sphinx style."""
    for pattern in DOC_PATTERNS:
        found = re.search(pattern.format(name=re.escape(name)), docstring, re.M)
        if found:
            return _documented_type(found.group("type"), reason)
    return UNKNOWN


# "mask (Tensor): a boolean mask", ":param mask: A :obj:`torch.BoolTensor`": its first lines.
DOC_ENTRY = (
    r"^[ \t]*(?::(?:param|type)[^:\n]*?[ \t])?\*{{0,2}}`{{0,2}}{name}`{{0,2}}[ \t]*"
    r"(?P<text>[:(][^\n]+(?:\n[ \t]+(?![^\n]*?\w[ \t]*(?:\([^\n]*\))?[ \t]*:[ \t])[^\n]+)?)"
)
DOC_BOOLEAN = re.compile(
    r"\bBoolTensor\b|\btorch\.bool\b|\bbool(?:ean)?[ -](?:valued )?(?:tensor|mask)\b"
    r"|\b(?:tensor|mask) of (?:bool|boolean)s?\b",
    re.I,
)
DOC_OTHER_DTYPE = re.compile(r"\b(?:Long|Float|Byte|Int)Tensor\b|\bfloat|\bint(?:eger)?s?\b", re.I)


def documented_as_boolean(docstring: str, name: str) -> bool:
    """Does a docstring say of a tensor that it is boolean, and of no other dtype?"""
    entries = re.finditer(DOC_ENTRY.format(name=re.escape(name)), docstring, re.M)
    texts = [DOC_ROLES.sub("", found["text"]) for found in entries]
    if any(DOC_OTHER_DTYPE.search(text) for text in texts):
        return False
    return any(DOC_BOOLEAN.search(text) for text in texts)


def _documented_type(text: str, reason: Reason) -> Value:
    text = DOC_ROLES.sub("", text).strip()
    tensor = DOC_TENSOR.match(text)
    if tensor:
        value = instance_of(f"torch.{tensor['type']}", reason)
        if not isinstance(value, Tensor):
            return UNKNOWN
        rest = re.sub(r"\([^)]*\)|\[[^\]]*\]", "", tensor["rest"])
        return union((value, Opaque("something else"))) if OTHER_TYPE.search(rest) else value
    several = DOC_LISTS.match(text)
    if several:
        kind = SEQUENCES.get(several["kind"].lower(), several["kind"].lower())
        element = Tensor(reason)
        value = Sequence(kind, element)
        alone = not OTHER_TYPE.search(several["rest"]) and "Tensor" not in several["rest"]
        return value if alone else union((value, element))
    host = DOC_HOST.match(text)
    if host and not OTHER_TYPE.search(host["rest"]) and "ensor" not in host["rest"]:
        return (
            instance_of(f"builtins.{host[1].replace('string', 'str')}", reason)
            if (host[1] != "number")
            else NUMBER
        )
    return UNKNOWN
