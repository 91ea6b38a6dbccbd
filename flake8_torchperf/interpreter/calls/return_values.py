"""The value that a function returns, by its body, its annotation and its docstring together."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.stated_types.annotations import annotated
from flake8_torchperf.interpreter.stated_types.docstring_types import documented_result
from flake8_torchperf.project.function_facts import DOCSTRING, RETURNS_A_METHOD_CALL
from flake8_torchperf.project.module_index import ClassInfo
from flake8_torchperf.syntax.docstrings import docstring
from flake8_torchperf.values.combining import for_better_reason, without
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    NONE,
    NUMBER_KINDS,
    UNKNOWN,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    join_all,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.environments import Env


def worth_interpreting(stated: Value, info: FunctionInfo) -> bool:
    """True if the body may show more than the annotation: a tensor's dtype and device.

    True for numbers too, because a function declared ``-> bool`` often returns a tensor, as
    ``(a == b).all()``.
    """
    if isinstance(stated, Scalar) and stated.kind in NUMBER_KINDS:
        return RETURNS_A_METHOD_CALL.of(info)
    return (
        tensor_of(stated) is not None
        or isinstance(stated, (Sequence, Mapping_))
        or (stated is UNKNOWN)
        or _is_protocol(stated)
    )


def _is_protocol(value: Value) -> bool:
    """True for an object declared by a protocol, which many classes follow."""
    match value:
        case Instance(info=ClassInfo(bases=bases)):
            return any(base.rpartition(".")[2] == "Protocol" for base in bases)
    return False


def result_of(info: FunctionInfo, returns: list[Value], env: Env) -> Value:
    """Return the result of a call whose body returns these values, with its names in ``env``."""
    known = join_all(returns) if returns else NONE
    if tensor_of(known) is not None and _as_it_is_given(info, returns, env):
        return UNKNOWN
    if isinstance(known, Union) and (_quick_no(known) or _as_declared(info, env)):
        # An early `return False`, or a tensor: the caller often knows which one its call returns.
        known = replace(known, met=False)
    if any(d.rpartition(".")[2] in ("contextmanager", "asynccontextmanager")
           for d in info.decorators):  # fmt: skip
        return element_of(known)
    return known


def _quick_no(known: Union) -> bool:
    return any(isinstance(o, Scalar) and o.kind == "bool" for o in known.options)


def _as_declared(info: FunctionInfo, env: Env) -> bool:
    """True if the body tests the type of a value that is only declared to be one of several.

    An example is ``if isinstance(lr, Tensor): return lr.squeeze()`` for ``lr: float | Tensor``.
    """
    return any(
        isinstance(given := env.get(name), Union) and not given.met
        for branch in info.module.nodes(info.tree).of(ast.If)
        for name in _asked_for_tensors(branch.test)
    )


def _as_it_is_given(info: FunctionInfo, returns: list[Value], env: Env) -> bool:
    """True if the result has another type when an argument of unknown type is no tensor.

    An example is ``if isinstance(n, Tensor): return n.clamp(2)`` with a number returned otherwise.
    The result of such a call is then unknown too.
    """
    if all(tensor_of(value) is not None or isinstance(value, NoneValue) for value in returns):
        return False
    return any(
        env.get(name, UNKNOWN) is UNKNOWN
        for branch in info.module.nodes(info.tree).of(ast.If)
        if isinstance(branch.body[-1], ast.Return)
        for name in _asked_for_tensors(branch.test)
    )


def _asked_for_tensors(test: ast.expr) -> Iterator[str]:
    """Yield the names that a test checks for being a tensor."""
    for node in ast.walk(test):
        match node:
            case ast.Call(
                func=ast.Name(id="isinstance"),
                args=[ast.Name(id=name), ast.Name(id="Tensor") | ast.Attribute(attr="Tensor")],
            ):
                yield name
            case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[ast.Name(id=name)]):
                yield name


def reconcile(found: Value, stated: Value | None) -> Value:
    """Return the result by body and annotation; if they disagree, the annotation is believed."""
    if stated is None or stated is UNKNOWN or isinstance(found, NDArray):
        return found
    if _is_protocol(stated):
        return stated if found in (UNKNOWN, NONE) else found
    tensor = tensor_of(found)
    if tensor_of(stated) is not None and _holds_tensors(without(found, NoneValue)):
        return found  # the body returns a tuple despite `-> Tensor`
    if isinstance(stated, Scalar):
        told = isinstance(found, Tensor) and found.reason.strength >= Strength.INFERRED
        return found if told else stated
    if isinstance(stated, Tensor):
        return stated if tensor is None else for_better_reason(tensor, stated)
    if isinstance(stated, Sequence) and isinstance(found, Sequence):
        understood = found.element is not UNKNOWN or found.items is not None
        return found if understood else stated
    if isinstance(stated, Mapping_) and isinstance(found, Mapping_) and found.items:
        return _filled(found, stated)
    if tensor_of(stated) is not None and tensor is not None:
        return found
    return stated


def _holds_tensors(value: Value | None) -> bool:
    return isinstance(value, Sequence) and (
        value.items is not None
        or tensor_of(value.element) is not None
        or isinstance(value.element, Sequence)
    )


def _filled(found: Mapping_, stated: Mapping_) -> Mapping_:
    """Return the dict that a body makes, completed by its declaration where values are unknown.

    A dict declared ``-> dict[str, Tensor]`` may hold a few numbers too.
    """
    rest = stated.any_value()
    items = tuple((key, rest if value is UNKNOWN else value) for key, value in found.items)
    element = rest if found.element is UNKNOWN and not found.made else found.element
    return replace(found, element=element, items=items)


DOCUMENTED: Cache[str, Value | None] = Cache("results by docstring")
ANNOTATED: Cache[str, Value] = Cache("results by annotation")


def documented(info: FunctionInfo, analysis: Analysis) -> Value | None:
    """Return the result that the docstring states, or None if it states none. Cached."""
    return DOCUMENTED.kept(analysis, info.key, lambda: _read_docstring(info, analysis))


def _read_docstring(info: FunctionInfo, analysis: Analysis) -> Value | None:
    raw = DOCSTRING.of(info)
    if "eturn" not in raw and ":rtype:" not in raw:
        return None
    reason = Reason(f"docstring of `{info.qualname}`", source=Source.DOCSTRING)
    found = documented_result(docstring(info.tree), reason, analysis)
    return None if found is UNKNOWN else found


def returns_annotation(info: FunctionInfo, analysis: Analysis) -> Value | None:
    """Return the result that the annotation states, or None if there is no annotation."""
    if info.tree.returns is None:
        return None
    known = ANNOTATED.table(analysis)
    if info.key not in known:
        told = f"return annotation of `{info.qualname}`"
        reason = Reason(told, source=Source.RETURN_ANNOTATION)
        known[info.key] = annotated(info.tree.returns, info.module, analysis, reason)
    return known[info.key]


def returns_self(info: FunctionInfo) -> bool:
    """True for a method declared to return its object: ``def fill(self) -> Self``."""
    match info.tree.returns:
        case ast.Name(id="Self") | ast.Attribute(attr="Self"):
            return True
    return False
