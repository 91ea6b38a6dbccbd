"""Entry points, which run once for all steps, and which of their loops are over those steps.

Enters functions and loops; leaves what of them prepares. By syntax alone; must not know values.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.spelling import is_name, named_parameters
from flake8_torchperf.suspects.walk import SCOPES, children, once, put_children, walk

if TYPE_CHECKING:
    from flake8_torchperf.suspects.modulemap import FunctionInfo

# Functions that hold a whole program, and methods that hold the loop over steps.
PREAMBLES = ("main", "_main", "cli")
ENTRIES = ("__call__", "generate")
# Functions that go through all the data, and words in the head of a loop that does.
RUNNING = ("evaluate", "validate", "fit", "train", "evaluation_loop", "validation_loop")
DATA = re.compile("step|batch|epoch|loader|data|iter", re.IGNORECASE)
EACH_STEP = ("forward", "__call__", "step", "training_step", "loss")
OUTSIDE = "outside its loop over steps"
TRAINING_STEP = "which takes a training step"
OF_PIPELINE = f"a part of a pipeline, {OUTSIDE}"


def is_entry_point(info: FunctionInfo) -> bool:
    """A pipeline's ``__call__``, or one that holds the loop over steps, runs once for all steps.

    The same of a method ``generate``, by which language models are asked for all tokens at once.
    """
    if info.name == "generate":
        return info.owner is not None
    if info.name in RUNNING and any(map(_over_data, info.nodes.of_any(ast.For))):
        return True
    if _runs_itself(info):
        return True
    if info.name != "__call__" or info.owner is None:
        return False
    return of_pipeline(info) or (_loops_over_steps(info) and not trains(info))


def _loops_over_steps(info: FunctionInfo) -> bool:
    """Does a function hold a loop over steps or data, and not only over its layers or inputs?"""
    return steps_within(info.node) or any(map(_over_data, info.nodes.of_any(ast.For)))


def trains(info: FunctionInfo) -> bool:
    """Does a function take one training step: does it call ``loss.backward()`` outside any loop?"""
    calls = [call for call in info.nodes.of(ast.Call) if _goes_backward(call)]
    if not calls or info.name in PREAMBLES or _asks_for_gradients(info):
        return False
    looped = {
        id(inner)
        for loop in info.nodes.of_any(ast.For, ast.While, ast.AsyncFor)
        for inner in walk([loop])
    }
    return any(id(call) not in looped for call in calls)


def _asks_for_gradients(info: FunctionInfo) -> bool:
    """``model.eval()`` and no step of an optimizer: are the gradients those of an input?"""
    called = [
        call.func.attr for call in info.nodes.of(ast.Call) if isinstance(call.func, ast.Attribute)
    ]
    return "eval" in called and STEPPING.isdisjoint(called)


# Methods of what trains a model.
STEPPING = frozenset(("step", "zero_grad", "train"))


def _goes_backward(call: ast.Call) -> bool:
    """``loss.backward()``, ``scaler.scale(loss).backward()``, ``self.manual_backward(loss)``."""
    match call.func:
        case ast.Attribute(value=owner, attr="backward" | "manual_backward"):
            inherited = isinstance(owner, ast.Call) and is_name(owner.func, "super")
            return not inherited
    return False


def _runs_itself(info: FunctionInfo) -> bool:
    """Does a method run its own module in a loop: ``while ...: outputs = self(**inputs)``?"""
    arguments = info.node.args.args
    if info.owner is None or not arguments or info.name in EACH_STEP or shows_check(info):
        return False
    me = arguments[0].arg
    calls = {id(call) for call in info.nodes.of(ast.Call) if is_name(call.func, me)}
    return bool(calls) and any(
        id(inner) in calls
        for loop in info.nodes.of_any(ast.For, ast.While)
        for inner in walk([loop])
    )


def runs_what_it_is_given(info: FunctionInfo) -> bool:
    """Does it run a model that it is given in its loop over steps or batches?

    ``def sample(model, x, sigmas)``, ``def accuracy(model, images, batch_size)``: what stands
    beside that loop is done once for all of its rounds.
    """
    arguments = info.node.args
    given = {a.arg for a in named_parameters(arguments)}
    calls = {
        id(call): call
        for call in info.nodes.of(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in given
    }
    return bool(calls) and any(
        _takes_further(loop, [calls[id(n)] for n in walk([loop]) if id(n) in calls])
        for loop in info.nodes.of_any(ast.For, ast.While)
    )


def _takes_further(loop: ast.AST, calls: list[ast.Call]) -> bool:
    """Is each round of a loop with these calls a step, or made with what the last one made?"""
    if not calls or makes_steps(loop) or goes_through_data(loop):
        return bool(calls)
    told = {name for call in calls for name in _given(call)}
    return any(
        isinstance(node, (ast.Assign, ast.AugAssign))
        and not told.isdisjoint(
            bound_by(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        )
        for node in ast.walk(loop)
    )


def shows_check(info: FunctionInfo) -> bool:
    """``check_equivariance``, which prints or asserts: a person runs it to see whether it holds.

    One that is seen to be called in each step is hot all the same.
    """
    if not info.name.lstrip("_").startswith("check_"):
        return False
    return bool(info.nodes.of(ast.Assert)) or any(
        isinstance(call.func, ast.Name) and call.func.id == "print"
        for call in info.nodes.of(ast.Call)
    )


def conducts(info: FunctionInfo) -> bool:
    """May the loop over steps that it begins stand in what it calls?"""
    return of_pipeline(info) or (info.name == "generate" and info.owner is not None)


def of_pipeline(info: FunctionInfo) -> bool:
    """Is it the ``__call__`` of a pipeline, or of a part of one?"""
    if info.name != "__call__" or info.owner is None:
        return False
    lineage = (info.owner.name, *info.owner.bases)
    return any("Pipeline" in name.rpartition(".")[2] for name in lineage)


def holds_program(info: FunctionInfo) -> bool:
    """Does a function hold a whole program, so that what it does outside loops it does once?"""
    return info.name in PREAMBLES or is_entry_point(info)


def prepares(loop: ast.AST, node: ast.AST | None, *, pipeline: bool = False) -> bool:
    """Is a loop of an entry point over its inputs, beside another loop that is over its steps?

    A pipeline may have its loop over steps elsewhere.
    """
    if node is None or over_steps(loop):
        return False
    if pipeline and not over_steps(node):
        return not _carries(loop)
    return over_steps(node)


def steps_within(node: ast.AST) -> bool:
    """Is there a loop in it that is over steps, by its head or by what a round hands on?"""
    return over_steps(node) or _carries(node)


@once
def around_steps(loop: ast.AST) -> bool:
    """Does a loop hold another that is over steps? What it moves, it moves once for all of them."""
    return not _heads_steps(loop) and any(map(_heads_steps, walk([loop])))


def _over_data(loop: ast.For) -> bool:
    return any(map(DATA.search, (*names_in(loop.target), *names_in(loop.iter))))


@once
def over_epochs(loop: ast.AST) -> bool:
    """Is it over epochs, with the steps of each in another loop in it, or in what it calls?"""
    if not isinstance(loop, (ast.For, ast.While)) or not _speaks_of_epochs(loop):
        return False
    return any(map(_takes_steps, walk(loop.body)))


def _takes_steps(node: ast.AST) -> bool:
    """Is it a loop over the steps of an epoch, or a call that goes through them?"""
    match node:
        case ast.For():
            return _over_data(node)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return RUNS_EPOCH.match(name) is not None
    return isinstance(node, ast.While)


# Names of functions that go through the steps of an epoch: `train_one_epoch`, `_run_epoch`.
RUNS_EPOCH = re.compile(r"_?(?:train|run|fit|do)\w*_epoch$")


def _speaks_of_epochs(loop: ast.For | ast.While) -> bool:
    heads = [loop.test] if isinstance(loop, ast.While) else [loop.target, loop.iter]
    return any("epoch" in name.lower() for head in heads for name in names_in(head))


def goes_through_data(loop: ast.AST) -> bool:
    """Does the head of this very loop speak of data, of epochs or of steps?"""
    return isinstance(loop, ast.For) and _over_data(loop)


@once
def over_steps(node: ast.AST) -> bool:
    """Does the head of a loop in it, its own included, speak of steps?"""
    return any(isinstance(inner, ast.While) or _heads_steps(inner) for inner in walk([node]))


def _heads_steps(loop: ast.AST) -> bool:
    """Does the head of this very loop speak of steps?"""
    return isinstance(loop, ast.For) and any(map(_speaks_of_steps, (loop.target, loop.iter)))


def _speaks_of_steps(node: ast.expr) -> bool:
    """``timesteps``, ``num_steps``; not ``callback_on_step_end``, which a step calls."""
    return any("step" in name.lower() and "callback" not in name.lower() for name in names_in(node))


def makes_steps(loop: ast.AST, *, batches: bool = True) -> bool:
    """Is each round of this very loop a step: of training, of a solver, over ``batches``?"""
    if isinstance(loop, ast.While) or _heads_steps(loop):
        return True
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    if (batches and _over_batches(loop)) or (isinstance(loop, ast.For) and _hands_on(loop)):
        return True
    return _trains_within(loop)


@once
def _trains_within(loop: ast.For | ast.AsyncFor) -> bool:
    """Does a round call what a step of training calls, outside any loop inside it?"""
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Attribute) and node.attr in TRAINING:
            return True
        if not isinstance(node, (*SCOPES, ast.For, ast.AsyncFor, ast.While)):
            put_children(node, waiting)
    return False


# What is called in a step of training.
TRAINING = frozenset(("backward", "manual_backward", "zero_grad"))
BATCHES = frozenset(("batch", "minibatch", "mini_batch", "microbatch", "micro_batch"))


def _over_batches(loop: ast.For | ast.AsyncFor) -> bool:
    """``for batch in data``, ``for x, y in loader``; not ``for name in loaders``."""
    if any(name.lower().endswith("loader") for name in names_in(loop.iter)):
        return True
    return not BATCHES.isdisjoint(names_in(loop.target))


def names_in(node: ast.AST) -> set[str]:
    """The names and attributes that a piece of code mentions."""
    found: set[str] = set()
    for inner in walk([node]):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.add(inner.attr)
    return found


def plain_names(node: ast.AST) -> set[str]:
    """The names alone that a piece of code mentions; those of attributes are none."""
    return {inner.id for inner in walk([node]) if isinstance(inner, ast.Name)}


@once
def _carries(node: ast.AST) -> bool:
    """Does a loop in it give what one round made to a call in the next: ``x = model(x, t)``?"""
    return any(isinstance(inner, ast.For) and _hands_on(inner) for inner in walk([node]))


@once
def _hands_on(loop: ast.For) -> bool:
    """Is a call in it given a name before the round binds that name to something that was made?"""
    made = bound_by(loop.target)
    given: set[str] = set()
    waiting: list[ast.AST] = list(reversed(loop.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr):
            given |= _given(node) - made
        elif isinstance(node, ast.Assign):
            given |= _given(node.value) - made
            bound = {name for target in node.targets for name in bound_by(target)}
            if not bound.isdisjoint(given) and isinstance(node.value, MADE):
                return True
            made |= bound
        elif isinstance(node, ast.stmt) and not isinstance(node, SCOPES):
            waiting.extend(reversed(children(node)))
    return False


# What a model hands on is made by a call, or a part of what was.
MADE = (ast.Call, ast.Attribute, ast.Subscript)


def bound_by(target: ast.expr) -> set[str]:
    """The names that an assignment to ``target``, or a loop with it, binds."""
    return {n.id for n in walk([target]) if isinstance(n, ast.Name) and _stored(n)}


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _given(value: ast.expr) -> set[str]:
    """The names that calls in an expression are given as they are."""
    found: set[str] = set()
    for call in walk([value]):
        if isinstance(call, ast.Call):
            found.update([given.id for given in call.args if isinstance(given, ast.Name)])
            found.update([k.value.id for k in call.keywords if isinstance(k.value, ast.Name)])
    return found
