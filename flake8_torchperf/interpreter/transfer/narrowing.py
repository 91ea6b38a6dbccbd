"""Narrowing: the facts that a test shows about the names in it, if it holds and if it fails."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.inference.call_literals import outcome_by_call
from flake8_torchperf.interpreter.stated_types.annotations import resolve_dotted
from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_tensor_class, lineage
from flake8_torchperf.interpreter.stated_types.isinstance_tests import (
    NO_TENSOR,
    declared_alone,
    is_one_of,
    number_but,
    undeclared,
)
from flake8_torchperf.syntax.compile_guards import asks_for_mode
from flake8_torchperf.syntax.names import dotted_name, given_to
from flake8_torchperf.syntax.shape_tests import counts_nothing, dimensions_of, is_none
from flake8_torchperf.values.combining import tested, without
from flake8_torchperf.values.environments import Env, merge, outcome, path_of
from flake8_torchperf.values.named_types import MODULE_WRAPPERS, TENSOR_CLASSES, instance_of
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.rank import ranked
from flake8_torchperf.values.values import (
    LOADED,
    NONE,
    STR,
    UNKNOWN,
    ClassValue,
    Device,
    DType,
    External,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Told,
    Union,
    Value,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context

IS_TENSOR = {"torch.is_tensor", "torch.overrides.is_tensor_like", "torch._is_tensor"}


# The last names of functions that test a type.
TYPE_TEST_NAMES = frozenset(
    name.rpartition(".")[2] for name in (*IS_TENSOR, "builtins.isinstance", "builtins.issubclass")
)


def narrow(test: ast.expr, env: Env, ctx: Context, holds: bool) -> Env | None:
    """Return the environment after ``test`` was true (``holds``) or false; None: impossible."""
    if ctx.settled and outcome_by_call(test, env, ctx) is (not holds):
        return None
    handler = HANDLERS.get(type(test))
    return dict(env) if handler is None else handler(test, env, ctx, holds)


def _unary(test: ast.UnaryOp, env: Env, ctx: Context, holds: bool) -> Env | None:
    return narrow(test.operand, env, ctx, not holds) if isinstance(test.op, ast.Not) else {**env}


def _boolean(test: ast.BoolOp, env: Env, ctx: Context, holds: bool) -> Env | None:
    """Return the environment after ``a and b`` held or ``a or b`` failed, as each part did."""
    if isinstance(test.op, ast.And) != holds:
        return _either(test.values, env, ctx, holds)
    after: Env | None = env
    for value in test.values:
        if after is None:
            break
        after = narrow(value, after, ctx, holds)
    return after


def _either(values: list[ast.expr], env: Env, ctx: Context, holds: bool) -> Env | None:
    """Return the environment after ``a or b`` held or ``a and b`` failed, by one of the parts."""
    ends: list[Env | None] = []
    between: Env | None = env
    for value in values:
        if between is None:
            break
        end = narrow(value, between, ctx, holds)
        # Any of several tests may be the one: a parameter that is declared a tensor stays one.
        ends.append(None if end is not None and undeclared(between, end) else end)
        between = narrow(value, between, ctx, not holds)
    merged = merge(ends)
    if merged is None:
        return None
    for key, found in merged.items():
        before = env.get(key)
        if isinstance(found, Union) and isinstance(before, Union):
            # The test leaves open which of the declared options the value has.
            if found.met is not before.met:
                merged[key] = replace(found, met=before.met)
        elif isinstance(found, Union) and isinstance(before, (Scalar, NDArray)):
            merged[key] = replace(found, met=False)  # declared no tensor, but tested for one
    return merged


def _constant(test: ast.Constant, env: Env, ctx: Context, holds: bool) -> Env | None:
    if isinstance(test.value, int):
        return dict(env) if bool(test.value) == holds else None
    return dict(env)


def _name(test: ast.Name, env: Env, ctx: Context, holds: bool) -> Env | None:
    if test.id == "TYPE_CHECKING":
        return None if holds else dict(env)
    told = env.get(outcome(test.id))
    if isinstance(told, Told) and all(env.get(name) is value for name, value in told.names):
        return narrow(told.test, env, ctx, holds)
    return _truthiness(test, env, ctx, holds)


def note_outcome(target: ast.expr, test: ast.expr, env: Env) -> None:
    """Note the test in ``sized = isinstance(x, Sized)``, for a later test of ``sized``."""
    if isinstance(target, ast.Name) and _tells(test):
        names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)} - {target.id}
        env[outcome(target.id)] = Told(test, tuple((name, env.get(name)) for name in names))


def _tells(test: ast.expr) -> bool:
    """True if an expression tests only types, devices, None, or the mode in which code runs."""
    match test:
        case ast.Call(func=func):
            asked = dotted_name(func).rpartition(".")[2]
            return asked in ("isinstance", "is_tensor") or asks_for_mode(asked)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str())]):
            return _asked_for_device(test.left) is not None
        case ast.Compare(left=ast.Attribute(attr="type"), ops=[ast.In()]):
            return True
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _tells(inner)
        case ast.BoolOp(values=values):
            return all(map(_tells, values))
    return False


def _attribute(test: ast.Attribute, env: Env, ctx: Context, holds: bool) -> Env | None:
    if test.attr == "TYPE_CHECKING":
        return None if holds else dict(env)
    if test.attr in ("is_cpu", "is_cuda"):
        where = "host" if (test.attr == "is_cpu") == holds else "device"
        return _with_device(test.value, env, ctx, where)
    return _truthiness(test, env, ctx, holds)


def _walrus(test: ast.NamedExpr, env: Env, ctx: Context, holds: bool) -> Env | None:
    return _truthiness(test.target, env, ctx, holds)


def _comparison(test: ast.Compare, env: Env, ctx: Context, holds: bool) -> Env | None:
    if isinstance(test.ops[0], (ast.Is, ast.IsNot)) and [*map(is_none, test.comparators)] == [True]:
        return _none(test.left, env, ctx, isinstance(test.ops[0], ast.Is) == holds)
    emptied = _emptied(test, env, ctx, holds)
    if emptied is not None:
        return emptied
    text = _compared_with_text(test) if holds else None
    if isinstance(text, ast.Name) and isinstance(env.get(text.id), Tensor):
        return {**env, text.id: STR}  # no tensor equals text, so the value is text
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        return dict(env)
    left, right = test.left, test.comparators[0]
    same = isinstance(test.ops[0], (ast.Is, ast.Eq)) == holds
    if is_none(right):
        return _none(left, env, ctx, same)
    if is_none(left):
        return _none(right, env, ctx, same)
    if isinstance(left, ast.Call) and dotted_name(left.func) == "type" and left.args:
        return _instance(left.args[0], right, env, ctx, True) if same else dict(env)
    if same and isinstance(left, ast.Attribute) and left.attr == "dtype":
        return _with_dtype(left.value, right, env, ctx)
    counted = dimensions_of(left, right) if same else None
    if counted is not None:
        asked, rank = counted
        return _changed(asked, env, ctx, lambda tensor: ranked(tensor, rank))
    owner = _asked_for_device(left)
    if same and owner is not None and _names_host(right, env, ctx):
        return _with_device(owner, env, ctx, "host")
    return dict(env)


def _emptied(test: ast.Compare, env: Env, ctx: Context, holds: bool) -> Env | None:
    """Return the environment in which a list was found empty; None if the test shows no list."""
    counted = counts_nothing(test)
    if counted is None or counted[1] is not holds:
        return None
    path = path_of(counted[0])
    value = UNKNOWN if path is None else evaluate(counted[0], env, ctx.silent())
    if path is None or not isinstance(value, Sequence) or value.kind != "list":
        return None
    return {**env, path: replace(value, items=())}


def _compared_with_text(test: ast.Compare) -> ast.expr | None:
    """Return the ``key`` of ``key == "loss"`` and of ``key in ("loss", "logits")``."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=str())]):
            return left
        case ast.Compare(
            left=left,
            ops=[ast.In()],
            comparators=[ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts)],
        ) if elts and all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in elts):
            return left
    return None


