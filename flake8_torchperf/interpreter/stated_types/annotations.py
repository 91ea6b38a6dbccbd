"""Type annotations to values."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.stated_types.class_hierarchy import (
    dict_kind,
    is_tensor_class,
    lineage,
)
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.names import dotted_name, given_to
from flake8_torchperf.syntax.positions import UnreadableError, parse_expression_text
from flake8_torchperf.values.named_types import JAXTYPING, instance_of
from flake8_torchperf.values.values import (
    NONE,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import ClassInfo, ModuleMap

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
TYPE_WRAPPERS = {
    "Annotated", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "Awaitable",
    "Coroutine", "InitVar", "Unpack",
}  # fmt: skip

# The interpreter uses no type arguments nested deeper than this.
MAX_DEPTH = 12


def annotated(
    node: ast.expr, module: ModuleMap, analysis: Analysis, reason: Reason, depth: int = 0
) -> Value:
    """Return the value that the annotation ``node`` declares; its tensors have ``reason``."""
    if depth > MAX_DEPTH:
        return UNKNOWN
    match node:
        case ast.Name() | ast.Attribute():
            return _named(node, module, analysis, reason, depth)
        case ast.Constant(value=str(text)):
            return _from_string(text, module, analysis, reason, depth)
        case ast.Constant(value=None):
            return NONE
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = (annotated(side, module, analysis, reason, depth + 1) for side in (left, right))
            return _either(sides)
        case ast.Subscript(value=base):
            return _generic(base, _type_arguments(node), module, analysis, reason, depth)
    return UNKNOWN


def _type_arguments(node: ast.Subscript) -> list[ast.expr]:
    """Return the arguments of a generic type; ``*Ts`` without its star."""
    inside = node.slice
    several = inside.elts if isinstance(inside, ast.Tuple) and inside.elts else [inside]
    return [
        one.value if isinstance(one, ast.Starred) else one
        for one in several
        if not isinstance(one, ast.Slice)
    ]


def resolve_dotted(name: str, module: ModuleMap, analysis: Analysis) -> Value:
    """Return the value of a dotted name at the top level of a module."""
    head, *rest = name.split(".")
    value = analysis.lookup(module, head)
    for part in rest:
        match value:
            case External(name=qualified):
                value = analysis.external(f"{qualified}.{part}")
            case ClassValue(info=info) if f"{info.name}.{part}" in info.module.classes:
                nested = info.module.classes[f"{info.name}.{part}"]
                value = ClassValue(nested, nested.key)
            case _:
                return UNKNOWN
    return value


def _from_string(
    text: str, module: ModuleMap, analysis: Analysis, reason: Reason, depth: int
) -> Value:
    try:
        parsed = parse_expression_text(text.strip())
    except UnreadableError:
        return UNKNOWN  # a string in an annotation may be any text
    return annotated(parsed, module, analysis, reason, depth + 1)


def _named(
    node: ast.Name | ast.Attribute,
    module: ModuleMap,
    analysis: Analysis,
    reason: Reason,
    depth: int,
) -> Value:
    name = dotted_name(node)
    value = resolve_dotted(name, module, analysis) if name else UNKNOWN
    match value:
        case External(name=qualified):
            short = qualified.rpartition(".")[2]
            foreign = short == "Tensor" and not qualified.startswith("torch.")
            if foreign and ("." in name or not _says_torch(module)):
                return UNKNOWN  # another framework's, or a kernel language's
            if short in SEQUENCES and not qualified.startswith("torch."):  # torch has a Generator
                return Sequence(SEQUENCES[short], UNKNOWN)
            if short in ("tuple", "Tuple"):
                return Sequence("tuple", UNKNOWN)
            if short in MAPPINGS:
                return Mapping_(UNKNOWN, UNKNOWN)
            if short in ("Callable", "Any", "Type"):
                return UNKNOWN
            return instance_of(qualified, reason)
        case ClassValue(info=info):
            return _of_class(info, analysis, reason, depth)
    if name == "Tensor" and module.stars and _says_torch(module):
        weaker = replace(reason, strength=Strength.INFERRED)
        return instance_of("torch.Tensor", weaker)
    return _alias(name, module, analysis, reason, depth)


@once_per_module
def _says_torch(module: ModuleMap) -> bool:
    """True if the module mentions torch; elsewhere `Tensor` may be any class."""
    return module.says("torch")


def _of_class(info: ClassInfo, analysis: Analysis, reason: Reason, depth: int = 0) -> Value:
    """Return an object of a class of the project."""
    if is_tensor_class(info, analysis):
        return Tensor(reason, info=info)
    return record(info, analysis, reason, depth) or Instance(info.key, info)


def record(info: ClassInfo, analysis: Analysis, reason: Reason, depth: int = 0) -> Value | None:
    """Return a NamedTuple, TypedDict or dict by its declared fields; None for other classes."""
    kind = record_kind(info, analysis) or dict_kind(info, analysis)
    if not kind or depth > MAX_DEPTH:
        return None
    fields: dict[str, Value] = {}
    for name, (home, node) in record_fields(info, analysis).items():
        stated = Reason(f"annotation of `{home.name}.{name}`", None, reason)
        fields[name] = annotated(node, home.module, analysis, stated, depth + 1)
    if kind == "TypedDict":
        return Mapping_(UNKNOWN, UNKNOWN, tuple(fields.items()))
    if kind != "NamedTuple":
        declared = tuple(fields.items()) if kind == "output" else ()
        return Mapping_(UNKNOWN, UNKNOWN, declared, info=info)
    return Sequence("tuple", UNKNOWN, tuple(fields.values()), tuple(fields), info)


def record_kind(info: ClassInfo, analysis: Analysis) -> str:
    """Return "NamedTuple" or "TypedDict" if the class or one of its bases is one, else ""."""
    names = {b.rpartition(".")[2] for b in lineage(info, analysis) if isinstance(b, str)}
    return next((kind for kind in ("NamedTuple", "TypedDict") if kind in names), "")


def record_fields(info: ClassInfo, analysis: Analysis) -> dict[str, tuple[ClassInfo, ast.expr]]:
    """Return the fields in order, inherited ones first, with the declaring class and the type."""
    found: dict[str, tuple[ClassInfo, ast.expr]] = {}
    for base in reversed(lineage(info, analysis)):
        if not isinstance(base, str):
            found.update({name: (base, node) for name, node in base.annotations.items()})
    return found


def _alias(name: str, module: ModuleMap, analysis: Analysis, reason: Reason, depth: int) -> Value:
    """Return a type alias assigned at module level, here or in the module it is imported from."""
    home, short = module, name
    head, _, rest = name.partition(".")
    if head in module.imports:
        found = analysis.project.find(f"{module.imports[head]}.{rest}".rstrip("."))
        if found is None or len(found[1]) != 1:
            return UNKNOWN
        home, short = found[0], found[1][0]
    values = home.constants.get(short, [])
    if len(values) != 1:
        return UNKNOWN
    node = values[0]
    if isinstance(node, ast.Call):  # NewType("Mask", Tensor), TypeVar("T", bound=Tensor)
        return _type_variable(node, home, analysis, reason, depth)
    if isinstance(node, ast.Constant) and node.value is not None and short not in home.annotations:
        return UNKNOWN  # any text, unlike `Pair: TypeAlias = "tuple[Tensor, int]"`
    return annotated(node, home, analysis, reason, depth + 1)


def _type_variable(
    node: ast.Call, module: ModuleMap, analysis: Analysis, reason: Reason, depth: int
) -> Value:
    maker = dotted_name(node.func).rpartition(".")[2]
    given = given_to(node)
    if maker == "NewType" and len(given) == 2:
        return annotated(given[1], module, analysis, reason, depth + 1)
    if maker == "TypeVar":
        for keyword in node.keywords:
            if keyword.arg == "bound":
                return annotated(keyword.value, module, analysis, reason, depth + 1)
        options = node.args[1:]
        if options:
            return _either(annotated(o, module, analysis, reason, depth + 1) for o in options)
    return UNKNOWN


def _generic(
    base: ast.expr,
    arguments: list[ast.expr],
    module: ModuleMap,
    analysis: Analysis,
    reason: Reason,
    depth: int,
) -> Value:
    name = dotted_name(base)
    short = name.rpartition(".")[2]
    if short in JAXTYPING and arguments:
        inner = annotated(arguments[0], module, analysis, reason, depth + 1)
        return Tensor(inner.reason, JAXTYPING[short]) if isinstance(inner, Tensor) else inner

    def value(node: ast.expr) -> Value:
        return annotated(node, module, analysis, reason, depth + 1)

    match short:
        case "Optional":
            return _either((value(arguments[0]), NONE))
        case "Union":
            return _either(value(a) for a in arguments)
        case "tuple" | "Tuple":
            return _tuple(arguments, value)
        case "Callable":
            result = value(arguments[-1]) if arguments else UNKNOWN
            if isinstance(result, Tensor) and _takes_text(arguments[0]):
                result = replace(result, device="host")  # tensors made of text lie there
            return UNKNOWN if result is UNKNOWN else Returning(result)
        case "Literal":
            return Opaque("literal")
        case "Type" | "type":
            return Opaque("class")
    if short in SEQUENCES and arguments:
        return Sequence(SEQUENCES[short], value(arguments[0]))
    if short in MAPPINGS and len(arguments) == 2:
        return Mapping_(value(arguments[0]), value(arguments[1]))
    if short in TYPE_WRAPPERS and arguments:
        return value(arguments[-1] if short == "Coroutine" else arguments[0])
    if isinstance(base, (ast.Name, ast.Attribute)):
        return _named(base, module, analysis, reason, depth)
    return UNKNOWN


def _takes_text(parameters: ast.expr) -> bool:
    """True if a callable takes only text, as ``Callable[[str, str], Tensor]`` does."""
    if not isinstance(parameters, ast.List) or not parameters.elts:
        return False
    return all(isinstance(one, ast.Name) and one.id == "str" for one in parameters.elts)


def _tuple(arguments: list[ast.expr], value: Callable[[ast.expr], Value]) -> Value:
    match arguments:
        case [_, ast.Constant(value=last)] if last is ...:
            return Sequence("tuple", value(arguments[0]))
    items = tuple(value(a) for a in arguments)
    element = union(items) if items else UNKNOWN
    return Sequence("tuple", element, items)


def _either(values: Iterable[Value]) -> Value:
    """Return a union of annotations; beside an unknown option, tensors count as assumed."""
    options = list(values)
    known = [o for o in options if o is not UNKNOWN]
    if len(known) == len(options):
        return union(known)
    tensors = [o for o in known if isinstance(o, Tensor)]
    if not tensors:
        return UNKNOWN
    return union((*tensors, Opaque("something else")))
