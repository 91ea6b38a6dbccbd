"""Values that a program puts on the device of its choice, followed back to where it does so.

A value is followed through assignments, parts, operations, parameters and results to a move, to a
factory that is given a device, or to the result of a module's call: what these give lies where the
program chooses, an accelerator where there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.object_values import own_classes
from flake8_torchperf.program.outlines.outline import FUNCTION, KEY, OWNER, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.program.origins.literals import Literals
    from flake8_torchperf.program.outlines.outline import Outline

# The most expressions that are looked at for one question, and the most names, parameters and
# results on the way: a batch is seldom handed on by more functions.
MAX_ASKED = 300
MAX_HOPS = 10
# Methods that put a tensor, or a batch, on an accelerator.
MOVING_METHODS = frozenset(("cuda", "xpu", "npu", "hpu", "mps", "musa"))
# Calls and attributes whose value is no tensor, or one on the host.
NOT_ON_DEVICE = frozenset((
    "cpu", "numpy", "tolist", "item", "size", "dim", "numel", "device", "dtype", "shape", "ndim",
    "len", "int", "float", "bool", "str", "range", "isinstance", "hasattr", "type", "keys", "print",
    "format", "get_device", "is_cuda", "requires_grad", "join", "split",
))  # fmt: skip
# Parts of the names of torch's modules that have parameters.
WITH_PARAMETERS = (
    "Parameter", "Linear", "Conv", "Embedding", "Norm", "LSTM", "GRU", "RNN", "Attention",
    "Transformer",
)  # fmt: skip
# The most classes of modules in modules that are looked at for parameters.
MAX_INSIDE = 4
# Methods whose first argument Lightning's trainer has moved with `Strategy.batch_to_device`:
# lightning/pytorch/loops/training_epoch_loop.py, evaluation_loop.py, prediction_loop.py
TRAINER = "LightningModule"
TRAINER_STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))
_VALUED = (Kind.EITHER, Kind.PASSED, Kind.GROUP, Kind.ROUNDS, Kind.OPERATION)


class PlacedAt(NamedTuple):
    """A line that puts a value on a device."""

    path: str
    line: int


class Placing:
    """Says which values a project puts on the device of its choice."""

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        # By the expression, or by the body and the name.
        self._known: dict[tuple[str, int, str], PlacedAt | None] = {}
        # Where walks came that found nothing: each is looked at once for all questions.
        self._nowhere: set[object] = set()

    def at(self, path: str, number: int) -> PlacedAt | None:
        """Return where a program puts the value of an expression on the device of its choice.

        What is called stands for the result of the call.
        """
        node = self._literals.linker.outline(path).nodes[number]
        number = node.parent if node.slot == FUNCTION else number
        is_name = node.kind == Kind.NAME and node.slot != FUNCTION
        asked = (path, node.body, node.word) if is_name else (path, number, "")
        if asked not in self._known:
            walk = _Walk(self._literals, self._nowhere)
            self._known[asked] = walk.of(path, number, MAX_HOPS)
            if self._known[asked] is None:
                self._nowhere |= walk.seen
        return self._known[asked]


class _Walk:
    """One walk from an expression to where its value is placed."""

    def __init__(self, literals: Literals, nowhere: set[object]) -> None:
        self._linker: Linker = literals.linker
        self._nowhere = nowhere
        self._objects = literals.objects
        self._arguments = literals.arguments
        self._left = MAX_ASKED
        self._is_cut = False
        self._met: set[object] = set()

    @property
    def seen(self) -> set[object]:
        """The names, attributes and functions that were looked at, if none was too far away."""
        return set() if self._is_cut and self._left > 0 else self._met

    def of(self, path: str, number: int | None, hops: int) -> PlacedAt | None:
        """Return where the value of an expression is placed; None if nothing shows that."""
        if number is None or hops <= 0 or self._left <= 0:
            self._is_cut |= hops <= 0
            return None
        self._left -= 1
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        match node.kind:
            case Kind.NAME:
                found = self._linker.named(path, node.body, node.word)
                if isinstance(found, Variable):
                    return self._variable(path, found, hops - 1)
            case Kind.ATTRIBUTE if node.word not in NOT_ON_DEVICE:
                owner = outline.child(number, OWNER)
                return self._kept(path, number, hops) or self.of(path, owner, hops)
            case Kind.ITEM:
                return self.of(path, outline.child(number, OWNER), hops)
            case Kind.CALL:
                return self._called(path, number, hops)
        if node.kind not in _VALUED:
            return None
        return self._any(((path, one) for one in outline.children[number]), hops)

    def _any(self, places: Iterable[tuple[str, int | None]], hops: int) -> PlacedAt | None:
        """Return where one of some expressions is placed."""
        found = (self.of(path, number, hops) for path, number in places)
        return next(filter(None, found), None)

    def _once(self, asked: object, answer: Callable[[], PlacedAt | None]) -> PlacedAt | None:
        """Return an answer; None if it is being looked for, or was found to be None."""
        if asked in self._met or asked in self._nowhere:
            return None
        self._met.add(asked)
        return answer()

    def _variable(self, path: str, variable: Variable, hops: int) -> PlacedAt | None:
        return self._once((path, variable), lambda: self._bound(path, variable, hops))

    def _bound(self, path: str, variable: Variable, hops: int) -> PlacedAt | None:
        """Return where a name is given a placed value, by an assignment, a loop or a call."""
        outline = self._linker.outline(path)
        roots = outline.bound.get((variable.body, variable.name), ())
        found = self._any(((path, outline.child(root, VALUE)) for root in roots), hops)
        body = outline.bodies[variable.body]
        if found is not None or variable.name not in (*body.positional, *body.named):
            return found
        function = Unit(path, variable.body)
        if self._is_moved_batch(function, variable.name):
            return PlacedAt(path, body.line)
        return self._any(self._arguments.of(function, variable.name), hops)

    def _is_moved_batch(self, function: Unit, name: str) -> bool:
        """True for the batch of a step, which Lightning's trainer moves."""
        body = self._linker.body(function)
        if body.name not in TRAINER_STEPS or body.positional[1:2] != (name,) or body.owner < 0:
            return False
        owner = Unit(function.path, body.owner, is_class=True)
        return any(base.rpartition(".")[2] == TRAINER for base in self._linker.foreign_bases(owner))

    def _kept(self, path: str, number: int, hops: int) -> PlacedAt | None:
        """Return where a placed value is kept in an attribute of `self`, in the same module."""
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        owner = outline.child(number, OWNER)
        if owner is None or outline.nodes[owner][:2] != (Kind.NAME, "self"):
            return None
        kept = ((path, outline.child(root, VALUE)) for root in outline.of(Kind.KEPT, node.word))
        return self._once((path, node.word), lambda: self._any(kept, hops - 1))

    def _called(self, path: str, number: int, hops: int) -> PlacedAt | None:
        """Return where a call moves its value, is given a device, or has a placed value."""
        outline = self._linker.outline(path)
        called = outline.child(number, FUNCTION)
        if called is None:
            return None
        word = outline.nodes[called].word
        here = PlacedAt(path, outline.nodes[number].line)
        device = outline.child(number, "device")
        if device is not None:
            return here if self._chooses(path, device, hops) else None
        if word in MOVING_METHODS:
            return here
        if word in NOT_ON_DEVICE:
            return None
        if word == "to":
            return self._moved(path, number, called, hops)
        if self._is_module(path, called):
            return here
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit) and not found.is_class:
            return self._once(found, lambda: self._results(found, hops - 1))
        # A method of a placed value, a module that was moved, or a function of a placed value.
        return self._any(((path, one) for one in (called, *_arguments(outline, number))), hops)

    def _results(self, function: Unit, hops: int) -> PlacedAt | None:
        """Return where a function places what it returns."""
        outline = self._linker.outline(function.path)
        roots = outline.results.get(function.number, ())
        return self._any(((function.path, outline.child(root, VALUE)) for root in roots), hops)

    def _moved(self, path: str, number: int, called: int, hops: int) -> PlacedAt | None:
        """Return where ``x.to(device)`` lies; a call that names a dtype leaves ``x`` there."""
        outline = self._linker.outline(path)
        first = outline.child(number, "0")
        node = outline.nodes[number if first is None else first]
        names = node.kind == Kind.TEXT or "device" in node.word.lower() or node.word == "dev"
        if first is None or not names:
            return self.of(path, outline.child(called, OWNER), hops)
        return PlacedAt(path, node.line) if self._chooses(path, first, hops) else None

    def _chooses(self, path: str, device: int, hops: int) -> bool:
        """True for a device that is not the host, nor that of a value which nothing places."""
        outline = self._linker.outline(path)
        node = outline.nodes[device]
        if node.kind == Kind.TEXT:
            return node.word.partition(":")[0] != "cpu"
        if node.kind == Kind.LITERAL:
            return node.word.isdigit()
        owner = outline.child(device, OWNER)
        if node.kind != Kind.ATTRIBUTE or owner is None or node.word != "device":
            return True
        holder = outline.nodes[owner]
        is_value = holder.kind == Kind.NAME and holder.word != "self"
        return not is_value or self.of(path, owner, hops) is not None

    def _is_module(self, path: str, called: int) -> bool:
        """True for an object of a class of the project whose constructor makes parameters."""
        classes = own_classes(self._objects.classes(path, called))
        return any(self._has_parameters(one, MAX_INSIDE) for one in classes)

    def _has_parameters(self, klass: Unit, left: int) -> bool:
        """True if a class keeps parameters, or modules of torch or of the project that do."""
        if ("parameters", klass) in self._met or left <= 0:
            return False
        self._met.add(("parameters", klass))
        return any(
            self._makes_parameters(one.path, value, left)
            for one in self._linker.lineage(klass)
            for value in self._kept_values(one)
        )

    def _kept_values(self, klass: Unit) -> Iterator[int]:
        """Yield what the constructor of a class keeps in attributes."""
        outline = self._linker.outline(klass.path)
        made = self._linker.klass(klass).methods.get("__init__")
        for number in outline.by_slot.get(VALUE, ()):
            node = outline.nodes[number]
            if node.body == made and outline.nodes[node.parent].kind == Kind.KEPT:
                yield number

    def _makes_parameters(self, path: str, number: int, left: int) -> bool:
        """True if an expression makes parameters, or a module or a list of modules with some."""
        outline = self._linker.outline(path)
        called = outline.child(number, FUNCTION)
        if called is None:
            children = outline.children[number]
            return any(self._makes_parameters(path, one, left) for one in children)
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit):
            return found.is_class and self._has_parameters(found, left - 1)
        if found.startswith("torch.nn.") and any(map(found.__contains__, WITH_PARAMETERS)):
            return True
        return any(self._makes_parameters(path, one, left) for one in _arguments(outline, number))


def _arguments(outline: Outline, call: int) -> Iterable[int]:
    """Return the arguments of a call."""
    apart = (FUNCTION, OWNER, KEY)
    return [one for one in outline.children[call] if outline.nodes[one].slot not in apart]
