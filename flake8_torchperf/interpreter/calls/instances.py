"""Classes of the project and their instances: attributes, construction and calls."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.calls import attribute_evidence, made_objects, summaries
from flake8_torchperf.interpreter.calls.call_log import note
from flake8_torchperf.interpreter.engine.analysis import MAX_ATTRIBUTES
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.dispatch import apply, attribute_of, evaluate
from flake8_torchperf.interpreter.inference.objects_of_program import overridden
from flake8_torchperf.interpreter.inference.tensor_api import foreign
from flake8_torchperf.interpreter.models import (
    torch_call_waits,
    torch_classes,
    torch_containers,
    wrappers,
)
from flake8_torchperf.interpreter.stated_types.annotations import (
    annotated,
    record_fields,
    record_kind,
)
from flake8_torchperf.interpreter.stated_types.class_hierarchy import (
    find_method,
    is_abstract,
    lineage,
    torch_kind,
)
from flake8_torchperf.interpreter.stated_types.docstring_types import documented
from flake8_torchperf.project.function_facts import KEPT_PARAMETERS
from flake8_torchperf.project.noted_writes import REGISTERING
from flake8_torchperf.syntax.docstrings import docstring, raw_docstring
from flake8_torchperf.values.devices import CHOSEN, is_host_name
from flake8_torchperf.values.elements import is_loader
from flake8_torchperf.values.named_types import MODULE_WRAPPERS, TENSOR_CLASSES
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    BoundMethod,
    ClassValue,
    Closure,
    Function,
    Instance,
    Mapping_,
    NoneValue,
    Partial,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Value,
    join,
    tensor_of,
    union,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env


def record_attribute(owner: Sequence | Mapping_, name: str, ctx: Context) -> Value | None:
    """Return a method or property of a named tuple's or dict's class; None if it has none."""
    method = None if owner.info is None else find_method(owner.info, name, ctx.analysis)
    return None if method is None else _bound(method, owner, ctx)


def _bound(method: Function, owner: Value, ctx: Context) -> Value:
    """Return a method bound to an object, or the value of the property that it is."""
    bound = Function(method.info, method.key, owner)
    if any(d.rpartition(".")[2] in PROPERTY_NAMES for d in method.info.decorators):
        return summaries.call_bound(bound, ctx)
    return bound


def instance_attribute(owner: Instance, name: str, ctx: Context) -> Value:
    """Return the value of ``owner.name``."""
    analysis = ctx.analysis
    given = made_objects.attribute_held(owner, name)
    if given is not None:
        declared = None if owner.info is None else class_attribute(owner.info, name, ctx)
        if made_objects.is_better(given, declared):
            return given
    if owner.info is None:
        return torch_containers.given_by(
            owner, torch_classes.attribute_of_class(owner.name, name, ctx)
        )
    method = find_method(owner.info, name, analysis)
    if method is not None:
        below = overridden(owner.info, name, ctx) if is_abstract(method.info) else None
        return below or _bound(method, owner, ctx)
    held = owner.parts
    if held is not None and held.items is not None and name in held.names:
        return held.items[held.names.index(name)]
    found = class_attribute(owner.info, name, ctx)
    if found is not None:
        return found
    if name in wrappers.INSIDE and torch_kind(owner.info, analysis) == "module":
        return owner  # the class has no such attribute, so the module is wrapped here
    for base in lineage(owner.info, analysis):
        if isinstance(base, str):
            inherited = torch_classes.attribute_of_class(base, name, ctx)
            if isinstance(inherited, BoundMethod):
                return replace(inherited, owner=replace(owner, name=base))
            if inherited is not UNKNOWN:
                return inherited
    below = overridden(owner.info, name, ctx)
    if below is not None:
        return below
    inside = _inside(owner)
    if inside is not None and find_method(owner.info, "__getattr__", analysis) is not None:
        return attribute_of(inside, name, None, ctx)
    # Only modules have methods of these names, so the class is a mixin for modules.
    return BoundMethod(Instance("torch.nn.Module"), name) if name in REGISTERING else UNKNOWN


PROPERTY_NAMES = ("property", "cached_property", "lazy_property", "lazyproperty")


# A class, an attribute, and the methods that write it and are being interpreted.
AttributeKey: TypeAlias = "tuple[str, str, frozenset[str]]"
NO_WRITERS: frozenset[str] = frozenset()
ATTRIBUTES: Cache[AttributeKey, Value | None] = Cache("attributes")


def class_attribute(info: ClassInfo, name: str, ctx: Context) -> Value | None:
    """Return the value that a class and its bases give an attribute; None if they give none."""
    known = ATTRIBUTES.table(ctx.analysis)
    key = (info.key, name, NO_WRITERS)
    if key not in known:
        # A method's writes are known only when its interpretation ends, so the key differs then.
        key = (info.key, name, _writers_under_way(info, name, ctx))
        if key not in known:
            known[key] = UNKNOWN  # an attribute that depends on itself ends here
            ctx.analysis.underway[key] = len(ctx.analysis.underway)
            counts = ctx.budget.counts()
            stack = ctx.analysis.stack
            stack.attributes += 1
            place = ctx if stack.attributes > MAX_ATTRIBUTES else ctx.but(depth=0)
            made = _of_lineage(info, name, key, place)
            stack.attributes -= 1
            known[key] = _left_open(made, info, name, ctx) if made in (UNKNOWN, NONE) else made
            ctx.budget.reset(counts)  # what made the value does not run here
            del ctx.analysis.underway[key]
            return known[key]
    if key in ctx.analysis.underway:
        ctx.analysis.meet(key)
    return known[key]


def _left_open(made: Value | None, info: ClassInfo, name: str, ctx: Context) -> Value | None:
    """Return an attribute that its class leaves open, by other code or by its use."""
    if made is NONE:
        return attribute_evidence.written_elsewhere(info, name, ctx) or made
    told = attribute_evidence.told_by_use(info, name, ctx.analysis)
    if told is not None and _answers_as_other(told, name, info, ctx.analysis):
        told = None
    return told or made


def _writers_under_way(info: ClassInfo, name: str, ctx: Context) -> frozenset[str]:
    """Return the methods that write the attribute and are being interpreted right now."""
    return frozenset(
        method.key
        for base in lineage(info, ctx.analysis)
        if not isinstance(base, str) and name in base.written_by
        for method in _writers(base, name)
        if summaries.out_of_reach(method, ctx)
    )


def _writers(base: ClassInfo, name: str) -> list[FunctionInfo]:
    """Return the first methods of a class that write an attribute; the others are ignored."""
    return base.written_by.get(name, [])[:MAX_WRITERS]


def _of_lineage(info: ClassInfo, name: str, key: AttributeKey, ctx: Context) -> Value | None:
    for base in lineage(info, ctx.analysis):
        if isinstance(base, str):
            continue
        found = _declared(base, name, info, key, ctx)
        if found is None or found is UNKNOWN:
            found = _documented(base, name, ctx.analysis) or found
        if found is not None:
            return UNKNOWN if _answers_as_other(found, name, info, ctx.analysis) else found
    return None


def _answers_as_other(value: Value, name: str, info: ClassInfo, analysis: Analysis) -> bool:
    """True if a value is a tensor only by inference, and its class uses attributes tensors lack."""
    tensor = tensor_of(value)
    if tensor is None or tensor.reason.strength is Strength.STATED:
        return False
    return any(
        foreign(asked, analysis.table)
        for base in lineage(info, analysis)
        if not isinstance(base, str)
        for asked in base.read_of(name)
    )


def _documented(info: ClassInfo, name: str, analysis: Analysis) -> Value | None:
    """Return the value that a class's docstring states for an attribute; None if there is none."""
    if name not in raw_docstring(info.tree):
        return None
    reason = Reason(f"docstring of `{info.name}`", source=Source.DOCSTRING)
    found = documented(docstring(info.tree), name, reason, analysis)
    return None if found is UNKNOWN else found


