"""What a function's own body tells of its unannotated parameters: use as evidence.

Enters an ast function and torch's table; leaves, per parameter and per element of it, how it is
used. ``tensor`` in ``for grad in grads: for tensor in grad: torch.isinf(tensor)`` is a tensor, so
``grad`` is one too where it is asked for its ``.device``, and ``grads`` holds tensors. Must not
know environments or sites.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.values import (
    UNKNOWN,
    Reason,
    Sequence,
    Strength,
    Tensor,
    Value,
)
from flake8_torchperf.suspects.walk import walk_backwards

if TYPE_CHECKING:
    from flake8_torchperf.knowledge.table import TorchTable
    from flake8_torchperf.suspects.modulemap import FunctionNode, ModuleMap
    from flake8_torchperf.suspects.walk import Nodes

# Attributes that of all objects met beside torch only tensors have, or that only a tensor is asked
# for: torch/_C/__init__.pyi lists them; no class of Python, numpy, pandas or torch.nn has them.
TELLING = {
    "requires_grad", "grad_fn", "is_cuda", "is_sparse", "retain_grad", "detach", "detach_",
    "numel", "unsqueeze", "unsqueeze_", "masked_fill", "masked_fill_", "contiguous", "expand_as",
    "view_as", "index_select", "scatter_", "scatter_add_", "new_zeros", "new_ones", "new_full",
    "new_empty", "new_tensor", "softmax", "log_softmax", "bmm", "data_ptr", "masked_select",
    "logsumexp", "addcmul_", "addcdiv_", "index_add_", "index_copy_", "mul_", "add_", "sub_",
    "div_", "zero_", "fill_", "clamp_", "permute", "is_contiguous",
    "element_size", "untyped_storage", "bernoulli_", "lerp_", "sqrt_", "type_as", "tolist_",
    "masked_scatter", "scatter_reduce", "scatter_reduce_", "grad",
}  # fmt: skip
CASTS = {"float", "double", "half", "bfloat16"}
MODULE_METHODS = {"to", "cpu", "cuda", "type", "apply", "requires_grad_", "eval", "train"}
# Together, or on something whose elements are tensors, these tell as well.
HINTING = {"device", "dtype", "data", "shape", "ndim"}
# Methods whose call with an integer only tensors answer (an array's `size` is no method).
SIZED = {"size", "stride"}
SHARED_OWNERS = {"self", "cls"}


@dataclass(slots=True)
class Use:
    """How one place (a parameter, or what iterating or indexing it gives) is used."""

    told: str = ""
    strong: bool = False
    hints: set[str] = field(default_factory=set)
    method: str = ""
    element: Use | None = None

    def inside(self) -> Use:
        """The use of its elements."""
        if self.element is None:
            self.element = Use()
        return self.element


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What tells a torch function from any other: the module's imports and torch's table."""

    module: ModuleMap
    table: TorchTable


@dataclass(frozen=True, slots=True)
class Evidence:
    """The uses of all parameters of one function."""

    uses: dict[str, Use]

    def value_of(self, name: str, node: ast.AST | None) -> Value:
        """What the uses of a parameter make of it."""
        use = self.uses.get(name)
        return UNKNOWN if use is None else _value(use, name, node)

    def asked(self, name: str) -> str:
        """A tensor method that a parameter is asked for, though others have it too; "" if none."""
        use = self.uses.get(name)
        return "" if use is None else use.method


def _value(use: Use, name: str, node: ast.AST | None) -> Value:
    inner = UNKNOWN if use.element is None else _value(use.element, f"element of {name}", node)
    told = use.told
    if not told and {"device", "dtype"} <= use.hints:
        told = "it is asked for `.device` and `.dtype`"
    if not told and "device" in use.hints and isinstance(inner, Tensor):
        told = "it is asked for `.device` and its elements are tensors"
    if told:
        subject = f"`{name}`" if name.isidentifier() else name
        return Tensor(Reason(f"{subject}: {told}", node, None, Strength.INFERRED))
    return UNKNOWN if inner == UNKNOWN else Sequence("sequence", inner)


def used_as(node: FunctionNode, module: ModuleMap, table: TorchTable) -> Evidence:
    """Collect the evidence in a function's body."""
    spec = node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    if spec.vararg is not None:
        names.append(spec.vararg.arg)
    uses = {name: Use() for name in names if name not in SHARED_OWNERS}
    rebound = _rebound(module.nodes(node), uses)
    aliases: dict[str, Use] = {n: u for n, u in uses.items() if n not in rebound}
    _walk(node.body, aliases, Knowledge(module, table))
    return Evidence(uses)


