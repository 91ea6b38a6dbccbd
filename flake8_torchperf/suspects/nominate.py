"""The functions of a file that deserve a closer look: cheap, over-approximate, ast only.

A construct nominates a function only if an operand may be a tensor. Operands that surely lie on the
host do not count.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flake8_torchperf.knowledge import call_waits
from flake8_torchperf.knowledge.logging_calls import IN_PROGRESS_BAR, READERS, READING_METHODS
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.suspects.moves import (
    copies_to_device,
    may_name_place,
    moves_module,
    moves_what_is_made,
)
from flake8_torchperf.suspects.words import (
    ARGUMENT_READERS,
    CONSTANT_MAKERS,
    FILL_CALLS,
    HOST_DATA_COPIES,
    HOST_MADE,
    JOINING_CALLS,
    MODULE_MOVES,
    MOVE_CALLS,
    NUMBER_TAKERS,
    NUMERIC_MODULES,
    PAIRING,
    PER_PARAMETER,
    TRAINING,
    TRIANGLES,
    VARIABLES,
    WAITING_CALLS,
)
from flake8_torchperf.syntax.host_expressions import GOING_THROUGH, HostNames, holder, surely_host
from flake8_torchperf.syntax.names import called_name, given_to
from flake8_torchperf.syntax.traversal import COMPREHENSIONS, DEFINITIONS, Nodes
from flake8_torchperf.syntax.weighted_sums import is_weighted_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.torch_compile.compiled_code import CompiledCode

LOOP_NODES = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)


@dataclass(frozen=True, slots=True)
class Suspects:
    """The code that the interpreter should look at."""

    functions: tuple[FunctionInfo, ...]
    module_level: bool

    def __bool__(self) -> bool:
        return bool(self.functions) or self.module_level


def nominate(module: ModuleMap, called: frozenset[str] = frozenset()) -> Suspects:
    """Return the suspect functions of a module, in the order of the file.

    ``called`` holds the qualified names of functions that the user's own rule pages name.
    """
    names = names_that_nominate(module, called)
    functions = tuple(info for info in module.defined if suspect(info.nodes, info.hosts, names))
    return Suspects(functions, _module_level(module, names))


def names_that_nominate(module: ModuleMap, called: frozenset[str]) -> Names:
    """Return the names that nominate in this module, including names imported under an alias."""
    extra = frozenset(name.rpartition(".")[2] for name in called)
    imported = frozenset(
        name for name, target in module.imports.items() if target.startswith(("math.", "numpy."))
    )
    modules = frozenset(
        name for name, to in module.imports.items() if to in ("math", "cmath", "numpy", "triton")
    )
    return Names(
        extra | WAITING_CALLS | READING_METHODS | call_waits.load().names | _made_there(module),
        ARGUMENT_READERS | READERS | imported,
        NUMERIC_MODULES | modules,
    )


def _made_there(module: ModuleMap) -> set[str]:
    """Return the calls that copy data to a device if the module makes one the default."""
    return HOST_DATA_COPIES if module.says("set_default_device") else set()


def with_compiled(suspects: Suspects, module: ModuleMap, compiled: CompiledCode | None) -> Suspects:
    """Return the suspects, with the functions that hold compiled code or calls that compile."""
    if compiled is None:
        return suspects
    known = {id(info) for info in suspects.functions}
    functions = tuple(
        info for info in module.defined if id(info) in known or compiled.concerns_any(info.nodes)
    )
    marked = any(
        compiled.concerns(n)
        for s in module.tree.body
        if not isinstance(s, DEFINITIONS)
        for n in ast.walk(s)
    )
    return Suspects(functions, suspects.module_level or marked)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that nominate in one module, including names imported under an alias."""

    reading: frozenset[str] | set[str]
    asking: frozenset[str] | set[str]
    modules: frozenset[str] | set[str]


def _module_level(module: ModuleMap, names: Names) -> bool:
    level = module_level(module)
    return suspect(level, HostNames(None, level), names)


