"""Annotations, as source text, to the table's types and returns.

Knows the spellings that torch's stubs and sources use; calls nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    HostReturn,
    InstanceReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
    TupleReturn,
)

_TENSORS = {"Tensor", "Parameter", "LongTensor", "FloatTensor", "ByteTensor", "IntTensor", "Buffer"}
_SIMPLE = {
    "_int": "i",
    "int": "i",
    "SymInt": "i",
    "_bool": "b",
    "bool": "b",
    "SymBool": "b",
    "BooleanType": "b",
    "_float": "f",
    "float": "f",
    "SymFloat": "f",
    "Number": "n",
    "_Number": "n",
    "_complex": "n",
    "complex": "n",
    "NumberType": "n",
    "PySymType": "n",
    "str": "s",
    "_str": "s",
    "_dtype": "Y",
    "dtype": "Y",
    "_device": "D",
    "device": "D",
    "Device": "D",
    "DeviceLikeType": "D",
    "_size": "Z",
    "_symsize": "Z",
    "Size": "Z",
    "_size_any_t": "Z",
    "_size_1_t": "Z",
    "_size_2_t": "Z",
    "_size_3_t": "Z",
    "_size_4_t": "Z",
    "_size_5_t": "Z",
    "_size_6_t": "Z",
    "_size_2_opt_t": "Z",
    "_size_3_opt_t": "Z",
    "BroadcastingList1": "Z",
    "BroadcastingList2": "Z",
    "BroadcastingList3": "Z",
}
_SEQUENCES = {
    "list",
    "List",
    "Sequence",
    "Iterable",
    "Iterator",
    "Generator",
    "Collection",
    "deque",
}
_TUPLES = {"tuple", "Tuple"}


def parse(text: str | None) -> ast.expr | None:
    """Return the expression of an annotation, string annotations opened.

    None if it is missing or malformed.
    """
    if not text:
        return None
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    while isinstance(node, ast.Constant) and isinstance(node.value, str):
        return parse(node.value)
    return node


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def alternatives(node: ast.expr | None) -> list[ast.expr]:
    """Return the members of a union, `None` left out."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return alternatives(parse(node.value))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return alternatives(node.left) + alternatives(node.right)
    if isinstance(node, ast.Subscript):
        head = _last(node.value)
        if head == "Optional":
            return alternatives(node.slice)
        if head == "Union":
            members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return [alternative for member in members for alternative in alternatives(member)]
        if head in {"Final", "ClassVar", "Annotated"}:
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return alternatives(inner)
    return [node]


def parameter_types(text: str | None) -> tuple[str, ...]:
    """Return the type letters that an annotation allows; `x` where it says nothing usable."""
    if text == "None":
        return ("-",)
    letters: list[str] = []
    for node in alternatives(parse(text)):
        letter = _parameter_letter(node)
        if letter not in letters:
            letters.append(letter)
    if not letters:
        return ("x",)
    for wide, narrow in (
        ("Z", "i"),
        ("n", "i"),
        ("n", "f"),
        ("n", "b"),
        ("f", "i"),
        ("D", "s"),
        ("D", "i"),
    ):
        if wide in letters and narrow in letters:
            letters.remove(narrow)
    if "x" in letters and len(letters) > 1 and "T" not in letters:
        return ("x",)
    return tuple(letter for letter in letters if letter != "x") or ("x",)


def _parameter_letter(node: ast.expr) -> str:
    name = _last(node)
    if name in _TENSORS:
        return "T"
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name in {"_TensorOrTensors", "_tensor_or_tensors_t"}:
        return "x"
    if isinstance(node, ast.Subscript):
        head = _last(node.value)
        members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if head == "Literal":
            values = {type(m.value) for m in members if isinstance(m, ast.Constant)}
            if values == {bool} and len(members) == 1:
                return str(int(ast.literal_eval(members[0])))
            return "s" if values == {str} else "b" if values == {bool} else "x"
        if head in _SEQUENCES | _TUPLES:
            inner = {
                letter
                for m in members
                if not _is_ellipsis(m)
                for letter in parameter_types(ast.unparse(m))
            }
            if inner == {"T"}:
                return "Tl"
            if inner == {"i"}:
                return "Z"
        if head in {"BroadcastingList1", "BroadcastingList2", "BroadcastingList3"}:
            return "Z" if _last(node.slice) == "int" else "x"
    return "x"


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def returned(text: str | None, named: Mapping[str, str], self_return: Return = UNKNOWN) -> Return:
    """Return the `Return` that an annotation names.

    `named` maps the names of classes to their public qualified names; `self_return` is the meaning
    of `Self`. An Optional counts as its inner type: a caller that uses the result has a value.
    """
    if text is None:
        return UNKNOWN
    node = parse(text)
    if isinstance(node, ast.Constant) and node.value is None:
        return HostReturn("N")
    options = alternatives(node)
    values = [_return_of(option, named, self_return) for option in options]
    if len(values) == 1:
        return values[0]
    kinds = {value.kind for value in values if isinstance(value, ScalarReturn)}
    if (
        values
        and len(values) == sum(isinstance(value, ScalarReturn) for value in values)
        and "s" not in kinds
    ):
        return ScalarReturn("i" if kinds == {"i"} else "b" if kinds == {"b"} else "n")
    return values[0] if values and all(value == values[0] for value in values) else UNKNOWN


def _return_of(node: ast.expr, named: Mapping[str, str], self_return: Return) -> Return:
    name = _last(node)
    if name == "Self":
        return self_return
    if name in _TENSORS:
        return TensorReturn()
    if name in _SIMPLE:
        letter = _SIMPLE[name]
        return HostReturn(letter) if letter in "ZYD" else ScalarReturn(letter)
    if name == "ndarray":
        return HostReturn("A")
    if name in {"NoReturn", "Never"}:
        return HostReturn("N")
    if isinstance(node, ast.Subscript):
        return _subscript_return(node, named, self_return)
    if name:
        dotted = ast.unparse(node)
        qualified = named.get(dotted) or named.get(name)
        if qualified:
            return InstanceReturn(qualified)
    return UNKNOWN


def _subscript_return(node: ast.Subscript, named: Mapping[str, str], self_return: Return) -> Return:
    head = _last(node.value)
    members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]

    def one(member: ast.expr) -> Return:
        return returned(ast.unparse(member), named, self_return)

    if head in _SEQUENCES or (head in _TUPLES and len(members) == 2 and _is_ellipsis(members[1])):
        item = one(members[0])
        return UNKNOWN if item == UNKNOWN else ListReturn(item)
    if head in _TUPLES:
        return TupleReturn(tuple(one(member) for member in members))
    if head in {"TypeIs", "TypeGuard"}:
        return ScalarReturn("b")
    if head == "Literal":
        values = {type(m.value) for m in members if isinstance(m, ast.Constant)}
        return {str: ScalarReturn("s"), bool: ScalarReturn("b"), int: ScalarReturn("i")}.get(
            next(iter(values)) if len(values) == 1 else object, UNKNOWN
        )
    return UNKNOWN
