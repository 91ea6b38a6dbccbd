"""Calls of torch's functions that wait in torch's own code, by the generated table of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.option_tests import Asker, is_never_taken
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training.input_pipeline import NOT_FUSED
from flake8_torchperf.interpreter.inference.parameters import literal_default
from flake8_torchperf.interpreter.models.torch_containers import lies_on_host
from flake8_torchperf.knowledge.call_waits import load
from flake8_torchperf.program.origins.comparisons import asked_by, parts, passes_none
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    Instance,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.knowledge.call_waits import Asked, Way
    from flake8_torchperf.values.arguments import Argument, Arguments

_PREFIX = "torch."


def note_function(name: str, arguments: Arguments, made: Value, ctx: Context) -> None:
    """Record the wait of a torch function or class of this name; ``made`` is its result."""
    if _is_torch(ctx):
        return
    table = ctx.analysis.table
    qualified = table.canonical(name)
    ways = load().function(qualified)
    if not ways:
        ways = load().method(_lineage(qualified, ctx.analysis), "__init__")
    if ways:
        owner = made if isinstance(made, Instance) else None
        _note(ways, qualified, arguments, owner, ctx, method=False)


def note_method(owner: Instance, name: str, arguments: Arguments, ctx: Context) -> None:
    """Record the wait of a method of one of torch's objects."""
    if _is_torch(ctx):
        return
    qualified = ctx.analysis.table.canonical(owner.name)
    ways = load().method(_lineage(qualified, ctx.analysis), name)
    if ways:
        _note(ways, f"{qualified}.{name}", arguments, owner, ctx, method=True)


def _is_torch(ctx: Context) -> bool:
    """True if torch itself is linted, where the waiting line is reported and not its callers."""
    return ctx.module.name.partition(".")[0] == "torch"


def told(made: Instance, arguments: Arguments, ctx: Context) -> Instance:
    """Return the object with those constructor arguments that decide whether its methods wait."""
    options = frozenset() if _is_torch(ctx) else load().options(_lineage(made.name, ctx.analysis))
    if not options:
        return made
    facts = {*made.facts, _SEEN}
    for parameter in options:
        given = arguments.get(parameter.position, parameter.name)
        if given is None:
            continue
        if isinstance(given.value, Scalar) and given.value.known:
            facts.add(_fact(parameter.name, bool(given.value.value)))
        elif given.node is not None and _is_switched_off(given.node, ctx):
            facts.add(_off(parameter.name))
    return replace(made, facts=frozenset(facts))


# The fact of an object whose construction was seen. The constructor's arguments of an object that
# is only declared are not known.
_SEEN = "made here"


def _fact(name: str, value: bool) -> str:
    return f"{name}={value}"


def _off(name: str) -> str:
    """Return the fact of an object whose constructor is given an option that is off."""
    return f"{name} off by its option"


def _is_switched_off(node: ast.expr, ctx: Context) -> bool:
    """True if no value that the project gives an expression is true, as for the test of a branch.

    Those are the settings of an option, or what the calls of the function pass.
    """
    tests = [*parts(node, holds=True)]
    if is_never_taken(tests, Asker(ctx.module, ctx.node, ctx.owner), ctx.analysis):
        return True
    for test, holds in tests:
        asked = asked_by(test)
        values = None if asked is None else ctx.analysis.values_of(asked, ctx.module)
        if values and passes_none(values, [(test, holds)]):
            return True
    return False


def _lineage(qualified: str, analysis: Analysis) -> tuple[str, ...]:
    found = analysis.table.klass(qualified)
    return () if found is None else (found.qualified, *found.bases)


def _note(
    ways: tuple[Way, ...],
    qualified: str,
    arguments: Arguments,
    owner: Instance | None,
    ctx: Context,
    *,
    method: bool,
) -> None:
    """Record that a call waits, by the first way whose conditions its arguments meet."""
    for way in ways:
        place = _place(way, arguments, owner, ctx)
        operand = None if place is None else _operand(way, arguments, owner, method=method)
        if place is not None and operand is not None:
            tensor, node = operand
            strength = min(tensor.reason.strength, _sure(way, owner))
            reason = Reason(f"torch/{way.where} waits", None, tensor.reason, strength)
            option = any(asked.asks == "on" for asked in way.asked)
            emit(
                place,
                SiteKind.TORCH_CALL,
                qualified.removeprefix(_PREFIX),
                arguments.node,
                replace(tensor, reason=reason),
                operand_node=node,
                traits=("option",) if option else (),
            )
            return


def note_scaled_step(owner: Instance, arguments: Arguments, ctx: Context) -> None:
    """Record that ``scaler.step(optimizer)`` reads its flags, unless the optimizer is fused.

    torch/amp/grad_scaler.py, `GradScaler.step`: a fused kernel reads ``found_inf`` on the device.
    """
    classes = _lineage(owner.name, ctx.analysis)
    if not classes or _is_torch(ctx):
        return
    known = ctx.analysis.scaled_steps
    known[arguments.node] = False
    given = arguments.get(0, "optimizer")
    on_host = owner.name.startswith("torch.cpu.") or _fact("enabled", False) in owner.facts
    if "torch.GradScaler" not in classes or given is None or on_host:
        return
    is_off = _off("enabled") in owner.facts
    known[arguments.node] = False if is_off else None
    if isinstance(given.value, Instance) and NOT_FUSED in given.value.facts:
        known[arguments.node] = not is_off
        place = ctx.demote(Cause.SWITCHED_OFF) if is_off else ctx
        flags = Tensor(Reason("its flags `found_inf` lie on the device", arguments.node))
        name = "GradScaler.step"
        emit(place, SiteKind.TORCH_CALL, name, arguments.node, flags, operand_node=given.node)


