"""The kinds of loops, by the code that each round runs: over steps, epochs, elements or batches."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.names import (
    asks_super,
    dotted_name,
    given_to,
    is_name,
    named_parameters,
    object_called,
)
from flake8_torchperf.syntax.traversal import (
    ATTRIBUTE,
    CALL,
    COMPREHENSIONS,
    FUNCTIONS,
    SCOPES,
    children,
    inside,
    once,
    plain_names,
    walk,
)
from flake8_torchperf.syntax.weighted_sums import is_weighted_sum

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.project.module_index import FunctionInfo

STATEMENTS = (ast.For, ast.AsyncFor, ast.While)
# Nodes whose bodies do not run directly in a round of the loop around them.
ENDS = frozenset((*SCOPES, *STATEMENTS))
_BACKWARD = methods_of("runs-backward")
# Methods of optimizers, their schedules, solvers and environments that take steps.
STEPPING = frozenset(("step", "zero_grad"))
# Methods that wait for the next request: of queues, pipes and sockets.
_RECEIVING = ("recv", "recv_multipart", "recv_pyobj", "recv_json", "receive")
TAKING = frozenset(("get", "accept", *_RECEIVING))


def head_of(loop: ast.AST) -> ast.For | ast.AsyncFor | ast.comprehension | None:
    """Return the node with the loop's target and iterable; None for ``while``."""
    if isinstance(loop, COMPREHENSIONS):
        return loop.generators[0]
    return loop if isinstance(loop, (ast.For, ast.AsyncFor)) else None


def is_written_out(loop: ast.AST) -> bool:
    """True for ``for side in (left, right):``, which only saves a line and counts as no loop."""
    head = head_of(loop)
    return (
        head is not None
        and isinstance(head.iter, (ast.Tuple, ast.List))
        and not any(isinstance(item, ast.Starred) for item in head.iter.elts)
    )


@once
def direct(loop: ast.AST) -> list[ast.AST]:
    """Return the nodes that each round of this loop runs, without the bodies of loops inside it."""
    body = getattr(loop, "body", None)
    waiting: list[ast.AST] = list(body) if isinstance(body, list) else []
    found: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        found.append(node)
        if type(node) not in ENDS:
            waiting += children(node)
    return found


