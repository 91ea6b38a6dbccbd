"""Calls that may give the device work, by their spelling and by the torch table.

Operators are not decided here: the interpreter notes those that compute on tensors.
"""

from __future__ import annotations

import ast
import builtins
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.logging_calls import LOGGING_METHODS
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.knowledge.returns import HostReturn, ScalarReturn
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.syntax.names import dotted_name, given_to
from flake8_torchperf.syntax.traversal import Nodes, children, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from flake8_torchperf.knowledge.table import Op

# Letters of the torch table (see `table.Op`): views, and reads of an element, which queue nothing.
_IDLE_FLAGS = frozenset("vdh")
_TORCH = ("torch.", "F.")
# Beginnings of the names of functions that only tell whether something is so.
_PREDICATES = ("is_", "has_")
# The arguments of an update of a progress bar or a dict.
_GIVEN = (ast.Constant, ast.Dict, ast.DictComp)
# Factories of torch that are given the data, and what brings a tensor of the host to a device.
_OF_DATA = frozenset(("tensor", "as_tensor", "normal"))
_MOVING = frozenset(("to", "cuda", "type", "type_as"))
# Functions of these modules queue a few operations at most.
_SMALL = (*_TORCH, "einops.")


@cache
def _plain_builtins() -> frozenset[str]:
    """Return the builtins that give the device no work."""
    public = frozenset(name for name in dir(builtins) if not name.startswith("_"))
    return public - names_of("unknown-code-builtins")


@cache
def _host_name() -> re.Pattern[str]:
    """Return the names of values on the host: by their last word, and of constants."""
    return re.compile(
        rf"(?:.*_)?(?:{'|'.join(sorted(names_of('host-variables')))})|[A-Z][A-Z0-9_]*"
    )


@cache
def host_modules() -> frozenset[str]:
    """Return the modules whose functions work on the host, those that return arrays among them."""
    return names_of("host-modules") | names_of("array-modules")


@cache
def _idle_methods() -> frozenset[str]:
    """Return the methods of other objects than tensors that queue nothing."""
    arrays = names_of("array-methods")
    return names_of("container-methods") | names_of("lists-or-writes") | LOGGING_METHODS | arrays