# Methods that set the default of a parameter for all later calls, by the parameter.
# `torch/distributions/distribution.py`: Distribution.set_default_validate_args
SETTERS = {"validate_args": "set_default_validate_args"}


def _is_set_elsewhere(parameter: str, ctx: Context) -> bool:
    """True if the module or its project calls the method that sets a parameter's default."""
    setter = SETTERS.get(parameter)
    if setter is None:
        return False
    return ctx.module.says(setter) or bool(ctx.analysis.project.modules_that_say(setter))


def _place(way: Way, arguments: Arguments, owner: Instance | None, ctx: Context) -> Context | None:
    """Return the place if the conditions of a way may all be met, else None."""
    for asked in way.asked:
        given = arguments.get(asked.parameter.position, asked.parameter.name)
        if asked.own:
            if not _told_so(asked, owner):
                return None
            is_off = owner is not None and _off(asked.parameter.name) in owner.facts
            if is_off and not asked.holds_for(False):
                ctx = ctx.demote(Cause.SWITCHED_OFF)
        elif given is None:
            if not asked.absent or _is_set_elsewhere(asked.parameter.name, ctx):
                return None
        elif not _meets(asked, given.value):
            return None
        elif not asked.absent and _is_off_by_default(asked, given, ctx):
            ctx = ctx.demote(Cause.SWITCHED_OFF)
    return ctx


def _sure(way: Way, owner: Instance | None) -> Strength:
    """Return how sure the wait is, which may depend on constructor arguments that were not seen."""
    unseen = owner is None or _SEEN not in owner.facts
    return Strength.ASSUMED if unseen and any(a.own for a in way.asked) else Strength.STATED


def _told_so(asked: Asked, owner: Instance | None) -> bool:
    """True if the constructor's argument meets the condition; an unseen one counts as left out."""
    facts = frozenset[str]() if owner is None else owner.facts
    for literal in (True, False):
        if _fact(asked.parameter.name, literal) in facts:
            return asked.holds_for(literal)
    return asked.absent


def _meets(asked: Asked, value: Value) -> bool:
    """True if an argument may meet the condition.

    An unknown value may meet any condition except None or a tensor.
    """
    if asked.asks == "tensor":
        tensor = tensor_of(value)
        return tensor is not None and not _on_host(tensor)
    if value is NONE:
        return asked.none
    if isinstance(value, Scalar) and value.known:
        return asked.holds_for(value.value)
    return asked.asks != "none"


def _is_off_by_default(asked: Asked, given: Argument, ctx: Context) -> bool:
    """True if the argument is an option of the caller that is off by default.

    An example is ``error_if_nonfinite=strict``. For a parameter without a default, the values count
    that the project gives an option of its name.
    """
    if ctx.node is None or not isinstance(given.node, ast.Name):
        return False
    name = given.node.id
    default = literal_default(name, ctx.node)
    if default is not None:
        return not asked.holds_for(default.value)
    if all(parameter.arg != name for parameter in named_parameters(ctx.node.args)):
        return False
    options = ctx.analysis.project.option_values(name)
    return (
        options.whole
        and bool(options.values)
        and not any(asked.holds_for(value) for value in options.values)
    )


def _on_host(tensor: Tensor) -> bool:
    return tensor.device in ("host", BESIDE_HOST)


def _operand(
    way: Way, arguments: Arguments, owner: Instance | None, *, method: bool
) -> tuple[Tensor, ast.expr | None] | None:
    """Return the tensor that the call waits for, with its expression; None if there is none."""
    if owner is not None and lies_on_host(owner):
        return None
    held = [arguments.get(p.position, p.name) for p in way.holding]
    held += [
        arguments.get(a.parameter.position, a.parameter.name)
        for a in way.asked
        if a.asks == "tensor"
    ]
    left_out = any(a is None and p.required for p, a in zip(way.holding, held, strict=False))
    if left_out and not arguments.open:
        return None  # another function of the same name, or another class
    given = [argument for argument in held if argument is not None]
    found = [*given, *(a for a in arguments.all() if a not in given)]
    tensors = [(_tensor(a.value), a) for a in found]
    known = [(tensor, a) for tensor, a in tensors if tensor is not None]
    for tensor, argument in known:
        if not _on_host(tensor):
            return _certain(tensor, argument, certain=argument in given), argument.node
    if known:
        return None
    reason = Reason("it takes tensors", arguments.node, None, Strength.INFERRED)
    if method:
        return Tensor(reason), None
    unknown = [a for a in found if a.value is UNKNOWN]
    for argument in unknown:
        strength = Strength.INFERRED if argument in given else Strength.ASSUMED
        return Tensor(replace(reason, strength=strength)), argument.node
    return None


def _tensor(value: Value) -> Tensor | None:
    """Return the tensor that an argument is, or holds."""
    tensor = tensor_of(value)
    if tensor is None and isinstance(value, Sequence):
        items = [t for t in map(tensor_of, value.items or ()) if t is not None]
        tensor = items[0] if items else tensor_of(value.element)
    return tensor


def _certain(tensor: Tensor, argument: Argument, *, certain: bool) -> Tensor:
    """Return the tensor, with a stronger reason if its parameter takes nothing but tensors."""
    if not certain or tensor.reason.strength >= Strength.INFERRED:
        return tensor
    reason = Reason("it is given for a tensor", argument.node, tensor.reason, Strength.INFERRED)
    return replace(tensor, reason=reason)