def _asked_for_device(node: ast.expr) -> ast.expr | None:
    """Return the ``x`` of ``x.device`` and ``x.device.type``."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "device" else None


def _names_host(node: ast.expr, env: Env, ctx: Context) -> bool:
    """True for ``"cpu"`` and ``torch.device("cpu")``."""
    value = evaluate(node, env, ctx.silent())
    match value:
        case Device(kind="host", stated=True):
            return True
        case Scalar(value="cpu"):
            return True
    return False


def _with_device(node: ast.expr, env: Env, ctx: Context, device: str) -> Env:
    return _changed(node, env, ctx, lambda tensor: replace(tensor, device=device))


def _with_dtype(node: ast.expr, wanted: ast.expr, env: Env, ctx: Context) -> Env:
    """Return the environment after ``x.dtype == torch.bool`` held."""
    dtype = evaluate(wanted, env, ctx.silent())
    if not isinstance(dtype, DType) or dtype.kind == "unknown":
        return dict(env)
    kind = dtype.kind
    return _changed(
        node, env, ctx, lambda tensor: replace(tensor, dtype=kind, role=tensor.role or "asked")
    )


def _changed(node: ast.expr, env: Env, ctx: Context, change: Callable[[Tensor], Tensor]) -> Env:
    """Return the environment with a changed tensor; unchanged if the node is no tensor."""
    path = path_of(node)
    value = evaluate(node, env, ctx.silent())
    if path is None or not isinstance(value, Tensor):
        return dict(env)
    return {**env, path: change(value)}


def _none(node: ast.expr, env: Env, ctx: Context, is_none: bool) -> Env | None:
    if isinstance(node, ast.NamedExpr):
        node = node.target
    path = path_of(node)
    if path is None:
        return dict(env)
    if is_none and _as_given(path, env, ctx) is not None:
        return None
    if is_none:
        # Annotations often leave out Optional, so the branch for None may run despite them.
        return {**env, path: NONE}
    value = evaluate(node, env, ctx.silent())
    left = without(value, NoneValue)
    if left is None:
        # Other code assigns an attribute, or a variable that it declares to be another scope's.
        shared = any(map(ctx.module.says, ("global", "nonlocal")))
        own = isinstance(node, ast.Name) and path in env and not shared
        return None if own else {**env, path: UNKNOWN}
    return dict(env) if left is value else {**env, path: left}


def _as_given(path: str, env: Env, ctx: Context) -> Value | None:
    """Return the number or list that all calls give a parameter, if it still has that value."""
    agreed = ctx.analysis.agreed.get(ctx.calls[-1]) if ctx.calls and not ctx.depth else None
    if agreed is None:
        return None
    value = agreed.get(path, UNKNOWN)
    return value if value is env.get(path) and isinstance(value, (Scalar, Sequence)) else None


def _truthiness(node: ast.expr, env: Env, ctx: Context, holds: bool) -> Env | None:
    given = _as_given(node.id, env, ctx) if isinstance(node, ast.Name) else None
    if isinstance(given, Scalar) and given.known and bool(given.value) is not holds:
        return None
    path = path_of(node) if holds else None
    if path is None:
        return dict(env)
    value = evaluate(node, env, ctx.silent())
    if isinstance(value, Union):
        left = without(value, NoneValue)
        return {**env, path: UNKNOWN if left is None else left}
    return dict(env)


def _call(test: ast.Call, env: Env, ctx: Context, holds: bool) -> Env | None:
    args = given_to(test)
    if isinstance(test.func, ast.Attribute) and test.func.attr not in TYPE_TEST_NAMES:
        return dict(env)  # the callee, and so its cost, makes no difference
    callee = evaluate(test.func, env, ctx.silent()) if args else UNKNOWN
    if not isinstance(callee, External):
        return dict(env)
    if callee.name == "builtins.isinstance" and len(args) == 2:
        return _instance(args[0], args[1], env, ctx, holds)
    if callee.name == "builtins.issubclass" and len(args) == 2:
        return _subclass(args[0], args[1], env, ctx, holds)
    if callee.name in IS_TENSOR:
        return _narrow_to(args[0], [External("torch.Tensor")], env, ctx, holds)
    if callee.name == "builtins.all" and holds:
        return _each(args[0], env, ctx)
    return dict(env)


def _each(test: ast.expr, env: Env, ctx: Context) -> Env | None:
    """Return the environment after ``all(isinstance(x, Tensor) for x in xs)`` held."""
    match test:
        case (
            ast.GeneratorExp(elt=asked, generators=[clause])
            | ast.ListComp(elt=asked, generators=[clause])
        ) if not clause.ifs and isinstance(clause.target, ast.Name):
            path = path_of(clause.iter)
        case _:
            return dict(env)
    value = UNKNOWN if path is None else evaluate(clause.iter, env, ctx.silent())
    if path is None or not (value is UNKNOWN or isinstance(value, Sequence)):
        return dict(env)
    element = value.element if isinstance(value, Sequence) else UNKNOWN
    name = clause.target.id
    after = narrow(asked, {**env, name: element}, ctx, holds=True)
    found = UNKNOWN if after is None else after[name]
    if found in (UNKNOWN, element):
        return dict(env)
    held = value if isinstance(value, Sequence) else Sequence("sequence", UNKNOWN)
    return {**env, path: replace(held, element=found, items=None)}


def _subclass(node: ast.expr, classes: ast.expr, env: Env, ctx: Context, holds: bool) -> Env | None:
    """Return the environment after ``issubclass(wanted, torch.Tensor)``, for known classes."""
    value = evaluate(node, env, ctx.silent())
    verdicts = [_derives(value, one, ctx.analysis) for one in _class_list(classes, env, ctx)]
    if True in verdicts:
        return dict(env) if holds else None
    return None if holds and verdicts and None not in verdicts else dict(env)


def _derives(value: Value, base: Value, analysis: Analysis) -> bool | None:
    """True if a class derives from another, False if it does not, None if that is undecided."""
    name = base.name if isinstance(base, External) else ""
    match value:
        case External(name=own) if own == name:
            return True
        case ClassValue(info=info) if name and name in lineage(info, analysis):
            return True
        case ClassValue(info=info) if isinstance(base, ClassValue):
            return True if base.info in lineage(info, analysis) else None
    tensor, array = (
        _is_tensor_class(value)
        or (isinstance(value, ClassValue) and is_tensor_class(value.info, analysis)),
        isinstance(value, External) and value.name == ARRAY,
    )
    apart = (tensor and name == ARRAY) or (array and name in TENSOR_CLASSES)
    return False if apart else None


ARRAY = "numpy.ndarray"


def _instance(node: ast.expr, kinds: ast.expr, env: Env, ctx: Context, holds: bool) -> Env | None:
    options = _class_list(kinds, env, ctx)
    return _narrow_to(node, options, env, ctx, holds)


def _class_list(node: ast.expr, env: Env, ctx: Context) -> list[Value]:
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, ast.Tuple):
        return [o for e in node.elts for o in _class_list(e, env, ctx)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_class_list(node.left, env, ctx), *_class_list(node.right, env, ctx)]
    name = dotted_name(node)
    if name == "Tensor" or name.endswith(".Tensor"):
        value = resolve_dotted(name, ctx.module, ctx.analysis)
        return [External("torch.Tensor") if value is UNKNOWN else value]
    value = evaluate(node, env, ctx.silent())
    if isinstance(value, Sequence) and value.items is not None:
        return list(value.items)
    return [value]


def _narrow_to(
    node: ast.expr, classes: list[Value], env: Env, ctx: Context, holds: bool
) -> Env | None:
    if isinstance(node, ast.NamedExpr):
        node = node.target
    path = path_of(node)
    if path is None or not classes or any(isinstance(c, type(UNKNOWN)) for c in classes):
        return dict(env)
    value = evaluate(node, env, ctx.silent())
    if value is LOADED:
        return dict(env)  # the value lies on the host, whatever its type
    reason = Reason(f"isinstance test of `{path}`", node, source=Source.TYPE_TEST)
    options = value.options if isinstance(value, Union) else (value,)
    if isinstance(options[0], Instance) and all(
        isinstance(c, External) and c.name in MODULE_WRAPPERS for c in classes
    ):
        return dict(env)  # a wrapped module is the same value as the module
    verdicts = [is_one_of(option, classes) for option in options]
    if not holds:
        if value is UNKNOWN and any(_is_tensor_class(kind) for kind in classes):
            return {**env, path: NO_TENSOR}
        pairs = zip(options, verdicts, strict=True)
        kept = [number_but(o, classes) for o, verdict in pairs if verdict is not True]
        if not kept and declared_alone(value) and all(map(_is_tensor_class, classes)):
            # Annotations often leave out numbers; code that tests for a tensor is given some.
            return {**env, path: NO_TENSOR}
        return {**env, path: union(kept)} if kept else None
    if any(map(_is_container_class, classes)):
        # The test shows the kind of the container; its contents are known already.
        verdicts = [
            True if v is None and isinstance(o, (Sequence, Mapping_)) else v
            for o, v in zip(options, verdicts, strict=True)
        ]
    surer = reason if all(map(_is_tensor_class, classes)) else None
    kept = [tested(o, surer) for o, verdict in zip(options, verdicts, strict=True) if verdict]
    unknown = any(verdict is None for verdict in verdicts)
    declared = not ctx.depth and _only_declared(value)  # in a callee, the call gives the value
    if not kept and not unknown and declared and any(map(_is_tensor_class, classes)):
        return {**env, path: union(instance_value(c, reason) for c in classes)}
    if unknown or (not kept and isinstance(value, Union)):
        described = union(instance_value(c, reason) for c in classes)
        return {**env, path: union((*kept, described)) if described is not UNKNOWN else UNKNOWN}
    return {**env, path: union(kept)} if kept else None


def _only_declared(value: Value) -> bool:
    """True for a number, an array or an iterable that is only declared.

    Code that nevertheless tests if it is a tensor is written for tensors too.
    """
    if isinstance(value, Scalar):
        return not value.known and value.read is None and not value.size_of
    if isinstance(value, Sequence):
        return value.kind in ("sequence", "iterable") and value.items is None
    return isinstance(value, NDArray)


def instance_value(kind: Value, reason: Reason) -> Value:
    """Return an object of the class ``kind``; UNKNOWN for unknown classes."""
    match kind:
        case External(name=name):
            if name in ("builtins.list", "builtins.tuple", "builtins.set"):
                return Sequence(name.rpartition(".")[2], UNKNOWN)
            if name.endswith((".Sequence", ".Iterable")):
                return Sequence("sequence", UNKNOWN)
            if name == "builtins.dict" or name.endswith(".Mapping"):
                return Mapping_(UNKNOWN, UNKNOWN)
            return instance_of(name, reason)
        case ClassValue(info=info):
            return Instance(info.key, info)
    return UNKNOWN


def _is_tensor_class(kind: Value) -> bool:
    return isinstance(kind, External) and kind.name in TENSOR_CLASSES


def _is_container_class(kind: Value) -> bool:
    return isinstance(kind, External) and kind.name.rpartition(".")[2] in CONTAINER_TYPES


CONTAINER_TYPES = ("list", "tuple", "set", "dict", "Sequence", "Iterable", "Mapping", "Collection")


HANDLERS: dict[type[ast.expr], Callable[[Any, Env, Context, bool], Env | None]] = {
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.Call: _call,
    ast.NamedExpr: _walrus,
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _truthiness,
}