def _declared(
    base: ClassInfo, name: str, info: ClassInfo, key: AttributeKey, ctx: Context
) -> Value | None:
    analysis = ctx.analysis
    written: Value | None = None
    if name in base.annotations:
        stated = annotation_of(base.annotations[name], base, name, analysis)
        if isinstance(stated, Scalar) and _is_left_at_host(base, name, analysis):
            return _evaluate(base.assigned[name], base, ctx)
        if stated is not UNKNOWN and not (isinstance(stated, Tensor) and stated.dtype == "unknown"):
            return stated
        written = None if stated is UNKNOWN else stated
    writers = _writers(base, name)
    values: list[Value] = []
    for method in writers:
        writes = summaries.writes_of(method, Instance(info.key, info), name, ctx)
        if name in writes:
            registered = method in base.setters.get(name, ())
            values.append(_registered(writes[name], info, ctx) if registered else writes[name])
            # A method that appends to the attribute reads it first, so store the value so far.
            ATTRIBUTES.table(analysis)[key] = _reconciled(values, written)
    if values:
        return _reconciled(values, written)
    if written is not None:
        return written
    if name in base.assigned:
        return _evaluate(base.assigned[name], base, ctx)
    return UNKNOWN if writers else None


MAX_WRITERS = 4


def _is_left_at_host(base: ClassInfo, name: str, analysis: Analysis) -> bool:
    """True for a field whose default is the host, as is all that the project's texts give it."""
    match base.assigned.get(name):
        case ast.Constant(value=str() as device) if is_host_name(device):
            given = analysis.project.option_values(name)
            return given.whole and all(one is None or is_host_name(one) for one in given.values)
    return False


