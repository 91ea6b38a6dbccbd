"""The values of a function's parameters by the function itself, without its calls."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cached_property
from inspect import cleandoc
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.followed import CallWatch, may_follow, standing_answer
from flake8_torchperf.interpreter.inference.from_callees import Caller, told_by_callees
from flake8_torchperf.interpreter.inference.placed import as_placed, placed_in
from flake8_torchperf.interpreter.inference.usage_inference import UsesOfNames, evidence_of
from flake8_torchperf.interpreter.stated_types.annotations import annotated
from flake8_torchperf.interpreter.stated_types.class_hierarchy import torch_kind
from flake8_torchperf.interpreter.stated_types.docstring_types import (
    documented,
    documented_as_boolean,
)
from flake8_torchperf.project.answers import HEADED
from flake8_torchperf.project.function_facts import DOCSTRING, SPEAKS_OF_BOOLEANS
from flake8_torchperf.syntax.docstrings import raw_docstring
from flake8_torchperf.values.devices import is_host_name
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    Device,
    Mapping_,
    NoneValue,
    Reason,
    Returning,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    tensor_of,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo, FunctionNode, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes


# The value of ``**keywords`` without an annotation.
ANY_KEYWORDS = Mapping_(Scalar("str"), UNKNOWN)


def constant(value: object) -> Value:
    """Return a literal as a value."""
    if value is None:
        return NONE
    if isinstance(value, (bool, int, float, str)):
        return Scalar(type(value).__name__, value, known=True)
    return UNKNOWN


def default_value(default: ast.expr, module: ModuleMap) -> Value | None:
    """Return the default of a parameter, if it is a literal or the device of a name."""
    match default:
        case ast.Constant(value=value):
            return constant(value)
        case ast.Call(func=func, args=[ast.Constant(value=str() as name)], keywords=[]) if (
            module.qualify(func) == "torch.device"
        ):
            return Device("host" if is_host_name(name) else "device")
    return None


def parameters_of(args: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters that a call can name or count to, in order, each with its default."""
    ordinary = [*args.posonlyargs, *args.args]
    without = len(ordinary) - len(args.defaults)
    defaults = [*[None] * without, *args.defaults, *args.kw_defaults]
    return list(zip([*ordinary, *args.kwonlyargs], defaults, strict=True))


def default_of(name: str, function: FunctionNode) -> ast.expr | None:
    """Return the default of a parameter; None if there is no such default."""
    return next(
        (value for parameter, value in parameters_of(function.args) if parameter.arg == name), None
    )


def literal_default(name: str, function: FunctionNode) -> ast.Constant | None:
    """Return the literal default of a parameter; None if the default is no literal."""
    default = default_of(name, function)
    return default if isinstance(default, ast.Constant) else None


DECLARED: Cache[str, dict[str, Value]] = Cache("declared parameters")


def declared_parameters(info: FunctionInfo, analysis: Analysis) -> dict[str, Value]:
    """Return the value of each parameter, ``self`` left out."""
    known = DECLARED.table(analysis)
    if info.key not in known:
        known[info.key] = _declared(info, analysis)
    return known[info.key]


# The kind of question that asks for the values of parameters.
PARAMETERS = "parameters"


def _declared(info: FunctionInfo, analysis: Analysis) -> dict[str, Value]:
    """Return the values of the parameters; if the body shows some, they are recorded."""
    is_followed = may_follow(info, analysis)
    answer = standing_answer(info, PARAMETERS, None, analysis) if is_followed else None
    if answer is not None:
        known: dict[str, Value] = answer[0]
        return known
    watch = CallWatch(analysis)
    body = FunctionBody(info)
    found = declare(info, body, analysis)
    if body.is_read and is_followed:
        watch.note(info, PARAMETERS, None, found)
        return found
    watch.close()
    if body.is_read:
        info.ask()
    return found


class FunctionBody:
    """The definition of a function, with its body; reading it is no query."""

    def __init__(self, info: FunctionInfo) -> None:
        self._info = info
        self.is_read = False

    @property
    def node(self) -> FunctionNode:
        """The definition."""
        self.is_read = True
        return self._info.tree

    @property
    def nodes(self) -> Nodes:
        """The nodes of the definition."""
        return self._info.module.nodes(self.node)


