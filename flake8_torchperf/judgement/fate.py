"""Fate: the tests that a wait is wanted, or that its value lies on the host."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.collective_metadata import controls, exchanged, reduced
from flake8_torchperf.idioms.evaluations import only_infers
from flake8_torchperf.idioms.host_names import root
from flake8_torchperf.idioms.loop_kinds import STATEMENTS, around_steps
from flake8_torchperf.idioms.number_or_tensor import NumberOrTensor
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.element_loops import over_elements
from flake8_torchperf.interpreter.events.guards import (
    EXCEPT,
    FALLBACK,
    GIVEN_AWAY,
    LATER,
)
from flake8_torchperf.interpreter.inference.parameters import literal_default
from flake8_torchperf.judgement.explicit_copies import (
    AS_ARRAY,
    AS_DECLARED,
    AS_OUTPUT,
    AS_RESULT,
    made_arrays,
    made_lists,
    returned_by_name,
)
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.names import named_types
from flake8_torchperf.values.site import SIZED_KINDS, SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context, Site
    from flake8_torchperf.judgement.evidence import Evidence
    from flake8_torchperf.judgement.heat import Heat
    from flake8_torchperf.project.module_index import FunctionNode

# Sites that copy a tensor to the host, or take it apart.
HANDING_OVER = (SiteKind.TRANSFER, SiteKind.TENSOR_ITERATION)
# Sites that read a value or a size by a call.
READING_KINDS = (
    SiteKind.HOST_READ, SiteKind.TRANSFER, SiteKind.HOST_COMPARISON, SiteKind.SYNCHRONIZE,
    SiteKind.TORCH_CALL, *SIZED_KINDS,
)  # fmt: skip
# Sites that cost nothing if the tensor lies on the host.
FROM_DEVICE = (
    *READING_KINDS, SiteKind.NUMBER_USE, SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS,
    SiteKind.HOST_REDUCTION, SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH, SiteKind.FORMAT,
    SiteKind.LIST_INDEX, SiteKind.NUMBER_ASSIGNED,
)  # fmt: skip
# The trait of a site that ends the graph of compiled code, but is free or intended anywhere else:
# compiled code holds tensors on the host and arrays in its graph like any other value.
COMPILER_ONLY = "compiler-only"
# Each cache is keyed by the identity of the function around a site.
MADE_ARRAYS: Cache[int, frozenset[int]] = Cache("copies made to be arrays")
RETURNED: Cache[int, frozenset[int]] = Cache("values returned by name")
MADE_LISTS: Cache[int, frozenset[int]] = Cache("copies made to be lists")
EITHER: Cache[int, NumberOrTensor] = Cache("reads of what may be a number")
EXCHANGED: Cache[int, frozenset[str]] = Cache("numbers that processes exchange")
REDUCED: Cache[int, frozenset[str]] = Cache("numbers that processes reduce")


def added_traits(site: Site, base: Heat) -> frozenset[str]:
    """Return the traits of a site, with those that the text of its function adds.

    ``base`` is the heat of the function.
    """
    traits, function = site.traits, site.place.node
    if site.kind is SiteKind.TRANSFER and "to-host" in traits and _made_array(site):
        traits |= {AS_ARRAY}
        if _returned_array(site, base):
            traits |= {AS_RESULT}
        if _is_output(site):
            traits |= {AS_OUTPUT}
    if (
        site.kind in NUMBER_READS
        and not site.place.loops
        and _declares(function, NAMED, NUMBER_ANNOTATIONS)
    ):
        traits |= {AS_DECLARED}
    return traits


def _made_array(site: Site) -> bool:
    """True if a copy becomes an array of more than one number."""
    function, module = site.place.node, site.place.module
    if function is None or (isinstance(site.operand, Tensor) and site.operand.scalar is True):
        return False
    made = MADE_ARRAYS.kept(
        site.place.analysis,
        id(function),
        lambda: made_arrays(module.nodes(function), module.qualify),
    )
    return id(site.node) in made


def _returned_array(site: Site, base: Heat) -> bool:
    """True if a step returns the array that a copy becomes, in a dict."""
    function, module = site.place.node, site.place.module
    if function is None or base.level is not Level.STEP:
        return False
    returned = RETURNED.kept(
        site.place.analysis, id(function), lambda: returned_by_name(module.nodes(function))
    )
    return id(site.node) in returned


def _is_output(site: Site) -> bool:
    """True for a copy in the only loop around it, in a function that only infers."""
    info = site.place.frame.info
    loops = [one for one in site.place.loops if isinstance(one.node, STATEMENTS)]
    return info is not None and len(loops) == 1 and only_infers(info)


def starts_up(e: Evidence) -> bool:
    """True for a copy to the device whose result is not used."""
    if e.node is not e.place.unused or "to-device" not in e.traits:
        return False
    return e.operation not in methods_of("works-without-result")


def is_error_text(e: Evidence) -> bool:
    """True for text made where an error is handled, or in a function that makes it on demand."""
    return e.kind is SiteKind.FORMAT and not e.place.traits.isdisjoint((EXCEPT, LATER))


def is_handed_over(e: Evidence) -> bool:
    """True for a copy that is passed to another library, which works on the host."""
    return e.kind in HANDING_OVER and GIVEN_AWAY in e.place.traits and not e.place.given


def is_outside_steps(e: Evidence) -> bool:
    """True for a copy to the host in a loop around the loop over steps."""
    loops = e.place.loops
    return "to-host" in e.traits and bool(loops) and around_steps(loops[-1].node)


def makes_text(e: Evidence) -> bool:
    """True for a copy to the host in a function declared to return text, or text with scores."""
    if "to-host" not in e.traits or e.place.loops:
        return False
    return _declares(e.place.node, frozenset(("str",)), TEXTUAL)


def is_fallback(e: Evidence) -> bool:
    """True for a copy in the branch for devices that lack an operation."""
    return e.kind is SiteKind.TRANSFER and FALLBACK in e.place.traits


def is_the_operation(e: Evidence) -> bool:
    """True for ``def unique(x): return torch.unique(x)``: its callers ask for the operation.

    False in a function that is known to run in each step, which repeats the operation.
    """
    if e.kind not in READING_KINDS or e.place.loops or not isinstance(e.node, ast.Call):
        return False
    if e.base.level is Level.STEP and e.base.around is Level.STEP:
        return False
    match e.node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            same = e.place.function.rpartition(".")[2].strip("_") == name.strip("_")
            function = e.place.node
            return same and function is not None and _hands_back(function, e.node)
    return False


def is_made_a_list(e: Evidence) -> bool:
    """True if a list is made of the value, which waits anyway.

    False in a function that runs every step, where both waits are reported.
    """
    place = e.place
    if e.kind not in SIZED_KINDS or place.node is None or e.base.level is Level.STEP:
        return False
    nodes = place.module.nodes(place.node)
    made = MADE_LISTS.kept(place.analysis, id(place.node), lambda: made_lists(nodes))
    return id(e.node) in made


def is_exchanged(e: Evidence) -> bool:
    """True if the value is one that the processes of a group exchange, or made to be exchanged.

    ``size = torch.tensor([n], device=device)``, where processes exchange ``size``. Code outside
    functions counts as well.
    """
    function = e.place.node or e.place.module.tree
    if "to-device" in e.traits:
        names = _exchanged(function, e.place) | _reduced(function, e.place)
        return any(
            _whole(assign.value) is e.node and isinstance(target, ast.Name) and target.id in names
            for assign in (e.place.module.nodes(function).of(ast.Assign) if names else ())
            for target in assign.targets
        )
    if e.kind not in FROM_DEVICE or over_elements(e.place, e.kind, e.operation):
        return False
    read = {inner.id for inner in ast.walk(e.read) if isinstance(inner, ast.Name)}
    if not read.isdisjoint(_exchanged(function, e.place)):
        return True
    return not read.isdisjoint(_reduced(function, e.place)) and controls(function, e.node)


def may_be_a_number(e: Evidence) -> bool:
    """True if the code tests that the value is a tensor before it makes a number or list of it.

    A parameter whose default is a number counts as well.
    """
    function = e.place.node
    if function is None or e.place.loops or not isinstance(e.operand_node, ast.expr):
        return False
    copied = e.kind is SiteKind.TRANSFER and "to-host" in e.traits
    if e.kind is not SiteKind.HOST_READ and not copied:
        return False
    if _number_by_default(root(e.operand_node), function):
        return True
    either = EITHER.kept(e.place.analysis, id(function), lambda: NumberOrTensor(function))
    return either.made_a_number(e.node, ast.unparse(e.operand_node))


def answers(e: Evidence) -> bool:
    """True for ``return torch.equal(a, b)``: the function's callers ask for a Python bool.

    False in a function that is known to run in each step.
    """
    if e.kind is not SiteKind.HOST_COMPARISON or e.place.loops:
        return False
    if e.place.node is None or e.base.level is Level.STEP:
        return False
    return _hands_back(e.place.node, e.node)


def _number_by_default(name: str, function: FunctionNode) -> bool:
    """True for a parameter whose default is a number: ``def f(x, dims=2)``."""
    default = literal_default(name, function)
    return default is not None and type(default.value) in (int, float)


def _declares(function: FunctionNode | None, some: frozenset[str], only: frozenset[str]) -> bool:
    """True if the declared result names one of ``some``, and no type outside ``only``."""
    if function is None or function.returns is None:
        return False
    names = named_types(function.returns)
    return not names.isdisjoint(some) and names <= only


# The names in an annotation of text with scores. `dict` is not among them: strings that are its
# keys do not make the result text.
TEXTUAL = frozenset(("str", "list", "List", "tuple", "Tuple", "float", "int", "Optional", "typing"))
# Sites that read one number, and the names in an annotation of a result that consists of numbers.
NUMBER_READS = (SiteKind.HOST_READ, SiteKind.HOST_COMPARISON)
NAMED = frozenset(("dict", "Dict", "Mapping"))
NUMBER_ANNOTATIONS = TEXTUAL | NAMED | {"bool", "Sequence", "Union"}


def _exchanged(function: FunctionNode | ast.Module, ctx: Context) -> frozenset[str]:
    """Return the names of the values that processes exchange in a function; cached."""
    qualify = ctx.module.qualify
    return EXCHANGED.kept(
        ctx.analysis, id(function), lambda: exchanged(ctx.module.nodes(function), qualify)
    )


def _reduced(function: FunctionNode | ast.Module, ctx: Context) -> frozenset[str]:
    """Return the names of numbers that processes reduce to one in a function; cached."""
    qualify = ctx.module.qualify
    return REDUCED.kept(
        ctx.analysis, id(function), lambda: reduced(function, ctx.module.nodes(function), qualify)
    )


def _hands_back(function: FunctionNode, node: ast.AST) -> bool:
    """True if the function returns the value of this node, or a part of it."""
    return any(isinstance(s, ast.Return) and _whole(s.value) is node for s in ast.walk(function))


def _whole(value: ast.expr | None) -> ast.expr | None:
    """Return ``solve(a, b)`` for ``solve(a, b).solution`` and ``solve(a, b)[0]``."""
    while isinstance(value, (ast.Attribute, ast.Subscript)):
        value = value.value
    return value