def _registered(value: Value, info: ClassInfo, ctx: Context) -> Value:
    """Return a registered tensor, which moves with its module."""
    if isinstance(value, Tensor) and torch_kind(info, ctx.analysis) == "module":
        return replace(value, device=CHOSEN, origin="", memory="")
    return value


def _reconciled(values: list[Value], stated: Value | None) -> Value:
    """Return the value of an attribute that several methods write.

    A tensor stays a tensor if other methods write None or an unknown value. ``stated`` is the
    declared value; it is returned if no method writes a tensor.
    """
    known = [v for v in values if v is not UNKNOWN]
    if not known:
        return stated if stated is not None else UNKNOWN
    result = known[0]
    for value in known[1:]:
        result = union((result, value)) if isinstance(value, NoneValue) else join(result, value)
    if len(known) < len(values):
        result = join(UNKNOWN, result)
    if stated is not None and tensor_of(result) is None:
        return stated
    return result


def annotation_of(node: ast.expr, info: ClassInfo, name: str, analysis: Analysis) -> Value:
    """Return the value of an attribute by its annotation in the class body."""
    reason = Reason(f"annotation of `{info.name}.{name}`")
    return annotated(node, info.module, analysis, reason)


def _evaluate(node: ast.expr, info: ClassInfo, ctx: Context) -> Value:
    place = ctx.but(sink=None, module=info.module, writes=None)
    return evaluate(node, {}, place)


def class_member(info: ClassInfo, name: str, ctx: Context) -> Value:
    """Return the value of ``Class.name``: a method, a class variable or a nested class."""
    method = find_method(info, name, ctx.analysis)
    if method is not None:
        return method
    nested = info.module.classes.get(f"{info.name}.{name}")
    if nested is not None:
        return ClassValue(nested, nested.key)
    found = class_attribute(info, name, ctx)
    if found is not None:
        return found
    if name == "apply" and any(
        isinstance(b, str) and b.endswith("autograd.Function") for b in lineage(info, ctx.analysis)
    ):
        return _apply(info, ctx)
    return UNKNOWN