def declare(info: FunctionInfo, body: FunctionBody, analysis: Analysis) -> dict[str, Value]:
    """Return the values of the parameters by the declaration and the body."""
    found: dict[str, Value] = {}
    spec = info.tree.args
    method = info.owner is not None and "staticmethod" not in info.decorators
    docstring = _Docstring(info)

    def uses() -> UsesOfNames:
        return evidence_of(body.node, info.module, analysis)

    for position, (parameter, default) in enumerate(parameters_of(spec)):
        if position == 0 and method:
            continue
        name = parameter.arg
        value = _of_parameter(parameter, default, info, docstring, analysis)
        if analysis.conventions.says("variable", name, "host-tensors"):
            value = on_host(value)
        if value is UNKNOWN or _container_of_unknown(value):
            optional = isinstance(default, ast.Constant) and default.value is None
            used = uses().value_of(name, parameter, optional=optional)
            if used is UNKNOWN and value is UNKNOWN and parameter.annotation is None:
                caller = Caller(body.node, info.module, info.owner)
                used = _by_callees(name, uses(), caller, analysis, optional=optional)
            value = used if used is not UNKNOWN else value
            if value is UNKNOWN and name == "closure" and _of_optimizer(info, analysis):
                value = _closure(parameter, optional=optional)
        if isinstance(value, Tensor):
            placed = placed_in(body.node, info.module, info.owner, analysis)
            value = as_placed(value, name, placed)
        found[name] = value
    if spec.vararg is not None:
        name = spec.vararg.arg
        inner = _annotation(spec.vararg, info, analysis)
        if inner is UNKNOWN:
            used = uses().value_of(name, spec.vararg)
            inner = used.element if isinstance(used, Sequence) else inner
        found[name] = Sequence("tuple", inner)
    if spec.kwarg is not None:
        inner = _annotation(spec.kwarg, info, analysis)
        whole = isinstance(inner, Mapping_) and _is_unpacked(spec.kwarg.annotation)
        found[spec.kwarg.arg] = inner if whole else Mapping_(Scalar("str"), inner)
    if _is_forward(info):
        _assume_forward(found, info, body, analysis, uses)
    if analysis.compiled is not None and id(info.tree) in analysis.compiled.entries:
        _assume_compiled(found, info, body, uses)
    return found


class _Docstring:
    """The docstring of a function and, for a constructor, of its class; parsed on first use.

    Most docstrings add nothing to the annotations.
    """

    def __init__(self, info: FunctionInfo) -> None:
        self._info = info
        self._made = info.owner if info.name == "__init__" else None

    @cached_property
    def _raw(self) -> list[str]:
        """The docstrings as written; that of a class is in its head."""
        if self._made is None:
            return [DOCSTRING.of(self._info)]
        self._made.ask(HEADED)
        return [DOCSTRING.of(self._info), raw_docstring(self._made.tree)]

    def names(self, name: str) -> bool:
        """True if the docstring contains a name."""
        return any(name in raw for raw in self._raw)

    @cached_property
    def text(self) -> str:
        """The text without its indentation."""
        return "\n".join(map(cleandoc, self._raw))

    def calls_boolean(self, name: str) -> bool:
        """True if the docstring calls a name boolean."""
        if self._made is None and not SPEAKS_OF_BOOLEANS.of(self._info):
            return False
        speaks = any("bool" in raw.lower() for raw in self._raw)
        return speaks and self.names(name) and documented_as_boolean(self.text, name)


def _by_callees(
    name: str, uses: UsesOfNames, caller: Caller, analysis: Analysis, *, optional: bool
) -> Value:
    use = uses.uses.get(name)
    if use is None or not use.given:
        return UNKNOWN
    value = told_by_callees(use, name, caller, analysis)
    return union((value, NONE)) if optional and value is not UNKNOWN else value


def on_host(value: Value) -> Value:
    """Return a tensor, or a list of tensors, as one that lies on the host.

    torch/optim/adam.py, "special device hosting for step": only ``capturable`` and ``fused`` put
    step counters on the device, and those implementations do not read them.
    """
    if isinstance(value, Sequence) and isinstance(value.element, Tensor):
        return replace(value, element=replace(value.element, device="host"), items=None)
    tensor = tensor_of(value)
    return value if tensor is None else replace(tensor, device="host")


def _of_optimizer(info: FunctionInfo, analysis: Analysis) -> bool:
    return info.owner is not None and torch_kind(info.owner, analysis) == "optimizer"


def _closure(parameter: ast.arg, *, optional: bool) -> Value:
    """Return the ``closure`` of an optimizer, which "reevaluates the model and returns the loss".

    torch/optim/optimizer.py, Optimizer.step. The annotation there says float; the examples of
    docs/source/optim.md return the tensor on which ``backward`` was called.
    """
    reason = Reason("an optimizer's `closure` returns the loss", parameter, None, Strength.INFERRED)
    loss = Returning(Tensor(reason, "float", scalar=True))
    return union((loss, NONE)) if optional else loss