@once_per_module
def module_level(module: ModuleMap) -> Nodes:
    """Return the nodes outside functions: statements of the module and of its classes."""
    statements: list[ast.stmt] = []
    for statement in module.tree.body:
        inner = statement.body if isinstance(statement, ast.ClassDef) else [statement]
        statements.extend(s for s in inner if not isinstance(s, DEFINITIONS))
    return Nodes(statements)


def suspect(nodes: Nodes, hosts: Container[str], names: Names) -> bool:
    """True if any of the nodes holds something that a rule could object to."""
    by_type = nodes.by_type()
    for kind, objectionable in OBJECTIONABLE.items():
        for node in by_type.get(kind, ()):
            if objectionable(node, hosts, names):
                return True
    called = {called_name(node.func) for node in nodes.of(ast.Call)}
    if steps_by_index(nodes) or indexes_table(nodes):
        return True
    if not called.isdisjoint(MODULE_MOVES) and moves_module(nodes, called):
        return True
    if nodes.of_any(*LOOP_NODES) and (
        nodes.of(ast.AugAssign)
        or not called.isdisjoint(PER_PARAMETER)
        or any(is_weighted_sum(node.value) for node in nodes.of(ast.Assign))
    ):
        return True
    if called.isdisjoint(MOVE_CALLS):
        return False
    # A host tensor and a moved tensor may be the same.
    return not called.isdisjoint(HOST_MADE) or moves_what_is_made(nodes)


def indexes_table(nodes: Nodes) -> bool:
    """True for ``self.table[t]`` with a parameter ``t: int``, which a caller may give a tensor."""
    numbers = {
        one.arg
        for one in nodes.of(ast.arg)
        if isinstance(one.annotation, ast.Name) and one.annotation.id == "int"
    }
    return bool(numbers) and any(
        isinstance(item.value, ast.Attribute)
        and isinstance(item.slice, ast.Name)
        and item.slice.id in numbers
        for item in nodes.of(ast.Subscript)
    )


def steps_by_index(nodes: Nodes) -> bool:
    """True for ``t[i]`` or ``t == i`` in ``for i in range(n)``; ``n`` may be ``t``'s length."""
    loops = [
        *nodes.of_any(ast.For, ast.AsyncFor),
        *(one for one in nodes.of(ast.comprehension) if _counts(one.iter)),
    ]
    counters = {
        loop.target.id
        for loop in loops
        if isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)
    }
    if not counters:
        return False
    used = [
        index
        for node in nodes.of(ast.Subscript)
        for index in (node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,))
    ]
    for compared in nodes.of(ast.Compare):
        if isinstance(compared.ops[0], (ast.Eq, ast.NotEq)):
            used += (compared.left, compared.comparators[0])
    return any(isinstance(node, ast.Name) and node.id in counters for node in used)


def _counts(source: ast.expr) -> bool:
    return isinstance(source, ast.Call) and called_name(source.func) == "range"


def _test(node: ast.If, hosts: Container[str], names: Names) -> bool:
    return not surely_host(node.test, hosts)


def _boolean(node: ast.BoolOp, hosts: Container[str], names: Names) -> bool:
    return _any_tensor(node.values, hosts)


def _negation(node: ast.UnaryOp, hosts: Container[str], names: Names) -> bool:
    return isinstance(node.op, ast.Not) and not surely_host(node.operand, hosts)


def _comparison(node: ast.Compare, hosts: Container[str], names: Names) -> bool:
    asks = len(node.ops) > 1 or isinstance(node.ops[0], (ast.In, ast.NotIn))
    return asks and not surely_host(node, hosts)


def _iterates_tensor(node: ast.expr, hosts: Container[str]) -> bool:
    return not holder(node, hosts) and not surely_host(node, hosts)


def _comprehension(node: ast.comprehension, hosts: Container[str], names: Names) -> bool:
    return _iterates_tensor(node.iter, hosts) or _any_tensor(node.ifs, hosts)


def _loop(node: ast.For | ast.AsyncFor, hosts: Container[str], names: Names) -> bool:
    return _iterates_tensor(node.iter, hosts) or measures(node.iter)


def _yield_from(node: ast.YieldFrom, hosts: Container[str], names: Names) -> bool:
    return not surely_host(node.value, hosts) or measures(node.value)