def _methods_called(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the methods that are called, but not those of ``super()``.

    For ``scaler.scale(loss).backward()``, ``backward`` is among them.
    """
    called = (n.func for n in nodes if isinstance(n, CALL) and isinstance(n.func, ATTRIBUTE))
    return frozenset(one.attr for one in called if not asks_super(one.value))


@once
def _calls_of(loop: ast.AST) -> frozenset[str]:
    return _methods_called(direct(loop))


def goes_backward(loop: ast.AST) -> bool:
    """True if each round of this loop itself calls ``loss.backward()``."""
    return not _calls_of(loop).isdisjoint(_BACKWARD)


@once
def takes_step(loop: ast.AST) -> bool:
    """True if each round of this loop itself is a step of training, of an optimizer or of a solver.

    False for a loop around the loop over an epoch's steps, even if a schedule steps in it. A round
    that steps environments in a loop of its own, as reinforcement learning does, is a step, and so
    is one that serves a request.
    """
    if goes_backward(loop) or rolls_out(loop) or serves(loop):
        return True
    return not STEPPING.isdisjoint(_calls_of(loop)) and not _completes_steps(loop, alone=True)


@once
def serves(loop: ast.AST) -> bool:
    """True for an endless loop whose rounds each take something from a queue or a socket."""
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Constant):
        return False
    return any(
        isinstance(node, CALL)
        and isinstance(node.func, ATTRIBUTE)
        and node.func.attr in TAKING
        and not (node.func.attr == "get" and node.args)  # a dict's takes a key
        for node in direct(loop)
    )


@once
def around_steps(loop: ast.AST) -> bool:
    """True if a loop contains another whose rounds are whole steps, as a loop over epochs does.

    An inner loop that accumulates gradients takes no steps: ``step()`` stands outside it. A loop
    whose rounds step environments is no such loop, whatever trains in it.
    """
    if goes_backward(loop) or rolls_out(loop) or not isinstance(loop, STATEMENTS):
        return False
    return _completes_steps(loop, alone="step" not in _calls_of(loop))


@once
def rolls_out(loop: ast.AST) -> bool:
    """True if each round of this loop itself runs a loop that steps environments."""
    return any(isinstance(one, STATEMENTS) and _steps_environments(one) for one in direct(loop))


def _steps_environments(loop: ast.AST) -> bool:
    """True if a loop takes apart what a step gives: ``x, reward, done, info = envs.step(action)``.

    An optimizer's step gives nothing or a loss, and a solver's step one result.
    """
    for node in direct(loop):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[_, _, _, *_])],
                value=ast.Call(func=ast.Attribute(attr="step"), args=[_, *_]),
            ):
                return True
    return False


def _completes_steps(loop: ast.AST, *, alone: bool) -> bool:
    """True if an inner loop calls ``step()``; if ``alone``, calling only backward counts too."""
    inner = [n for n in walk(list(getattr(loop, "body", ()))) if isinstance(n, STATEMENTS)]
    return any("step" in _calls_of(one) or (alone and goes_backward(one)) for one in inner)


def holds_steps(info: FunctionInfo, *, own_model: bool) -> bool:
    """True if a function contains the loop over steps, so that the code beside that loop runs once.

    The loop over steps is one that trains, or one in which each round passes a model the result of
    the last round: ``x = model(x, t)``. ``own_model`` is False if the function is itself the
    model's step.
    """
    loops = info.nodes.of_any(*STATEMENTS)
    if not loops:
        return False
    if may_step(info.node) and any(map(takes_step, loops)) and not takes_training_step(info):
        return True
    if not own_model:
        return False
    called = _models_called(info)
    modules = [one.arg for one in named_parameters(info.tree.args) if _is_module(one.annotation)]
    return bool(called) and any(_runs_model(loop, called, modules) for loop in loops)


@once
def may_step(node: ast.AST) -> bool:
    """True if a function calls a method that is part of a training step, in a loop or outside."""
    return not _methods_called(inside(node, ast.Call)).isdisjoint((*_BACKWARD, *STEPPING))


def step_loops(info: FunctionInfo) -> frozenset[int]:
    """Return the loops of a function, by identity, that run steps, batches or calls of a model.

    Loops over gradients and loops that average weights count as well.
    """
    called = _models_called(info)
    return frozenset(
        id(loop)
        for loop in info.nodes.of_any(*STATEMENTS, *COMPREHENSIONS)
        if takes_step(loop)
        or _yields(loop)
        or _reads_gradients(loop)
        or keeps_a_part(loop)
        or any(id(n) in called for n in direct(loop))
    )


def loops_may_count(info: FunctionInfo) -> bool:
    """True if loops of a cold function may matter: they take steps, or may go over elements."""
    loops = info.nodes.of_any(*STATEMENTS, *COMPREHENSIONS)
    return any(map(_may_go_by_elements, loops)) or bool(step_loops(info))


# Methods that iterate over the entries of a dict or a module.
ENTRIES = frozenset((
    "items", "keys", "values", "parameters", "named_parameters", "modules", "named_modules",
    "children", "named_children", "buffers", "named_buffers",
))  # fmt: skip


def _may_go_by_elements(loop: ast.AST) -> bool:
    """True if the iterable of a loop could be a tensor, or the positions of one."""
    head = head_of(loop)
    match None if head is None else head.iter:
        case None | ast.Constant() | ast.Dict():
            return False
        case ast.Call(func=ast.Attribute(attr=name), args=[]) if name in ENTRIES:
            return False
        case ast.Call(func=ast.Name(id="range"), args=args):
            sized = ("len", "shape", "size", "numel")
            return any(not names_in(one).isdisjoint(sized) for one in args)
    return True


@once
def _reads_gradients(loop: ast.AST) -> bool:
    """True for a loop that uses ``p.grad``, whose gradients each backward pass makes."""
    return any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in walk([loop]))


@once
def keeps_a_part(loop: ast.AST) -> bool:
    """True for a loop that keeps a part of the old value, as an average of weights does.

    Examples are ``e.mul_(d).add_(p, alpha=1 - d)`` and ``e.lerp_(p, w)``. Each run of the loop is
    one step of many.
    """
    nodes = direct(loop)
    calls = _calls_of(loop)
    if "lerp_" in calls or {"mul_", "add_"} <= calls:
        return True
    changed = {type(n.op) for n in nodes if isinstance(n, ast.AugAssign)}
    if {ast.Mult, ast.Add} <= changed:
        return True
    head = head_of(loop)
    layers = head is not None and not OF_LAYERS.isdisjoint(names_in(head.iter))
    return any(_mixes(node, layers=layers) for node in nodes)


# Methods that iterate over a model's tensors, at least one for each layer.
OF_LAYERS = frozenset(("parameters", "named_parameters", "state_dict", "items", "values", "keys"))


def _mixes(node: ast.AST, *, layers: bool) -> bool:
    """True for ``e.data = d * e.data + (1 - d) * p.data`` and ``e.copy_(d * e + (1 - d) * p)``.

    In a loop over the ``layers`` of a model, the target may be anything.
    """
    match node:
        case ast.Assign(targets=[target], value=value):
            kept = layers or (isinstance(target, ast.Attribute) and target.attr == "data")
            return kept and is_weighted_sum(value)
        case ast.Call(func=ast.Attribute(attr="copy_"), args=[value, *_]):
            return is_weighted_sum(value)
    return False


def _yields(loop: ast.AST) -> bool:
    """True if each round yields a value, as a generator of batches does."""
    return any(isinstance(node, ast.Yield) for node in direct(loop))


@once
def _in_loops(function: ast.AST) -> frozenset[int]:
    """Return the nodes of a function, by identity, that stand in a loop."""
    loops = [node for node in walk([function]) if isinstance(node, STATEMENTS)]
    return frozenset(id(inner) for loop in loops for inner in walk(list(loop.body)))


@once
def _in_nested(function: ast.AST) -> frozenset[int]:
    """Return the nodes, by identity, of the functions that a function defines."""
    nested = [node for node in walk([function]) if isinstance(node, FUNCTIONS)]
    return frozenset(
        id(inner) for node in nested if node is not function for inner in walk(list(node.body))
    )


def takes_training_step(info: FunctionInfo) -> bool:
    """True if a function takes one training step: it calls backward outside any loop.

    It may also call ``step()`` there, and backward in a loop or in a closure. Gradients of inputs,
    with no step under ``model.eval()``, do not count, nor half a step beside whole ones.
    """
    if not may_step(info.node):
        return False
    calls = info.nodes.of(ast.Call)
    nested = _in_nested(info.node)
    inside = _in_loops(info.node) | nested
    outside = _methods_called([call for call in calls if id(call) not in inside])
    backward = not outside.isdisjoint(_BACKWARD)
    loops = info.nodes.of_any(*STATEMENTS)
    whole = any(goes_backward(one) and "step" in _calls_of(one) for one in loops)
    if whole and backward != ("step" in outside):
        return False
    if backward:
        return "eval" not in outside or not outside.isdisjoint(("step", "zero_grad", "train"))
    closed = bool(_BACKWARD & _methods_called([one for one in calls if id(one) in nested]))
    return "step" in outside and (closed or any(map(goes_backward, loops)))


def _is_module(annotation: ast.expr | None) -> bool:
    """True for the annotation of ``model: nn.Module``."""
    return annotation is not None and dotted_name(annotation).rpartition(".")[2] == "Module"


def _models_called(info: FunctionInfo) -> dict[int, ast.Call]:
    """Return the calls of a function's parameters and of attributes of ``self``, by identity.

    Methods that the class defines are left out; ``self.net.forward(x)`` is a call of ``self.net``.
    """
    arguments = info.tree.args
    given = {one.arg for one in named_parameters(arguments)}
    methods: set[str] = set() if info.owner is None else set(info.owner.methods)
    me = arguments.args[0].arg if info.owner is not None and arguments.args else ""
    found: dict[int, ast.Call] = {}
    for call in info.nodes.of(ast.Call):
        match object_called(call.func):
            case ast.Name(id=name) if name in given:
                found[id(call)] = call
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (
                me and owner == me and name not in methods
            ):
                found[id(call)] = call
    return found


def _runs_model(loop: ast.AST, called: dict[int, ast.Call], modules: Sequence[str]) -> bool:
    """True if each round of a loop passes a model the result of the last round.

    For a model declared to be one of the ``modules``, any call will do.
    """
    calls = [called[id(node)] for node in direct(loop) if id(node) in called]
    if not calls:
        return False
    objects = [object_called(call.func) for call in calls]
    if isinstance(loop, ast.While) or any(is_name(o, name) for o in objects for name in modules):
        return True
    told = {name for call in calls for name in _given(call)}
    return not (told & _made(loop)).isdisjoint(_bound_before(loop))


def _made(loop: ast.AST) -> set[str]:
    """Return the names that each round of a loop assigns."""
    return {
        name
        for node in direct(loop)
        if isinstance(node, (ast.Assign, ast.AugAssign))
        for name in bound_in(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    }


@once
def goes_on(loop: ast.AST) -> bool:
    """True if a round computes with the result of the last round, other than by adding to it.

    True for ``x = a * x + t[i]`` and ``t[i] = t[i - 1] * 2``, False for ``total += t[i]`` and
    ``t[i] += 1``. A loop that may end early counts as well.
    """
    if any(isinstance(node, ast.Break) for node in direct(loop)) or feeds_back(loop):
        return True
    return _reads_other_items(walk(list(getattr(loop, "body", ()))))


@once
def feeds_back(loop: ast.AST) -> bool:
    """True if a round computes with a value that the last round made, other than by adding to it.

    True for ``tokens = cat(tokens, sample(model(tokens)))``.
    """
    added: set[str] = set()
    for node in direct(loop):
        match node:
            case (
                ast.AugAssign(target=ast.Name(id=name))
                | ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(), op=ast.Add())
                )
            ):
                added.add(name)
    return not (_made(loop) - added).isdisjoint(_bound_before(loop))


def gives_back(loop: ast.AST, call: ast.Call) -> bool:
    """True if a loop's round gives a call what the last round made: ``x = grow(model, x)``."""
    if not isinstance(loop, STATEMENTS):
        return False
    return not (_given(call) & _made(loop)).isdisjoint(_bound_before(loop))


def _reads_other_items(nodes: Sequence[ast.AST]) -> bool:
    """True if the code sets items of a name and reads that name by anything but those items."""
    items = [node for node in nodes if isinstance(node, ast.Subscript)]
    stored = {ast.unparse(n): n for n in items if isinstance(n.ctx, ast.Store)}
    if not stored:
        return False
    names = {_root(node) for node in stored.values()}
    same = [node for node in items if ast.unparse(node) in stored]
    inside = {id(inner) for inner in walk(same)}
    return any(isinstance(n, ast.Name) and n.id in names and id(n) not in inside for n in nodes)


def _root(node: ast.expr) -> str:
    """Return the name that an item or attribute belongs to, at any depth; "" if there is none."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@once
def hands_on(loop: ast.AST) -> bool:
    """True if each round passes calls the result of the last round, or stores it in an object.

    Examples are ``h = cell(x, h)``, ``out.append(f(out[-1]))`` and ``self.state = f(x)``. A total
    that is only added to is not passed on.
    """
    left = _made(loop) & _bound_before(loop)
    given: set[str] = set()
    nodes = walk(list(getattr(loop, "body", ())))
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=filled)))):
                left.add(filled)
            case ast.Call():
                for argument in given_to(node):
                    given |= plain_names(argument)
            case ast.Attribute(ctx=ast.Store()):
                return True
    return not given.isdisjoint(left) or _reads_other_items(nodes)


@once
def _bound_before(loop: ast.AST) -> frozenset[str]:
    """Return the names that a round uses before it binds them, with values of the last round."""
    bound: set[str] = set()
    head = head_of(loop)
    if head is not None:
        bound |= bound_in(head.target)
    used: set[str] = set()
    waiting: list[ast.AST] = list(reversed(getattr(loop, "body", [])))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Assign):
            used |= plain_names(node.value) - bound
            for target in node.targets:
                bound |= bound_in(target)
        elif isinstance(node, ast.expr):
            used |= plain_names(node) - bound
        elif not isinstance(node, SCOPES):
            waiting.extend(reversed(children(node)))
    return frozenset(used)


def _given(call: ast.Call) -> set[str]:
    """Return the names that are themselves arguments of a call."""
    found = {one.id for one in call.args if isinstance(one, ast.Name)}
    return found | {k.value.id for k in call.keywords if isinstance(k.value, ast.Name)}


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes that a piece of code mentions."""
    found: set[str] = set()
    for inner in walk([node]):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.add(inner.attr)
    return found