def _of_parameter(
    parameter: ast.arg,
    default: ast.expr | None,
    info: FunctionInfo,
    docstring: _Docstring,
    analysis: Analysis,
) -> Value:
    name = parameter.arg
    value = _annotation(parameter, info, analysis)
    if parameter.annotation is None and docstring.names(name):
        reason = Reason(f"docstring of parameter `{name}`", parameter, source=Source.DOCSTRING)
        value = documented(docstring.text, name, reason, analysis)
    if isinstance(value, (Tensor, Union)) and docstring.calls_boolean(name):
        value = _boolean(value)
    if isinstance(default, ast.Constant) and default.value is None and value is not UNKNOWN:
        return union((value, NONE)) if not isinstance(value, NoneValue) else value
    return value


def _boolean(value: Value) -> Value:
    """Return the value with its tensor as a boolean one, unless another dtype is known."""
    match value:
        case Tensor(dtype="unknown"):
            return replace(value, dtype="bool")
        case Union(options=options):
            return replace(value, options=tuple(map(_boolean, options)))
    return value


def _annotation(parameter: ast.arg, info: FunctionInfo, analysis: Analysis) -> Value:
    if parameter.annotation is None:
        return UNKNOWN
    told = f"annotation of parameter `{parameter.arg}`"
    reason = Reason(told, parameter, source=Source.PARAMETER_ANNOTATION)
    return annotated(parameter.annotation, info.module, analysis, reason)


def _container_of_unknown(value: Value) -> bool:
    """True for a container whose elements are unknown, as with ``grads: list``."""
    return isinstance(value, Sequence) and value.element is UNKNOWN and value.items is None


def _is_unpacked(annotation: ast.expr | None) -> bool:
    """True for ``**kwargs: Unpack[Options]``, whose typed dict stands for all keywords."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Unpack") | ast.Attribute(attr="Unpack")):
            return True
    return False


def _is_forward(info: FunctionInfo) -> bool:
    return info.owner is not None and info.name == "forward"


def _dicts(body: FunctionBody) -> set[str]:
    """Return the names that a function indexes by text, which no tensor allows."""
    return {
        node.value.id
        for node in body.nodes.of(ast.Subscript)
        if isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }


def _assume_compiled(
    found: dict[str, Value],
    info: FunctionInfo,
    body: FunctionBody,
    uses: Callable[[], UsesOfNames],
) -> None:
    """Assume tensors where a compiled function calls their methods: arrays become tensors."""
    named = _dicts(body)
    for parameter, default in parameters_of(info.tree.args):
        name = parameter.arg
        told = parameter.annotation is not None or default is not None or name in named
        asked = "" if told or found.get(name) is not UNKNOWN else uses().answers(name)
        if asked:
            because = f"parameter `{name}` of a compiled function, asked for `.{asked}`"
            found[name] = Tensor(Reason(because, parameter, None, Strength.INFERRED))


def _assume_forward(
    found: dict[str, Value],
    info: FunctionInfo,
    body: FunctionBody,
    analysis: Analysis,
    uses: Callable[[], UsesOfNames],
) -> None:
    """Assume, by convention, that ``forward`` of a module takes tensors first."""
    spec = info.tree.args
    ordinary = [*spec.posonlyargs, *spec.args]
    if info.owner is None or torch_kind(info.owner, analysis) != "module" or len(ordinary) < 2:
        return
    first, name = ordinary[1], ordinary[1].arg
    required = len(ordinary) - len(spec.defaults) > 1
    free = first.annotation is None and required and found.get(name) is UNKNOWN
    if free and name not in _dicts(body):
        used = uses().asked(name)
        if used:
            told = Reason(
                f"first parameter `{name}` of `forward`, asked for `.{used}`",
                first,
                None,
                Strength.INFERRED,
            )
            found[name] = Tensor(told)
            return
        reason = Reason(f"first parameter `{name}` of `forward`", first, None, Strength.ASSUMED)
        found[name] = Tensor(reason)


def given_tensors(info: FunctionInfo, analysis: Analysis) -> bool:
    """True if a function's parameters are declared, or inferred, to be given tensors."""
    return any(_has_tensor(value) for value in declared_parameters(info, analysis).values())


def _has_tensor(value: Value) -> bool:
    if tensor_of(value) is not None:
        return True
    if isinstance(value, Sequence):
        return _has_tensor(value.element)
    return isinstance(value, Mapping_) and _has_tensor(value.any_value())