def _subscript(node: ast.Subscript, hosts: Container[str], names: Names) -> bool:
    return _index(node.slice, hosts)


def _formatted(node: ast.FormattedValue, hosts: Container[str], names: Names) -> bool:
    return not surely_host(node.value, hosts)


def _starred(node: ast.Starred, hosts: Container[str], names: Names) -> bool:
    return isinstance(node.ctx, ast.Load) and _iterates_tensor(node.value, hosts)


def _percent(node: ast.BinOp, hosts: Container[str], names: Names) -> bool:
    text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return text and isinstance(node.op, ast.Mod) and not surely_host(node.right, hosts)


def _assignment(node: ast.Assign, hosts: Container[str], names: Names) -> bool:
    return _unpacking(node, hosts, names) or any(
        isinstance(target, ast.Subscript) and _written(target, node.value, hosts)
        for target in node.targets
    )


def _written(target: ast.Subscript, value: ast.expr, hosts: Container[str]) -> bool:
    """True if ``v[i] = 1.0`` may write a number, or a new tensor of the host, into a tensor."""
    key, owner = target.slice, target.value
    if isinstance(key, ast.Constant) and key.value in VARIABLES:
        return True
    if isinstance(key, ast.Constant) and not isinstance(key.value, int):
        return False
    if isinstance(key, ast.JoinedStr) or holder(owner, hosts) or surely_host(owner, hosts):
        return False
    if isinstance(key, ast.Slice) or not surely_host(value, hosts):
        return _may_lie_on_host(value)
    return not (
        isinstance(value, ast.JoinedStr)
        or (isinstance(value, ast.Constant) and not isinstance(value.value, (int, float)))
        or holder(value, hosts)
    )


def _may_lie_on_host(value: ast.expr) -> bool:
    """True for a name, or for a tensor that a factory makes in place."""
    if isinstance(value, ast.Call):
        return called_name(value.func) in HOST_MADE
    return isinstance(value, ast.Name)


def _unpacking(node: ast.Assign, hosts: Container[str], names: Names) -> bool:
    given = node.value.elts if isinstance(node.value, ast.Tuple) else (node.value,)
    if any(_is_reading(value, names) for value in given):
        return True
    several = len(node.targets) == 1 and isinstance(node.targets[0], (ast.Tuple, ast.List))
    return several and _iterates_tensor(node.value, hosts)


def _is_reading(node: ast.expr, names: Names) -> bool:
    """True for ``x.item`` or ``float`` as a value, which may be called under another name."""
    if isinstance(node, ast.Attribute):
        return node.attr in names.reading
    return isinstance(node, ast.Name) and node.id in names.asking


def _match(node: ast.Match, hosts: Container[str], names: Names) -> bool:
    return not surely_host(node.subject, hosts)


def _guard(node: ast.match_case, hosts: Container[str], names: Names) -> bool:
    return node.guard is not None and not surely_host(node.guard, hosts)


def _any_tensor(nodes: Iterable[ast.expr], hosts: Container[str]) -> bool:
    return any(not surely_host(node, hosts) for node in nodes)


def _call(node: ast.Call, hosts: Container[str], names: Names) -> bool:
    match node.func:
        case ast.Name(id=name):
            module = ""
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            pass
        case ast.Attribute(attr=name):
            module = ""
        case func:
            return "triton" in names.modules and isinstance(func, ast.Subscript)  # a launch
    if name in names.reading or name in TRAINING or for_training(node):
        return True
    if name == "sort":
        # The method of a list, which compares its elements. A tensor's takes at most a dimension.
        return not node.args and all(k.arg in ("key", "reverse") for k in node.keywords)
    if name in TRIANGLES and makes_triangle(node):
        return True
    if name in ("log", "log_dict") and any(k.arg == IN_PROGRESS_BAR for k in node.keywords):
        return True
    if copies_to_device(node):
        return True
    given = given_to(node)
    if name == "copy_" and len(given) > 1:
        return True  # the copy may be non-blocking, and read before it arrives
    if name == "to" or "cpu" in [one.value for one in given if isinstance(one, ast.Constant)]:
        return any(_may_be_host_device(argument) for argument in given)
    if name in GOING_THROUGH and isinstance(node.func, ast.Name):
        return any(_iterates_tensor(argument, hosts) for argument in given)
    if (name in PAIRING and len(given) == 1 and not node.keywords) or _asks_type(node):
        return False
    if name in names.asking or name in NUMBER_TAKERS or module in names.modules:
        return _any_tensor(given, hosts)
    if name in FILL_CALLS and given:
        return not surely_host(given[-1], hosts)
    if name in JOINING_CALLS:
        return bool(node.args) and isinstance(node.args[0], (ast.List, ast.Tuple))
    return any(
        k.arg in ("alpha", "value") and not surely_host(k.value, hosts) for k in node.keywords
    )