class Work:
    """Judges the calls of one function or module by its names whose values lie on the host.

    ``full_name`` returns the dotted name that an expression stands for, imports resolved.
    """

    __slots__ = ("_bound", "_full_name", "_idle_owners", "_on_host", "_reads", "_told")

    def __init__(
        self,
        roots: Sequence[ast.AST],
        reads: Collection[int],
        full_name: Callable[[ast.expr], str] = dotted_name,
    ) -> None:
        self._reads = reads
        self._full_name = full_name
        # Names that the code binds.
        self._bound: set[str] = set()
        # Names of what cannot be a tensor.
        self._on_host: set[str] = set()
        # Names of values that were read before, and so lie on the host.
        self._told: set[str] = set()
        # Names of dicts, and of objects that functions of the host's modules make: their methods
        # queue nothing. A dict may hold tensors, so these names need not be in the first set.
        self._idle_owners: set[str] = set()
        self._note_names(roots)

    def given_by(self, call: ast.Call, *, thrown_away: bool) -> bool:
        """True if a call may give the device work.

        ``thrown_away`` is True if nothing uses the result.
        """
        name = _name(call.func)
        known = self._is_idle(call.func, self._full_name(call.func))
        if known or self._is_made_on_host(call):
            return False
        if known is not None:
            return True
        if name.startswith(_PREDICATES):
            return False
        match call.func:
            case ast.Attribute(value=ast.Name(id=owner)) if owner in self._idle_owners:
                return False
        if name == "update" and call.args and all(isinstance(a, _GIVEN) for a in call.args):
            return False  # of a progress bar or a dict
        return name in names_of("starts-work") or not (
            (thrown_away or _makes_record(name)) and self._is_told_numbers(call)
        )

    def _is_made_on_host(self, node: ast.expr) -> bool:
        """True for an array or a tensor that torch makes on the host, or what its methods make.

        Torch makes a new one there if no device is named, as ``torch.ones(n)``, or of host data.
        """
        if isinstance(node, ast.Name):
            return node.id in self._on_host
        if not isinstance(node, ast.Call):
            return False
        if self._full_name(node.func).partition(".")[0] in names_of("array-modules"):
            return True
        named = {one.arg for one in node.keywords}
        op = load().function(self._full_name(node.func))
        if op is not None:
            plain = op.name.rpartition(".")[2]
            if not op.factory or not named.isdisjoint(("device", None)):
                return plain == "from_numpy"
            return plain not in _OF_DATA or all(map(self.lies_on_host, given_to(node)))
        match node.func:
            case ast.Attribute(value=owner, attr=name) if load().method(name) is not None:
                return (
                    name not in _MOVING
                    and self._is_made_on_host(owner)
                    and all(map(self.lies_on_host, given_to(node)))
                )
        return False

    def is_of_host(self, call: ast.Call) -> bool:
        """True if a call is given an array, or something and nothing that may be a tensor.

        Arrays and tensors of a device do not mix.
        """
        given = given_to(call)
        if any(isinstance(one, ast.Call) and _gives_array(_name(one.func)) for one in given):
            return True
        return bool(given) and all(map(self.lies_on_host, given))

    def _is_told_numbers(self, call: ast.Call) -> bool:
        """True for ``meter.update(loss.item(), step)``: numbers only, at least one of them read."""
        given = given_to(call)
        return any(map(self._has_read, given)) and all(map(self.lies_on_host, given))

    def _has_read(self, node: ast.AST) -> bool:
        return any(
            id(inner) in self._reads
            or (isinstance(inner, ast.Name) and inner.id in self._told)
            or _is_spelled_read(inner)
            for inner in walk([node])
        )

    def lies_on_host(self, node: ast.AST) -> bool:
        """True if an expression cannot be a tensor, as its parts show."""
        if id(node) in self._reads or isinstance(node, (ast.Constant, ast.JoinedStr, ast.Lambda)):
            return True
        match node:
            case ast.Name(id=name):
                return name in self._on_host or _host_name().fullmatch(name) is not None
            case ast.Call(func=ast.Name(id=name)) if name in names_of("host-builtins"):
                return True
            case ast.Call(func=func):
                name = _name(func)
                if _gives_array(name) or self._is_made_on_host(node):
                    return True
                return isinstance(func, ast.Attribute) and _gives_host_value(load().method(name))
            case ast.Attribute(value=owner, attr=name):
                if isinstance(load().attribute(name), (HostReturn, ScalarReturn)):
                    return True
                return _host_name().fullmatch(name) is not None or self.lies_on_host(owner)
            case ast.Subscript(value=owner):
                return self.lies_on_host(owner)
            case ast.IfExp(body=body, orelse=other):
                # `a if isinstance(a, float) else a.item()` gives a number either way.
                return self.lies_on_host(body) or self.lies_on_host(other)
            case ast.keyword() | ast.expr():
                return all(map(self.lies_on_host, children(node)))
        return True

    def _note_names(self, roots: Sequence[ast.AST]) -> None:
        """Note the names that are only bound to numbers and text, in source order."""
        nodes = Nodes(roots)
        values: dict[int, ast.expr] = {}
        for node in nodes.of_any(ast.Assign, ast.AnnAssign, ast.AugAssign):
            match node:
                case ast.Assign(targets=[ast.Name() as name], value=value):
                    values[id(name)] = value
                case ast.AnnAssign(target=ast.Name() as name, value=ast.expr() as value):
                    values[id(name)] = value
                case ast.AugAssign(target=ast.Name() as name, value=value):
                    values[id(name)] = value
        stored = [one for one in nodes.of(ast.Name) if isinstance(one.ctx, ast.Store)]
        self._bound = {one.id for one in stored}
        other: set[str] = set()
        busy: set[str] = set()
        for name in sorted(stored, key=lambda node: node.lineno):
            bound = values.get(id(name))
            (self._idle_owners if self._makes_idle_owner(bound) else busy).add(name.id)
            if bound is None or not self.lies_on_host(bound):
                other.add(name.id)
                continue
            self._on_host.add(name.id)
            if self._has_read(bound):
                self._told.add(name.id)
        self._on_host -= other
        self._told -= other
        self._idle_owners -= busy

    def _makes_idle_owner(self, bound: ast.expr | None) -> bool:
        """True for a dict, and for ``random.Random(seed)``: its methods queue nothing."""
        match bound:
            case ast.Dict() | ast.DictComp():
                return True
            case ast.Call(func=func):
                name = self._full_name(func)
                return name == "dict" or name.partition(".")[0] in host_modules()
        return False

    def is_small(self, func: ast.expr) -> bool:
        """True for one operation of torch; any other call may run a model or a whole loop."""
        name = _name(func)
        if self._full_name(func).startswith(_SMALL) or _makes_record(name) or _gives_array(name):
            return True
        if isinstance(func, ast.Name):
            return load().function(f"torch.{func.id}") is not None
        if not isinstance(func, ast.Attribute) or func.attr in names_of("starts-work"):
            return False
        if func.attr in names_of("sets-a-mode") or is_scaler(func.value):
            return True
        return not self._is_own(func.value) and load().method(func.attr) is not None

    def _is_idle(self, func: ast.expr, spelled: str) -> bool | None:
        """True if a call queues nothing, False if it is torch's and may; None if it is unknown."""
        if spelled.partition(".")[0] in host_modules():
            return True
        if isinstance(func, ast.Name):
            idle = func.id in _plain_builtins() or _idle(load().function(f"torch.{func.id}"))
            return True if idle else None
        if not isinstance(func, ast.Attribute):
            return None
        if spelled.startswith(_TORCH):
            return _is_idle_in_torch(spelled)
        is_idle = not self._is_own(func.value) and _idle(load().method(func.attr))
        return True if is_idle or func.attr in _idle_methods() else None

    def _is_own(self, owner: ast.expr) -> bool:
        """True for ``self``, ``cls`` and ``super()``: ``self.norm(x)`` is not a tensor's norm.

        Where code binds ``cls`` itself, it is no class: ``box, cls = x.split((4, 80))``.
        """
        match owner:
            case ast.Name(id="self" | "cls" as name):
                return name not in self._bound
            case ast.Call(func=ast.Name(id="super")):
                return True
        return False


