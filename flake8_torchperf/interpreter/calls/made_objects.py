"""Objects known by what they are made of: dataclasses, dicts of the project, outputs of models."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.models.containers import dict_of
from flake8_torchperf.interpreter.stated_types.annotations import annotated, record_fields
from flake8_torchperf.interpreter.stated_types.class_hierarchy import (
    dict_kind,
    find_method,
    lineage,
)
from flake8_torchperf.knowledge.objects import object_kind
from flake8_torchperf.values.combining import held_tensor
from flake8_torchperf.values.elements import fields_of
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    STR,
    UNKNOWN,
    Instance,
    Mapping_,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import ClassInfo
    from flake8_torchperf.values.arguments import Arguments


def made_dict(info: ClassInfo, arguments: Arguments, analysis: Analysis) -> Mapping_ | None:
    """Return the dict that a subclass of dict makes of its arguments; None for other classes."""
    kind = dict_kind(info, analysis)
    if not kind:
        return None
    maker = maker_of_fields(info, analysis)
    if maker is not None:
        fields = {**_defaults(maker, analysis), **given_fields(maker, arguments, analysis)}
        return Mapping_(STR, UNKNOWN, tuple(fields.items()), made=True, info=info)
    init = find_method(info, "__init__", analysis)
    if init is not None and init.info.tree.args.kwarg is None:
        return Mapping_(UNKNOWN, UNKNOWN, info=info)  # it may hold other things than its arguments
    return replace(dict_of(arguments), info=info)


# By class: the class whose declared fields are the parameters of its constructor.
FIELD_MAKERS: Cache[str, ClassInfo | None] = Cache("classes whose fields make objects")


def maker_of_fields(info: ClassInfo, analysis: Analysis) -> ClassInfo | None:
    """Return the class whose declared fields a constructor takes, as a dataclass's does."""
    return FIELD_MAKERS.kept(analysis, info.key, lambda: _maker(info, analysis))


def _maker(info: ClassInfo, analysis: Analysis) -> ClassInfo | None:
    for base in lineage(info, analysis):
        if isinstance(base, str):
            if object_kind(base) == "fields":
                return info
        elif "__init__" in base.methods:
            return None
        elif any(_makes_fields(decorator, base) for decorator in base.tree.decorator_list):
            return base
    return None


def _makes_fields(decorator: ast.expr, info: ClassInfo) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return object_kind(info.module.qualify(called)) == "decorator"


def given_fields(info: ClassInfo, arguments: Arguments, analysis: Analysis) -> dict[str, Value]:
    """Return the fields that a constructor's arguments say more of than their declarations."""
    fields: dict[str, Value] = {}
    for position, (name, (home, node)) in enumerate(record_fields(info, analysis).items()):
        given = arguments.get(position, name)
        reason = Reason(f"annotation of `{home.name}.{name}`")
        stated = annotated(node, home.module, analysis, reason)
        if given is not None and says_more(given.value, stated):
            fields[name] = _as_declared(given.value, stated)
    return fields


def _as_declared(given: Value, stated: Value) -> Value:
    """Return a tensor of the dtype that its field declares, unless its own is known."""
    declared = tensor_of(stated)
    if declared is None:
        return given
    if isinstance(given, Union):
        return replace(given, options=tuple(_as_declared(one, stated) for one in given.options))
    if isinstance(given, Tensor) and given.dtype == "unknown":
        return replace(given, dtype=declared.dtype)
    return given


def _defaults(info: ClassInfo, analysis: Analysis) -> dict[str, Value]:
    """Return the declared fields of an output; None by default is no value that it holds."""
    fields: dict[str, Value] = {}
    for name, (home, node) in record_fields(info, analysis).items():
        reason = Reason(f"annotation of `{home.name}.{name}`")
        fields[name] = annotated(node, home.module, analysis, reason)
    return fields


def says_more(given: Value, stated: Value) -> bool:
    """True if a value given for a field says more than the field's declaration.

    A number or None does not: another place may set the field.
    """
    held = held_tensor(given)
    if held is not None:
        believed = stated is UNKNOWN or held.reason.strength >= Strength.INFERRED
        return believed and not is_guessed(given, stated)
    match given:
        case Sequence(items=items):
            return bool(items)
        case Mapping_(items=items):
            return bool(items)
        case Scalar(kind="str", known=True, value=str()):
            return True
        case Instance():
            return stated is UNKNOWN or isinstance(stated, Instance)
    return False


def is_guessed(value: Value, stated: Value) -> bool:
    """True if a value is a tensor by an annotation alone, and a field is declared to hold numbers.

    An annotation of a parameter, as ``Dict[str, Tensor]``, says less of one entry than the field
    says of itself.
    """
    held = held_tensor(value)
    numbers = stated.items or (stated.element,) if isinstance(stated, Sequence) else (stated,)
    if held is None or not all(isinstance(one, Scalar) for one in numbers):
        return False
    computed = not {"getitem"}.issuperset(held.chain)
    return held.reason.source is Source.PARAMETER_ANNOTATION and not computed


def held_fields(info: ClassInfo, arguments: Arguments, analysis: Analysis) -> Mapping_ | None:
    """Return the fields that a dataclass's constructor is given, if it is one's."""
    maker = maker_of_fields(info, analysis)
    return None if maker is None else fields_of(given_fields(maker, arguments, analysis))


def attribute_held(owner: Instance, name: str) -> Value | None:
    """Return the attribute that this code gave an object; None if it says nothing of it."""
    return None if owner.held is None else dict(owner.held.items).get(name)


def is_better(held: Value, declared: Value | None) -> bool:
    """True if what an object was given is believed before what its class says of the attribute."""
    return tensor_of(held) is not None or declared is None or tensor_of(declared) is None
