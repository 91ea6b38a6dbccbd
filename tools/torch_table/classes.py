"""The table's entries of classes: kind, public bases, methods' returns and properties' types."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    InstanceReturn,
    Return,
    TensorReturn,
    render_return,
)
from torch_table.model import Signature
from torch_table.stubs import Reader, functions_of

# First match wins; a class whose base is listed has that kind.
_KINDS: tuple[tuple[str, str], ...] = (
    ("torch.nn.Module", "module"),
    ("torch.optim.Optimizer", "optimizer"),
    ("torch.optim.lr_scheduler.LRScheduler", "scheduler"),
    ("torch.distributions.Distribution", "distribution"),
    ("torch.utils.data.DataLoader", "loader"),
    ("torch.utils.data.Dataset", "dataset"),
    ("torch.Tensor", "tensor"),
    ("torch.Event", "event"),
    ("torch.Stream", "stream"),
    ("torch.Generator", "generator"),
)
_DUNDERS = {
    "__call__",
    "__len__",
    "__iter__",
    "__getitem__",
    "__next__",
    "__enter__",
    "__contains__",
    "__eq__",
}


def kind_of(cls: type, by_name: Mapping[str, type]) -> str:
    """Return the kind of a class."""
    for base_name, kind in _KINDS:
        base = by_name.get(base_name)
        if base is not None and issubclass(cls, base):
            return kind
    if cls.__name__ == "GradScaler" or any(b.__name__ == "GradScaler" for b in cls.__mro__):
        return "scaler"
    if "Event" in cls.__name__ and hasattr(cls, "synchronize"):
        return "event"
    if cls.__name__.endswith("Stream") and hasattr(cls, "synchronize"):
        return "stream"
    if hasattr(cls, "__enter__") and hasattr(cls, "__exit__"):
        return "context"
    return "object"


class ClassReader:
    """Reads classes; `stub` holds the syntax trees of classes that are implemented in C++."""

    def __init__(
        self, reader: Reader, by_name: Mapping[str, type], stub: Mapping[str, ast.ClassDef]
    ) -> None:
        self._reader = reader
        self._by_name = by_name
        self._names = {value: name for name, value in by_name.items()}
        self._stub = stub

    def data(self, qualified: str) -> dict[str, Any]:
        """Return the JSON form of one class."""
        cls = self._by_name[qualified]
        kind = kind_of(cls, self._by_name)
        result: dict[str, Any] = {"kind": kind}
        bases = [self._names[base] for base in cls.__mro__[1:] if base in self._names]
        if bases:
            result["b"] = bases
        if kind == "tensor":
            return result
        methods, attributes = self._members(cls, kind)
        if methods:
            result["m"] = dict(sorted(methods.items()))
        if attributes:
            result["a"] = dict(sorted(attributes.items()))
        return result

    def _members(self, cls: type, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
        methods: dict[str, Any] = {}
        attributes: dict[str, str] = {}
        self_return = InstanceReturn("Self")
        for owner in reversed(self._own_lineage(cls)):
            self._annotated_attributes(owner, attributes)
            if kind == "module":
                attributes.update(dict.fromkeys(_registered(owner), render_return(TensorReturn())))
            sources = _methods_in_source(owner) or functions_of(self._stub_body(owner))
            for name, value in vars(owner).items():
                if name.startswith("_") and name not in _DUNDERS:
                    continue
                if isinstance(value, property) or type(value).__name__ in {
                    "cached_property",
                    "lazy_property",
                }:
                    found = self._property(value)
                    if found != UNKNOWN:
                        attributes[name] = render_return(found)
                    continue
                signatures = self._method(name, value, sources.get(name, []), self_return, kind)
                if signatures:
                    texts = list(dict.fromkeys(s.text() for s in signatures))
                    methods[name] = texts[0] if len(texts) == 1 else texts
        return methods, attributes

    def _own_lineage(self, cls: type) -> list[type]:
        """Return the class and its private bases, which the table does not list, nearest first."""
        own = [cls]
        for base in cls.__mro__[1:]:
            if base in self._names:
                continue
            if (base.__module__ or "").startswith("torch"):
                own.append(base)
        return own

    def _stub_body(self, owner: type) -> list[ast.stmt]:
        node = (
            self._stub.get(owner.__name__)
            if (owner.__module__ or "") in {"torch", "torch._C"}
            else None
        )
        return [] if node is None else node.body

    def _annotated_attributes(self, owner: type, out: dict[str, str]) -> None:
        for name, annotation in vars(owner).get("__annotations__", {}).items():
            text = (
                annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
            )
            value = self._reader.returned(text)
            if not name.startswith("_") and value != UNKNOWN:
                out[name] = render_return(value)
        for node in self._stub_body(owner):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                value = self._reader.returned(ast.unparse(node.annotation))
                if not node.target.id.startswith("_") and value != UNKNOWN:
                    out[node.target.id] = render_return(value)

    def _property(self, value: Any) -> Return:
        getter = (
            getattr(value, "fget", None)
            or getattr(value, "func", None)
            or getattr(value, "wrapped", None)
        )
        if getter is None or not inspect.isfunction(getter):
            return UNKNOWN
        signature = self._reader.from_object(getter)
        return UNKNOWN if signature is None else signature.returns

    def _method(
        self, name: str, value: Any, sources: list[ast.FunctionDef], self_return: Return, kind: str
    ) -> list[Signature]:
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        unbound = isinstance(value, staticmethod)
        overloads = [node for node in sources if _is_overload(node)] or (
            sources if not inspect.isfunction(function) else []
        )
        if overloads:
            found = [self._reader.from_stub(node, self_return) for node in overloads]
        elif inspect.isfunction(function):
            one = self._reader.from_object(function, self_return)
            found = [] if one is None else [one]
        else:
            return []
        if kind == "module" and name == "forward" and _is_placeholder(function):
            return []
        if kind == "module" and name == "forward":
            found = [
                s if s.returns != UNKNOWN else _with_return(s, _forward_habit(function))
                for s in found
            ]
        found = [s for s in found if s.returns != UNKNOWN]
        return [s if unbound else s.without_first() for s in found]


def _registered(owner: type) -> list[str]:
    """Return the buffers that a module's own methods register by name."""
    calls = (
        node
        for method in _methods_in_source(owner).values()
        for function in method
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.register_buffer"
    )
    names = [call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)]
    return [name for name in names if isinstance(name, str)]


def _is_placeholder(function: Any) -> bool:
    """True if the function is the placeholder of Module, which only raises."""
    return getattr(function, "__name__", "") == "_forward_unimplemented"


def _with_return(signature: Signature, value: Return) -> Signature:
    return Signature(signature.parameters, value)


def _forward_habit(function: Any) -> Return:
    """Return the likely return of a forward without an annotation.

    It is a tensor if all its return values are calls into torch.nn.functional.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return UNKNOWN
    results = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    calls = [r for r in results if isinstance(r, ast.Call) and ast.unparse(r.func).startswith("F.")]
    return TensorReturn() if results and len(calls) == len(results) else UNKNOWN


def _is_overload(node: ast.FunctionDef) -> bool:
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def _methods_in_source(owner: type) -> dict[str, list[ast.FunctionDef]]:
    module = sys.modules.get(owner.__module__ or "")
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    for node in _module_tree(file).body:
        if isinstance(node, ast.ClassDef) and node.name == owner.__qualname__:
            return functions_of(node.body)
    return {}


@cache
def _module_tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))