@lru_cache(maxsize=1024)  # as the user's code spells them
def _is_idle_in_torch(spelled: str) -> bool:
    if spelled.startswith("F."):
        spelled = f"torch.nn.functional.{spelled[2:]}"
    klass = load().klass(spelled)
    if klass is not None:
        return klass.kind != "module"
    return _idle(load().function(spelled))


@cache
def _idle(op: Op | None) -> bool:
    """True if an operation makes a view, or only queries its tensors."""
    if op is None:
        return False
    plain = op.name.rpartition(".")[2]
    if plain in methods_of("may-copy"):
        return False
    if plain in methods_of("queues-nothing"):
        return True
    return not _IDLE_FLAGS.isdisjoint(op.flags) or _gives_host_value(op)


@cache
def _gives_host_value(op: Op | None) -> bool:
    """True if all results are numbers, sizes or the like: ``x.size(0)``, ``x.item()``."""
    if op is None or not op.overloads:
        return False
    return all(_is_host_value(overload.returns) for overload in op.overloads)


def _is_host_value(returned: object) -> bool:
    # None is what `backward` returns.
    if isinstance(returned, HostReturn):
        return returned.kind != "N"
    return isinstance(returned, ScalarReturn)


def _is_spelled_read(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=[]):
            return name in methods_of("reads")
        case ast.Call(func=ast.Name(id=name), args=[_]):
            return name in names_of("reading-builtins")
    return False


def is_scaler(owner: ast.expr) -> bool:
    """True for a gradient scaler, by its name: ``self.grad_scaler``."""
    return dotted_name(owner).rpartition(".")[2].rpartition("_")[2] == "scaler"


def _gives_array(name: str) -> bool:
    """True for a function or method that makes an array or text, by its name."""
    return name in ("cpu", "format", "join") or "numpy" in name


def _makes_record(name: str) -> bool:
    """True for ``Metrics(loss.item())``: the callee is a class by its name."""
    return name[:1].isupper() and not name.isupper()


def _name(func: ast.expr) -> str:
    match func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