def _rebound(nodes: Nodes, uses: dict[str, Use]) -> set[str]:
    """Parameters that stand for something else after the first lines: their later uses tell less.

    ``x = list(x)`` and ``x = [x]`` turn what is said of ``x`` into something about another value.
    """
    found: set[str] = set()
    for statement in nodes.of(ast.Assign):
        if len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id in uses:
                found.add(target.id)
    return found


def _walk(body: list[ast.stmt], aliases: dict[str, Use], known: Knowledge) -> None:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        nodes = _expressions(statement)
        _bind(statement, nodes, aliases)
        for node in nodes:
            if isinstance(node, LOOKED_AT):
                _look(node, aliases, known)
        for block in ("body", "orelse", "finalbody"):
            _walk(getattr(statement, block, []), aliases, known)
        for handler in getattr(statement, "handlers", []):
            _walk(handler.body, aliases, known)


def _expressions(statement: ast.stmt) -> list[ast.AST]:
    """The expression nodes of a statement itself, without those of the blocks inside it."""
    return walk_backwards(
        [
            child
            for child in ast.iter_child_nodes(statement)
            if isinstance(child, (ast.expr, ast.withitem))
        ]
    )


def _bind(statement: ast.stmt, nodes: list[ast.AST], aliases: dict[str, Use]) -> None:
    match statement:
        case ast.For(target=target, iter=iterated):
            _bind_loop(target, iterated, aliases)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            use = _use_of(value, aliases)
            if use is not None:
                aliases[name] = use
            else:
                aliases.pop(name, None)
    for node in nodes:
        if isinstance(node, ast.comprehension):
            _bind_loop(node.target, node.iter, aliases)


def _bind_loop(target: ast.expr, iterated: ast.expr, aliases: dict[str, Use]) -> None:
    sources = [iterated]
    targets = [target]
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
        if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple) and iterated.args:
            sources, targets = [iterated.args[0]], [target.elts[-1]]
        elif iterated.func.id == "zip" and isinstance(target, ast.Tuple):
            sources, targets = list(iterated.args), list(target.elts)
        elif iterated.func.id in ("list", "tuple", "reversed", "iter") and iterated.args:
            sources = [iterated.args[0]]
    for one, source in zip(targets, sources, strict=False):
        use = _use_of(source, aliases)
        if isinstance(one, ast.Name):
            if use is not None:
                aliases[one.id] = use.inside()
            else:
                aliases.pop(one.id, None)


def _use_of(node: ast.expr, aliases: dict[str, Use]) -> Use | None:
    """The use that an expression stands for: a name, or an element by integer index."""
    match node:
        case ast.Name(id=name):
            return aliases.get(name)
        case ast.Subscript(value=base, slice=ast.Constant(value=int())):
            inner = _use_of(base, aliases)
            return None if inner is None else inner.inside()
    return None


LOOKED_AT = (ast.Attribute, ast.Call)


def _look(node: ast.AST, aliases: dict[str, Use], known: Knowledge) -> None:
    match node:
        case ast.Attribute(
            value=ast.Call(func=ast.Attribute(value=base, attr=cast), args=[]), attr=attr
        ) if cast in CASTS and attr not in MODULE_METHODS:
            # `x.float().mean()`: a module's `.float()` is a module, which has no `.mean`.
            use = _use_of(base, aliases)
            if use is not None and not use.told and known.table.method(attr) is not None:
                use.told = f"it is asked for `.{cast}().{attr}`"
        case ast.Attribute(value=base, attr=attr):
            use = _use_of(base, aliases)
            if use is None:
                return
            if attr in TELLING and not use.told:
                use.told = f"it is asked for `.{attr}`"
            elif attr in HINTING:
                use.hints.add(attr)
            elif not use.method and known.table.method(attr) is not None:
                use.method = attr
        case ast.Call(func=ast.Attribute(value=base, attr=attr), args=args) if (
            attr in SIZED and args
        ):
            use = _use_of(base, aliases)
            if use is not None and not use.told:
                use.told = f"its `.{attr}(...)` is called"
        case ast.Call(func=func, args=args):
            _passed(func, args, aliases, known)


def _passed(
    func: ast.expr, args: list[ast.expr], aliases: dict[str, Use], known: Knowledge
) -> None:
    """``torch.isinf(x)``: where every overload takes a tensor, ``x`` is one."""
    name = known.module.qualify(func)
    if not name.startswith("torch."):
        return
    for position, argument in enumerate(args):
        use = _use_of(argument, aliases)
        if use is None or use.told:
            continue
        op = known.table.function(name)
        if op is not None and _takes_tensor(op, position):
            use.told = f"passed to `{name}`"


def _takes_tensor(op: object, position: int) -> bool:
    overloads = getattr(op, "overloads", ())
    types = {
        slots[position].type
        for overload in overloads
        if position < len(slots := [p for p in overload.params if p.form == "positional"])
    }
    return types == {"T"}
