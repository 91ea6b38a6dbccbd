"""Where torch runs a hook: behind the call that registers it, in that body or in its callers.

A hook of a module runs where something calls the module or what holds it, one of an optimizer in
its steps, one of gradients where a program goes backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.program.given import RUN_WHEN_CALLED
from flake8_torchperf.program.linking import Unit, Variable
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.linking import Linker
    from flake8_torchperf.program.outlines.outline import Outline
    from flake8_torchperf.program.runs import Runs

    # A node of an outline, by the path of the module and its number there.
    Place: TypeAlias = "tuple[str, int]"

# The most functions, one calling another, that lead to the registration of a hook.
MAX_ABOVE = 3
# The most names that the object of a hook goes by in one body.
MAX_NAMES = 8


class Hooks:
    """Finds the places that run the hooks of objects."""

    def __init__(self, linker: Linker, runs: Callable[[Unit], Runs]) -> None:
        self._linker = linker
        self._runs = runs

    def run(self, path: str, call: int, method: str) -> list[Place]:
        """Return the places that run a hook which a call registers; none if they are not known.

        ``method`` is that of the object, or of any for ``backward``, which runs the hook; "" where
        the object is called.
        """
        outline = self._linker.outline(path)
        function = outline.child(call, FUNCTION)
        holder = None if function is None else outline.child(function, OWNER)
        return self._after(path, call, holder, method, MAX_ABOVE)

    def run_of_all(self, path: str, call: int, method: str) -> list[Place]:
        """Return the places that run a hook of all modules or optimizers; none if not known."""
        return self._after(path, call, None, method, MAX_ABOVE, of_all=True)

    def _after(
        self,
        path: str,
        call: int,
        holder: int | None,
        method: str,
        left: int,
        *,
        of_all: bool = False,
    ) -> list[Place]:
        """Return what runs a hook behind a call, where ``holder`` is the object with the hook."""
        outline = self._linker.outline(path)
        body = outline.nodes[call].body
        names = [] if holder is None else list(_names(outline, holder, body))
        behind = (
            self._called_of_any(path, call, method)
            if of_all
            else _called(outline, call, names, method)
        )
        found = [(path, number) for number in behind]
        if found or left == 0 or body == 0:
            return found
        function = Unit(path, body)
        if method == "" and not set(names).isdisjoint(outline.bodies[body].positional[:1]):
            found = self._own(function)
        return found or self._in_callers(function, names, method, left - 1, of_all=of_all)

    def _called_of_any(self, path: str, call: int, method: str) -> Iterator[int]:
        """Yield the calls behind a call of a method of any object; for "", those of any object."""
        outline = self._linker.outline(path)
        for one in outline.by_word.get(method, ()) if method else outline.by_slot.get(FUNCTION, ()):
            used = outline.nodes[one]
            if used.slot != FUNCTION or not outline.is_below(one, call):
                continue
            is_object = used.kind == Kind.NAME and isinstance(
                self._linker.named(path, used.body, used.word), Variable
            )
            if method or is_object:
                yield used.parent

    def _own(self, method: Unit) -> list[Place]:
        """Return the places that call objects of the class that a method belongs to."""
        owner = self._linker.outline(method.path).bodies[method.number].owner
        if owner < 0:
            return []
        klass = Unit(method.path, owner, is_class=True)
        called = called_method(self._linker, klass)
        runs = None if called is None else self._runs(called)
        return [] if runs is None else [(run.path, run.node) for run in runs.places]

    def _in_callers(
        self, function: Unit, names: list[str], method: str, left: int, *, of_all: bool
    ) -> list[Place]:
        """Return what runs a hook behind all calls of the function that registers it.

        None is known if some call shows none, or if there may be others.
        """
        runs = self._runs(function)
        found: list[Place] = []
        for run in runs.places:
            given = self._argument(run.path, run.node, function, names)
            if not of_all and method != "backward" and given is None:
                return []
            places = self._after(run.path, run.node, given, method, left, of_all=of_all)
            if not places:
                return []
            found += places
        return [] if runs.open else found

    def _argument(self, path: str, call: int, function: Unit, names: list[str]) -> int | None:
        """Return what a call gives the parameter that is one of some names; None for no such."""
        body = self._linker.body(function)
        own = body.positional[1 if body.owner >= 0 and not body.is_static else 0 :]
        name = next((one for one in names if one in (*own, *body.named)), None)
        if name is None:
            return None
        outline = self._linker.outline(path)
        by_name = outline.child(call, name)
        if by_name is not None or name not in own:
            return by_name
        return outline.child(call, str(own.index(name)))


def _names(outline: Outline, holder: int, body: int) -> Iterator[str]:
    """Yield the names that an object goes by in a body, and what holds it, nearest first."""
    waiting: list[int] = [holder]
    seen: set[str] = set()
    while waiting and len(seen) < MAX_NAMES:
        number: int | None = waiting.pop()
        while number is not None:
            node = outline.nodes[number]
            if node.kind in (Kind.NAME, Kind.ATTRIBUTE) and node.word not in seen:
                seen.add(node.word)
                yield node.word
                if node.kind == Kind.NAME:
                    waiting += _gone_through(outline, body, node.word)
            owner = outline.child(number, OWNER)
            number = outline.child(number, FUNCTION) if owner is None else owner


def _gone_through(outline: Outline, body: int, name: str) -> list[int]:
    """Return what loops of a body go through that bind a name."""
    bound = outline.bound.get((body, name), ())
    loops = [one for one in bound if outline.nodes[one].kind == Kind.ITERATED]
    return [child for one in loops for child in outline.children[one]]


def _called(outline: Outline, call: int, names: list[str], method: str) -> Iterator[int]:
    """Yield the calls behind a call that run the hooks of the object of some names."""
    for word in [method] if method else names:
        for one in outline.by_word.get(word, ()):
            used = outline.nodes[one]
            if used.slot != FUNCTION or not outline.is_below(one, call):
                continue
            holder = outline.child(one, OWNER)
            if method != "step" or (holder is not None and outline.nodes[holder].word in names):
                yield used.parent


def called_method(linker: Linker, klass: Unit) -> Unit | None:
    """Return the method that a call of an object of a class runs; None if it has none."""
    methods = (linker.method(klass, name) for name in RUN_WHEN_CALLED)
    return next(filter(None, methods), None)