def _asks_type(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "type"


def for_training(node: ast.Call) -> bool:
    """True for a legacy CUDA tensor, an option turned off, or an optimizer for one parameter."""
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr.endswith("Tensor"):
        return isinstance(func.value, ast.Attribute) and func.value.attr == "cuda"
    if not node.keywords:
        return False
    rates = [keyword.value for keyword in node.keywords if keyword.arg == "lr"]
    if any(isinstance(rate, (ast.Call, ast.Name)) for rate in rates):
        return True
    match node.args:
        case [ast.List(elts=[ast.Name()])]:
            return bool(rates)
    return any(
        keyword.arg in ("foreach", "fused")
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is False
        for keyword in node.keywords
    )


def _default_device(node: ast.withitem, hosts: Container[str], names: Names) -> bool:
    """True for ``with torch.device("cuda"):``, in which data is copied to the device."""
    made = node.context_expr
    return isinstance(made, ast.Call) and called_name(made.func) == "device"


OBJECTIONABLE: dict[type[ast.AST], Callable[[Any, Container[str], Names], bool]] = {
    ast.Call: _call,
    ast.If: _test,
    ast.While: _test,
    ast.IfExp: _test,
    ast.Assert: _test,
    ast.For: _loop,
    ast.AsyncFor: _loop,
    ast.comprehension: _comprehension,
    ast.Subscript: _subscript,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _negation,
    ast.Compare: _comparison,
    ast.FormattedValue: _formatted,
    ast.Starred: _starred,
    ast.BinOp: _percent,
    ast.Assign: _assignment,
    ast.YieldFrom: _yield_from,
    ast.Match: _match,
    ast.match_case: _guard,
    ast.withitem: _default_device,
}


def makes_triangle(node: ast.Call) -> bool:
    """True for ``torch.triu(torch.ones(n, n), 1)`` and ``torch.ones(n, n).tril()``."""
    if called_name(node.func) not in TRIANGLES:
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    made = owner if isinstance(owner, ast.Call) else next(iter(node.args), None)
    return isinstance(made, ast.Call) and called_name(made.func) in CONSTANT_MAKERS


def _may_be_host_device(node: ast.expr) -> bool:
    """True if ``.to(...)`` may be given "cpu", even by a name, and so copies to the host."""
    match node:
        case ast.Constant(value=str(text)):
            return text.startswith("cpu")
        case ast.Constant() | ast.Attribute(attr="device"):
            return False
    return may_name_place(node)


def measures(source: ast.expr) -> bool:
    """True for the iterable of a loop over positions: ``for i in range(len(t))``."""
    return isinstance(source, ast.Call) and any(
        (isinstance(inner, ast.Attribute) and inner.attr in ("shape", "size", "numel", "nelement"))
        or (isinstance(inner, ast.Name) and inner.id == "len")
        for argument in source.args
        for inner in (argument, *ast.walk(argument))
    )


def _index(index: ast.expr, hosts: Container[str]) -> bool:
    match index:
        case ast.Constant():
            return False
        case ast.Slice(lower=lower, upper=upper, step=step):
            return _any_tensor([b for b in (lower, upper, step) if b is not None], hosts)
        case ast.Tuple(elts=elements):
            return any(_index(element, hosts) for element in elements)
        case ast.List():
            return True
    return not surely_host(index, hosts)