def _apply(info: ClassInfo, ctx: Context) -> Value:
    """Return ``apply`` of an autograd function: its ``forward``, which autograd gives a context.

    If the class has a ``setup_context``, ``forward`` takes no context.
    """
    forward = find_method(info, "forward", ctx.analysis)
    if forward is None:
        return UNKNOWN
    separate = find_method(info, "setup_context", ctx.analysis) is not None
    return forward if separate else Partial(forward, (UNKNOWN,), ())


def super_instance(ctx: Context) -> Value:
    """Return the value of ``super()`` in a method: the object, seen as its first base."""
    if ctx.owner is None:
        return UNKNOWN
    bases = lineage(ctx.owner, ctx.analysis)[1:]
    if not bases:
        return UNKNOWN
    first = bases[0]
    if first in TENSOR_CLASSES:
        return Tensor(Reason(f"`{ctx.owner.name}` is a tensor class"))
    return Instance(first) if isinstance(first, str) else Instance(first.key, first)


# Methods that run when an object is made.
CONSTRUCTORS = ("__init__", "__post_init__")


def construct(callee: ClassValue, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the object that ``Class(...)`` makes; a named tuple holds its arguments."""
    info = callee.info
    if ctx.analysis.log is not None or ctx.analysis.watched:
        for name in CONSTRUCTORS:
            method = find_method(info, name, ctx.analysis)
            if method is not None:
                bound = Instance(info.key, info)
                note(Function(method.info, method.key, bound), arguments.node, {}, ctx)
                if ctx.analysis.watched:
                    summaries.observe(method.info, bound, arguments, ctx)
    kind = record_kind(info, ctx.analysis)
    if kind:
        return _record(info, kind, arguments, ctx)
    kind = torch_kind(info, ctx.analysis)
    if kind == "parameter" or any(b in ("torch.Tensor", "torch.nn.Parameter") for b in info.bases):
        return Tensor(Reason(f"`{info.name}` is a tensor class", arguments.node))
    held = made_objects.made_dict(info, arguments, ctx.analysis)
    if held is not None and kind != "module":
        return held
    fields = made_objects.held_fields(info, arguments, ctx.analysis)
    return Instance(info.key, info, parts=_wrapped(info, arguments, ctx), held=fields)


# By class: the attributes that hold a constructor's arguments, with each argument's place and name.
KEPT: Cache[str, list[tuple[str, int, str]]] = Cache("what constructors keep")


def _wrapped(info: ClassInfo, arguments: Arguments, ctx: Context) -> Sequence | None:
    """Return the modules and functions that an object is given and stores, by attribute name."""
    if not any(isinstance(a.value, WRAPPABLE) for a in arguments.all()):
        return None
    held: dict[str, Value] = {}
    for attribute, position, name in _kept(info, ctx.analysis):
        given = arguments.value(position, name)
        if isinstance(given, WRAPPABLE) and _is_whole(given):
            held[attribute] = given
    return Sequence("tuple", UNKNOWN, tuple(held.values()), tuple(held)) if held else None


WRAPPABLE = (Function, Closure, Instance, Partial)


def _is_whole(given: Value) -> bool:
    """True if no part of the object has parts itself, so that repeated wrapping ends."""
    inner = given.parts.items or () if isinstance(given, Instance) and given.parts else ()
    return not any(isinstance(part, Instance) and part.parts is not None for part in inner)


def _kept(info: ClassInfo, analysis: Analysis) -> list[tuple[str, int, str]]:
    return KEPT.kept(analysis, info.key, lambda: _keeps(info, analysis))


def _keeps(info: ClassInfo, analysis: Analysis) -> list[tuple[str, int, str]]:
    """Return assignments as ``self.model = model`` in the nearest ``__init__`` of a class."""
    init = find_method(info, "__init__", analysis)
    if init is None:
        wraps = any(
            base in MODULE_WRAPPERS for base in lineage(info, analysis) if isinstance(base, str)
        )
        return [("module", 0, "module")] if wraps else []
    return list(KEPT_PARAMETERS.of(init.info))


def _record(info: ClassInfo, kind: str, arguments: Arguments, ctx: Context) -> Value:
    """Return a named tuple or typed dict that holds its arguments."""
    fields: dict[str, Value] = {}
    for position, (name, (home, node)) in enumerate(record_fields(info, ctx.analysis).items()):
        given = arguments.get(position if kind == "NamedTuple" else -1, name)
        stated = annotation_of(node, home, name, ctx.analysis)
        value = UNKNOWN if given is None else given.value
        fields[name] = (
            stated if value is UNKNOWN or made_objects.is_guessed(value, stated) else value
        )
    if kind == "TypedDict":
        return Mapping_(UNKNOWN, UNKNOWN, tuple(fields.items()))
    return Sequence("tuple", UNKNOWN, tuple(fields.values()), tuple(fields), info)


def call_instance(callee: Instance, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the result of a call: a module runs ``forward``, any other object ``__call__``."""
    analysis = ctx.analysis
    if wrappers.MOVES_GIVEN in callee.facts:
        arguments = wrappers.moving(arguments)
    if callee.info is None:
        found = analysis.table.klass(callee.name)
        if found is not None and found.kind == "module":
            torch_call_waits.note_method(callee, "forward", arguments, ctx)
            if not torch_classes.is_layer(callee):
                ctx.budget.opaque_calls += 1
            return torch_classes.forward(callee, arguments, ctx)
        ctx.budget.opaque_calls += 1
        if found is not None and found.kind == "context":
            return arguments.value(0)  # `torch.enable_grad()(f)` behaves like `f`
        return torch_classes.call_torch_method(callee, "__call__", arguments, ctx)
    is_module = torch_kind(callee.info, analysis) == "module"
    names = ("forward", "__call__") if is_module else ("__call__", "forward")
    for name in names:
        method = find_method(callee.info, name, analysis)
        if method is not None and not is_abstract(method.info):
            return summaries.call_function(replace(method, bound=callee), arguments, env, ctx)
    for name in names:
        below = overridden(callee.info, name, ctx)
        if below is not None:
            return apply(below, arguments, env, ctx)
    inside = _inside(callee)
    if inside is None:
        ctx.budget.opaque_calls += 1
        return UNKNOWN
    return apply(inside, arguments, env, ctx)


def _inside(owner: Instance) -> Value | None:
    """Return the only module or function that an object is given and stores, or None."""
    held = () if owner.parts is None or not owner.parts.names else owner.parts.items
    return held[0] if held and len(held) == 1 else None


def container_item(owner: Instance, ctx: Context) -> Value:
    """Return the value of ``container[i]``, which its ``__getitem__`` returns."""
    if owner.info is not None:
        method = find_method(owner.info, "__getitem__", ctx.analysis)
        if method is not None:
            return summaries.call_bound(replace(method, bound=owner), ctx)
    return UNKNOWN


def iterated(owner: Instance, ctx: Context) -> Value:
    """Return the iterator of an object whose class has one of its own; other objects as they are.

    That is what ``__iter__`` returns or yields, or what ``__next__`` returns if it returns the
    object.
    """
    if owner.info is None or is_loader(owner):
        return owner
    method = find_method(owner.info, "__iter__", ctx.analysis)
    if method is None:
        return owner
    found = summaries.call_bound(replace(method, bound=owner), ctx)
    following = find_method(owner.info, "__next__", ctx.analysis)
    if isinstance(found, Instance) and found.info is owner.info and following is not None:
        each = summaries.call_bound(replace(following, bound=owner), ctx)
        return Sequence("iterator", each)
    return owner if found is UNKNOWN else found
