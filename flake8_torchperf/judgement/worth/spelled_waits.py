"""The waits of a function, as its spelling shows them: in modules whose sites are not at hand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.worth.device_work import host_modules
from flake8_torchperf.judgement.worth.queue import COPY, KEPT, WAIT
from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.syntax.names import moves_to_device
from flake8_torchperf.syntax.traversal import children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

# Methods that wait if their owner is a tensor of the device, as it mostly is; each has no argument.
_COPYING = frozenset(("cpu", "numpy"))
# Methods that make one truth value of a whole tensor.
_TRUTHS = frozenset(("all", "any"))
# Parts of a test that pass on the truth value of their parts.
_PASSING_ON = (ast.BoolOp, ast.UnaryOp)


def spelled_waits(nodes: Nodes, module: ModuleMap) -> dict[int, str]:
    """Return the kind of each wait in some nodes of a module, by the identity of its node."""
    found = {id(one): WAIT for one in _truths(nodes, module)}
    found.update((id(one), WAIT) for one in nodes.of(ast.Subscript) if _selects(one))
    for call in nodes.of(ast.Call):
        kind = _of_call(call, module)
        if kind:
            found[id(call)] = kind
    return found


def _truths(nodes: Nodes, module: ModuleMap) -> Iterator[ast.Call]:
    """Yield the calls that make one truth value of a tensor, which a test reads."""
    held = nodes.of_any(ast.If, ast.While, ast.Assert, ast.IfExp)
    tests: list[ast.AST] = [one.test for one in held]
    while tests:
        test = tests.pop()
        if isinstance(test, _PASSING_ON):
            tests += children(test)
        match test:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _TRUTHS:
                if _package(owner, module) not in names_of("array-modules"):
                    yield test


def _package(node: ast.expr, module: ModuleMap) -> str:
    """Return the package that makes the object of an expression such as ``np.abs(x).T``."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return module.qualify(node).partition(".")[0]


def _selects(node: ast.Subscript) -> bool:
    """True for ``x[x > 0]`` and ``x[~mask]``: the host waits for the number of elements."""
    if not isinstance(node.ctx, ast.Load):
        return False
    match node.slice:
        case ast.UnaryOp(op=ast.Invert()) | ast.Compare():
            return True
    return False


def _of_call(node: ast.Call, module: ModuleMap) -> str:
    """Return the kind of a wait; "" for none.

    Events and streams wait for their own work alone.
    """
    spelled = module.qualify(node.func)
    if spelled.startswith("torch."):
        return _of_torch(node, spelled)
    if spelled in names_of("waits-outside-torch"):
        return KEPT
    if not isinstance(node.func, ast.Attribute) or spelled.partition(".")[0] in host_modules():
        return ""
    name, keywords = node.func.attr, node.keywords
    if name == "cuda":
        return "" if _is_queued(keywords) else WAIT
    if name == "to":
        return WAIT if moves_to_device(node) and not _is_queued(keywords) else ""
    if name in _COPYING:
        return "" if node.args or keywords else COPY
    op = None if name in names_of("container-methods") else load().method(name)
    return WAIT if op is not None and op.always_waits else ""


def _of_torch(node: ast.Call, spelled: str) -> str:
    if spelled.endswith(".synchronize"):
        return KEPT
    if spelled == "torch.where":
        return WAIT if len(node.args) == 1 and not node.keywords else ""
    op = load().function(spelled)
    return WAIT if op is not None and op.always_waits else ""


def _is_queued(keywords: Sequence[ast.keyword]) -> bool:
    """True if a copy is asked for that Python doesn't wait for."""
    return any(one.arg == "non_blocking" for one in keywords)
