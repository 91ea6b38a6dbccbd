"""Names that hold parts of batches, of which something shows where they lie.

A framework moves them to its device, or a loop moves some of them and leaves the others.

``accelerator.prepare(loader)`` and ``fabric.setup_dataloaders(loader)`` return a loader that moves
each batch (accelerate/data_loader.py, `DataLoaderShard.__iter__`; lightning/fabric/wrappers.py,
`_FabricDataLoader.__iter__`).
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.project.function_facts import FunctionFact
from flake8_torchperf.syntax.bindings import bound_in, times_bound
from flake8_torchperf.syntax.names import dotted_name, moves_to_device

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

# The libraries, each with the methods that return loaders which move their batches.
MOVING = {
    "accelerate": frozenset(("prepare", "prepare_data_loader")),
    "lightning": frozenset(("setup_dataloaders",)),
    "lightning_fabric": frozenset(("setup_dataloaders",)),
}
# Methods after which a tensor is the host's, or none.
OFF_DEVICE = frozenset(("cpu", "numpy", "tolist", "item"))


def moving_methods(module: ModuleMap) -> frozenset[str]:
    """Return the names of the methods that make a module's loaders move their batches."""
    found = module.imported_from(MOVING.keys())
    imported = {name.partition(".")[0] for name in found.values()}
    return frozenset().union(*(MOVING[name] for name in imported))


def moving_loaders(nodes: Nodes, methods: frozenset[str], known: Iterable[str] = ()) -> set[str]:
    """Return the names, ``self.loader`` among them, of loaders that move their batches.

    ``known`` holds those of other functions.
    """
    found = set(known)
    for made in sorted(nodes.of(ast.Assign), key=lambda node: node.lineno):
        match made.value:
            case ast.Call(func=ast.Attribute(attr=name)) if name in methods:
                found.update(_targets(made))
            case ast.Call(func=ast.Name(), args=[one, *_]) if dotted_name(one) in found:
                found.update(_targets(made))  # self.batches = cycle(loader)
    return found


def _kept_loaders(info: FunctionInfo) -> tuple[tuple[str, ...], ...]:
    """Return the attributes that a function gives such loaders, for each library of `MOVING`."""
    nodes = info.module.nodes(info.tree)
    found = (moving_loaders(nodes, methods) for methods in MOVING.values())
    return tuple(tuple(sorted(name for name in names if "." in name)) for names in found)


KEPT_LOADERS = FunctionFact("kept-loaders", _kept_loaders)


def kept_loaders(info: FunctionInfo, methods: frozenset[str]) -> set[str]:
    """Return the attributes that a function gives loaders which some methods return."""
    by_library = zip(MOVING.values(), KEPT_LOADERS.of(info), strict=True)
    return {name for of_library, names in by_library if of_library <= methods for name in names}


def placed_names(nodes: Nodes, loaders: set[str], batches: Iterable[str] = ()) -> frozenset[str]:
    """Return the names that hold nothing but batches of these loaders, and parts of them.

    ``batches`` holds the parameters under which a framework passes moved batches.
    """
    found = set(batches)
    if not (found or loaders):
        return frozenset()
    bound = times_bound(nodes)
    placed: Counter[str] = Counter()
    bindings = nodes.of_any(ast.Assign, ast.For, ast.AsyncFor)
    for node in sorted(bindings, key=lambda one: one.lineno):
        value = node.value if isinstance(node, ast.Assign) else node.iter
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name for one in targets for name in bound_in(one)]
        moved = isinstance(node, ast.Assign) and _again(value) in names
        if moved or _is_part(value, found) or _gives_batches(node, value, loaders):
            placed.update(names)
            found.update(names)
    return frozenset(name for name in found if placed[name] == bound[name])


def left_on_host(nodes: Nodes) -> frozenset[str]:
    """Return the names of parts of batches that stay on the host while a loop moves another part.

    A loader makes all parts of a batch in one place: of ``for x, names, sizes in batches``, where
    only ``x.cuda()`` follows, the sizes lie where ``x`` did.
    """
    loops = nodes.of_any(ast.For, ast.AsyncFor)
    groups = [
        group
        for loop in loops
        for group in ast.walk(loop.target)
        if isinstance(group, ast.Tuple) and len(group.elts) > 1
    ]
    if not groups:
        return frozenset()
    bound = times_bound(nodes)
    types = _device_types(nodes)
    moved = {name for call in nodes.of(ast.Call) if (name := _moved(call, types))}
    parts: Counter[str] = Counter()
    for group in groups:
        names = [one.id for one in group.elts if isinstance(one, ast.Name)]
        if not moved.isdisjoint(names):
            parts.update(name for name in names if name not in moved)
    return frozenset(name for name, times in parts.items() if times == bound[name])


def _device_types(nodes: Nodes) -> frozenset[str]:
    """Return the names that stand for legacy types of CUDA, such as ``torch.cuda.FloatTensor``."""
    return frozenset(
        target.id
        for made in nodes.of(ast.Assign)
        for target in made.targets
        if isinstance(target, ast.Name)
        and any(
            isinstance(one, ast.Attribute)
            and one.attr.endswith("Tensor")
            and dotted_name(one).startswith("torch.cuda.")
            for one in ast.walk(made.value)
        )
    )


def _moved(call: ast.Call, types: frozenset[str]) -> str:
    """Return ``x`` for ``x.cuda()``, ``x.to(device)`` and ``x.type(a type of CUDA)``."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="cuda")):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="to")):
            return name if moves_to_device(call) else ""
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="type"), args=[ast.Name(id=kind)]
        ):
            return name if kind in types else ""
    return ""


def _targets(made: ast.Assign) -> Iterator[str]:
    for target in made.targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        yield from filter(None, map(dotted_name, parts))


def _again(value: ast.expr) -> str:
    """Return ``x`` for ``x.to(device)``; "" for a method after which it lies on the host."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return "" if method in OFF_DEVICE else name
    return ""


def _is_part(node: ast.expr, placed: set[str]) -> bool:
    """True for ``batch``, ``batch["x"]``, ``batch.x`` and ``batch.items()``."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="items" | "values"), args=[]):
            node = owner
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return isinstance(node, ast.Name) and node.id in placed


def _gives_batches(node: ast.AST, value: ast.expr, loaders: set[str]) -> bool:
    """True for a loop over a loader, however it is wrapped, and for ``next(loader)``."""
    if isinstance(node, ast.Assign):
        match value:
            case ast.Call(func=ast.Name(id="next"), args=[one, *_]):
                value = one
            case _:
                return False
    while isinstance(value, ast.Call) and value.args:
        value = value.args[0]  # enumerate(tqdm(loader))
    return dotted_name(value) in loaders
