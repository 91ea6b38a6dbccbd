"""Signatures from torch's shipped stubs, its Python sources, and its docstrings.

Takes the installed torch's files and objects; returns `Signature` lists by name. Calls nothing of
torch.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flake8_torchperf.knowledge.returns import UNKNOWN, Return, TensorReturn, TupleReturn
from torch_table.annotations import parameter_types, returned
from torch_table.model import Parameter, Signature

# Parameters of unannotated Python functions that are tensors by torch's naming habit.
_TENSOR_NAMES = {
    "input",
    "tensor",
    "x1",
    "x2",
    "a",
    "b",
    "A",
    "B",
    "other",
    "query",
    "key",
    "value",
    "weight",
}
_TENSOR_VARIADICS = {"tensors", "operands", "matrices"}

Functions = dict[str, list[ast.FunctionDef]]


def functions_of(body: list[ast.stmt]) -> Functions:
    """Return all functions of a stub's body by name, overloads in order."""
    found: Functions = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def read_stub(path: Path) -> ast.Module:
    """Return the syntax tree of a stub file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def class_body(tree: ast.Module, name: str) -> list[ast.stmt]:
    """Return the body of a class of a stub; raises LookupError if torch no longer has it."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node.body
    raise LookupError(f"no class {name} in the stub")


def named_tuples(path: Path) -> dict[str, Return]:
    """Return `torch.return_types.max` and the like, from return_types.pyi."""
    found: dict[str, Return] = {}
    for node in read_stub(path).body:
        if not isinstance(node, ast.ClassDef):
            continue
        fields = [
            (item.name, returned(_source(item.returns), {}))
            for item in node.body
            if isinstance(item, ast.FunctionDef)
            and any(isinstance(d, ast.Name) and d.id == "property" for d in item.decorator_list)
        ]
        names = tuple(name for name, _ in fields)
        found[node.name] = TupleReturn(tuple(value for _, value in fields), names)
    return found


def _source(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)


class Reader:
    """Reads signatures; knows the classes that annotations can name."""

    def __init__(self, named: Mapping[str, str], tuples: Mapping[str, Return]) -> None:
        self._named = named
        self._tuples = tuples

    def returned(self, text: str | None, self_return: Return = UNKNOWN) -> Return:
        """Return the `Return` of an annotation's text, named tuples included."""
        if text is not None and "return_types." in text:
            return self._tuples.get(text.rpartition(".")[2], UNKNOWN)
        return returned(text, self._named, self_return)

    def from_stub(self, node: ast.FunctionDef, self_return: Return = UNKNOWN) -> Signature:
        """Return the signature of one stub function."""
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        first_default = len(plain) - len(args.defaults)
        parameters = [
            _parameter(arg.arg, _source(arg.annotation), index >= first_default)
            for index, arg in enumerate(plain)
        ]
        if args.vararg is not None:
            types = parameter_types(_source(args.vararg.annotation))
            parameters.append(Parameter(args.vararg.arg, types, True, "variadic"))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            parameters.append(
                _parameter(arg.arg, _source(arg.annotation), default is not None, "keyword")
            )
        if args.kwarg is not None:
            parameters.append(Parameter(args.kwarg.arg, ("x",), True, "keywords"))
        return Signature(tuple(parameters), self.returned(_source(node.returns), self_return))

    def from_object(
        self, function: Callable[..., Any], self_return: Return = UNKNOWN
    ) -> Signature | None:
        """Return the signature of a Python function, from its annotations or type comment."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return None
        bare = all(p.annotation is inspect.Parameter.empty for p in signature.parameters.values())
        comment = _type_comment(function) if bare and signature.parameters else None
        parameters: list[Parameter] = []
        for index, param in enumerate(signature.parameters.values()):
            text = _annotation_text(param.annotation)
            if text == "None":  # `BroadcastingList2[int]` of torch._jit_internal evaluates to None
                text = None
            if text is None and comment is not None and index < len(comment[0]):
                text = comment[0][index]
            parameters.append(_from_inspected(param, text))
        text = _annotation_text(signature.return_annotation)
        if text is None and comment is not None:
            text = comment[1]
        return Signature(tuple(parameters), self.returned(text, self_return))

    def documented_return(self, function: object) -> Return:
        """Return the result type in a docstring's first line: `inv(A, *, out=None) -> Tensor`."""
        first = (getattr(function, "__doc__", None) or "").strip().split("\n")[0]
        match = re.search(r"\)\s*->\s*(.+)$", first)
        if match is None:
            return UNKNOWN
        text = match.group(1).strip().rstrip(".")
        if re.fullmatch(r"\(Tensor(, ?Tensor)+\)", text):
            return TupleReturn((TensorReturn(),) * text.count("Tensor"))
        return self.returned(text)


def _parameter(
    name: str, annotation: str | None, optional: bool, form: str = "positional"
) -> Parameter:
    types = ("x",) if name == "out" else parameter_types(annotation)
    if form == "variadic" and types == ("x",) and name in _TENSOR_VARIADICS:
        types = ("T",)
    return Parameter(name, types, optional, form)


_FORMS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "variadic",
    inspect.Parameter.VAR_KEYWORD: "keywords",
}


def _from_inspected(param: inspect.Parameter, annotation: str | None) -> Parameter:
    types = parameter_types(annotation)
    form = _FORMS[param.kind]
    optional = param.default is not inspect.Parameter.empty or form in {"variadic", "keywords"}
    if param.name == "out":
        types = ("x",)
    elif form == "variadic" and param.name in _TENSOR_VARIADICS:
        types = ("T",)
    elif types == ("x",):
        if annotation is None and not optional and param.name in _TENSOR_NAMES:
            types = ("T",)
        elif isinstance(param.default, bool):
            types = ("b",)
        elif isinstance(param.default, int):
            types = ("i",)
    return Parameter(param.name, types, optional, form)


def _annotation_text(annotation: object) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    if isinstance(annotation, str):
        return annotation
    if annotation is None or annotation is type(None):
        return "None"
    return inspect.formatannotation(annotation).replace("ForwardRef", "")


def _type_comment(function: Callable[..., Any]) -> tuple[list[str], str] | None:
    """Return the types of a `# type: (Tensor, bool) -> Tensor` comment, which TorchScript reads."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return None
    match = re.search(r"#\s*type:\s*\((.*)\)\s*->\s*(.+)", source)
    if match is None:
        return None
    try:
        params = ast.parse(f"({match.group(1)},)" if match.group(1) else "()", mode="eval").body
        result = ast.parse(match.group(2).strip().strip("()") or "None", mode="eval").body
    except SyntaxError:
        return None
    assert isinstance(params, ast.Tuple)
    return [ast.unparse(item) for item in params.elts], ast.unparse(result)


def undispatched(function: Any) -> Any:
    """Return the Python function behind `torch._jit_internal.boolean_dispatch`.

    The dispatch hides its parameters.
    """
    cells = (
        dict(
            zip(
                getattr(function, "__code__", _NO_CODE).co_freevars,
                function.__closure__ or (),
                strict=False,
            )
        )
        if inspect.isfunction(function)
        else {}
    )
    if "if_false" in cells and "if_true" in cells:
        return undispatched(cells["if_false"].cell_contents)
    return function


class _NoCode:
    co_freevars: tuple[str, ...] = ()


_NO_CODE = _NoCode()
