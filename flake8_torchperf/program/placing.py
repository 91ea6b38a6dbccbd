"""Values that a program puts on the device of its choice, followed back to where it does so.

A value is followed through assignments, parts, operations, parameters and results to a move, to a
factory that is given a device, or to the result of a module's call: what these give lies where the
program chooses, an accelerator where there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.objects import own_classes
from flake8_torchperf.program.outlines.outline import FUNCTION, KEY, OWNER, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flake8_torchperf.program.literals import Literals
    from flake8_torchperf.program.objects import own_classes
from flake8_torchperf.program.outlines.outline import Outline

# The most expressions that are looked at for one question, and the most names, parameters and
# results on the way: a batch is seldom handed on by more functions.
MAX_ASKED = 300
MAX_HOPS = 10
# Methods that put a tensor, or a batch, on an accelerator.
MOVES = frozenset(("cuda", "xpu", "npu", "hpu", "mps", "musa"))
# Calls and attributes whose value is no tensor, or one on the host.
OFF_DEVICE = frozenset((
    "cpu", "numpy", "tolist", "item", "size", "dim", "numel", "device", "dtype", "shape", "ndim",
    "len", "int", "float", "bool", "str", "range", "isinstance", "hasattr", "type", "keys", "print",
    "format", "get_device", "is_cuda", "requires_grad", "join", "split",
))  # fmt: skip
# The bases of modules, whose calls give what their parameters were computed with.
MODULE_BASES = ("torch.nn.", "pytorch_lightning.LightningModule", "lightning.LightningModule")
# Methods whose first argument Lightning's trainer has moved: `interpreter/inference/placed.py`.
STEPS = frozenset(("training_step", "validation_step", "test_step", "predict_step"))
_VALUED = (Kind.EITHER, Kind.PASSED, Kind.GROUP, Kind.ROUNDS, Kind.OPERATION)


class Placing:
    """Says which values a project puts on the device of its choice."""

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._known: dict[tuple[str, int], bool] = {}

    def at(self, path: str, number: int) -> bool:
        """True if an expression holds what the program puts on the device of its choice."""
        if (path, number) not in self._known:
            self._known[path, number] = _Walk(self._literals).of(path, number, MAX_HOPS)
        return self._known[path, number]


class _Walk:
    """One walk from an expression to where its value is placed."""

    def __init__(self, literals: Literals) -> None:
        self._linker: Linker = literals.linker
        self._objects = literals.objects
        self._arguments = literals.arguments
        self._left = MAX_ASKED
        self._met: set[object] = set()

    def of(self, path: str, number: int | None, hops: int) -> bool:
        """True if the value of an expression is placed."""
        if number is None or hops <= 0 or self._left <= 0:
            return False
        self._left -= 1
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        match node.kind:
            case Kind.NAME:
                found = self._linker.named(path, node.body, node.word)
                return isinstance(found, Variable) and self._variable(path, found, hops - 1)
            case Kind.ATTRIBUTE if node.word not in OFF_DEVICE:
                owner = outline.child(number, OWNER)
                return self._kept(path, number, hops) or self.of(path, owner, hops)
            case Kind.ITEM:
                return self.of(path, outline.child(number, OWNER), hops)
            case Kind.CALL:
                return self._called(path, number, hops)
        if node.kind not in _VALUED:
            return False
        return self._any(path, outline.children.get(number, ()), hops)

    def _any(self, path: str, numbers: Iterable[int], hops: int) -> bool:
        return any(self.of(path, number, hops) for number in numbers)

    def _once(self, asked: object, answer: Callable[[], bool]) -> bool:
        """Return an answer; False if it is being looked for, or was found to be False."""
        if asked in self._met:
            return False
        self._met.add(asked)
        return answer()

    def _variable(self, path: str, variable: Variable, hops: int) -> bool:
        return self._once((path, variable), lambda: self._bound(path, variable, hops))

    def _bound(self, path: str, variable: Variable, hops: int) -> bool:
        """True if an assignment, a loop or a call gives a name a placed value."""
        outline = self._linker.outline(path)
        roots = outline.bound.get((variable.body, variable.name), ())
        if any(self.of(path, outline.child(root, VALUE), hops) for root in roots):
            return True
        body = outline.bodies[variable.body]
        if variable.name not in (*body.positional, *body.named):
            return False
        function = Unit(path, variable.body)
        if self._is_moved_batch(function, variable.name):
            return True
        given = self._arguments.of(function, variable.name)
        return any(self.of(there, number, hops) for there, number in given)

    def _is_moved_batch(self, function: Unit, name: str) -> bool:
        """True for the batch of a step, which Lightning's trainer moves."""
        body = self._linker.body(function)
        if body.name not in STEPS or body.positional[1:2] != (name,) or body.owner < 0:
            return False
        owner = Unit(function.path, body.owner, is_class=True)
        return any(
            base.rpartition(".")[2] == "LightningModule"
            for base in self._linker.foreign_bases(owner)
        )

    def _kept(self, path: str, number: int, hops: int) -> bool:
        """True if a method of the same module keeps a placed value in an attribute of `self`."""
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        owner = outline.child(number, OWNER)
        if owner is None or outline.nodes[owner].kind != Kind.NAME:
            return False
        if outline.nodes[owner].word != "self":
            return False
        return self._once(
            (path, node.word),
            lambda: any(
                self.of(path, outline.child(root, VALUE), hops - 1)
                for root in outline.of(Kind.KEPT, node.word)
            ),
        )

    def _called(self, path: str, number: int, hops: int) -> bool:
        """True if a call moves its value, is given a device, or computes with a placed value."""
        outline = self._linker.outline(path)
        called = outline.child(number, FUNCTION)
        if called is None:
            return False
        word = outline.nodes[called].word
        device = outline.child(number, "device")
        if device is not None:
            return self._chooses(path, device, hops)
        if word in MOVES:
            return True
        if word == "to":
            return self._moved(path, number, called, hops)
        if word in OFF_DEVICE:
            return False
        if self._is_module(path, called):
            return True
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit) and not found.is_class:
            return self._once(found, lambda: self._results(found, hops - 1))
        # A method of a placed value, or a module that was moved.
        return self.of(path, called, hops) or self._any(path, _arguments(outline, number), hops)

    def _results(self, function: Unit, hops: int) -> bool:
        outline = self._linker.outline(function.path)
        return any(
            self.of(function.path, outline.child(root, VALUE), hops)
            for root in outline.results.get(function.number, ())
        )

    def _moved(self, path: str, number: int, called: int, hops: int) -> bool:
        """True for ``x.to(device)``; a call that names a dtype leaves ``x`` where it is."""
        outline = self._linker.outline(path)
        owner = outline.child(called, OWNER)
        first = outline.child(number, "0")
        if first is None:
            return self.of(path, owner, hops)
        node = outline.nodes[first]
        names = node.kind == Kind.TEXT or "device" in node.word.lower() or node.word == "dev"
        return self._chooses(path, first, hops) if names else self.of(path, owner, hops)

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
        return holder.kind != Kind.NAME or holder.word == "self" or self.of(path, owner, hops)

    def _is_module(self, path: str, called: int) -> bool:
        """True for an object of a class of the project that is a module."""
        return any(
            base.startswith(MODULE_BASES)
            for one in own_classes(self._objects.classes(path, called))
            for base in self._linker.foreign_bases(one)
        )


def _arguments(outline: Outline, call: int) -> Iterable[int]:
    """Return the arguments of a call."""
    apart = (FUNCTION, OWNER, KEY)
    return [one for one in outline.children.get(call, ()) if outline.nodes[one].slot not in apart]
