"""Calls and attributes that show their owner to be a tensor, whatever else is known of it."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import casts_to, methods_of
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.module_index import imports_torch
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.names import called_a_device, called_name, given_to
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from flake8_torchperf.knowledge.table import TorchTable
    from flake8_torchperf.project.module_index import ClassInfo, FunctionNode, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

_TELLING = methods_of("tells-a-tensor")
_BARE = methods_of("tells-a-tensor-if-bare")
# Methods that show a tensor only in code that mentions neither arrays nor data frames.
_OF_ARRAYS = methods_of("of-arrays-too")
_OF_ARRAYS_BARE = methods_of("of-arrays-too-if-bare")
# Methods that read an array or a tensor. They show a tensor if they are called without arguments;
# in a module that imports an array library, only in functions that mention torch and not that one.
_READS = methods_of("reads")
_ALONG = methods_of("works-along-an-axis")
ARRAYS = {
    "numpy", "pandas", "polars", "cupy", "jax", "scipy", "xarray", "sympy", "sqlalchemy", "cudf",
    "dask", "pyarrow", "mlx", "tensorflow", "paddle", "datasets", "PIL", "sklearn", "numba",
    "rasterio", "cv2", "skimage", "geopandas", "nibabel", "SimpleITK", "h5py", "zarr", "netCDF4",
    "librosa", "soundfile", "tifffile", "imageio", "astropy", "rdkit", "ase", "networkx",
}  # fmt: skip
# Names that only data frames and their columns have, and the usual name of a data frame.
OF_FRAMES = frozenset((
    "df", "iterrows", "itertuples", "iter_rows", "to_numpy", "isna", "notna", "dropna", "fillna",
    "iloc", "groupby", "group_by", "value_counts", "to_pandas", "reset_index", "sort_values",
))  # fmt: skip
_CASTS = casts_to("float") | {"cpu", "cuda"}
MODULE_METHODS = methods_of("of-modules-too")
# Methods that only tensors have with an integer argument (an array's `size` is no method).
SIZE_METHODS = {"size", "stride"}
# Methods that take sizes as separate numbers, and the least count of sizes that shows a tensor: a
# distribution's `expand` takes one shape, numpy's `repeat` and `view` two other arguments.
BY_SIZES = {"expand": 2, "repeat": 3, "view": 3}
# The keywords of reductions that only torch uses for the axis, with a number.
DIMS = ("dim", "keepdim", "dims")


# Attributes that arrays have too.
SHAPE_ATTRIBUTES = {"shape", "ndim"}
# A function without one of these words or a call of torch does not show any name's type.
TELLING_WORDS = frozenset((
    *_TELLING, *_BARE, *_OF_ARRAYS, *_READS, *_ALONG, *_CASTS, *SIZE_METHODS, *BY_SIZES, *DIMS,
    *SHAPE_ATTRIBUTES, *methods_of("runs-backward"), "memory_format", "device",
))  # fmt: skip


def may_tell(nodes: Nodes, module: ModuleMap) -> bool:
    """True if anything in a function may show a name's type; a fast test that errs on True."""
    words = nodes.words()
    return not (TELLING_WORDS.isdisjoint(words) and _of_torch(module).isdisjoint(words)) or any(
        isinstance(index.slice, (ast.UnaryOp, ast.Tuple)) for index in nodes.of(ast.Subscript)
    )


def hands_on(nodes: Nodes) -> bool:
    """True if a function may pass a value to code of the project that shows its type."""
    return any(
        isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript))
        for call in nodes.of(ast.Call)
        if isinstance(call.func, ast.Attribute)
        or (isinstance(call.func, ast.Name) and call.func.id not in FROM_BUILT_INS)
        for argument in given_to(call)
    )


FROM_BUILT_INS = frozenset(dir(builtins))


@once_per_module
def _of_torch(module: ModuleMap) -> frozenset[str]:
    """Return the names under which a module imports torch, or anything of torch."""
    return frozenset(("torch", *module.imported_from(("torch",))))


def of_no_tensor(call: ast.Call, table: TorchTable) -> bool:
    """True if a tensor's method of this name does not take so many arguments: ``xp.isnan(x)``."""
    method = table.method(call.func.attr) if isinstance(call.func, ast.Attribute) else None
    if method is None or not call.args or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    return bool(method.overloads) and all(
        not overload.takes(len(call.args)) for overload in method.overloads
    )


def of_a_size(func: ast.Attribute) -> bool:
    """True for ``shape.numel()``, a method of ``torch.Size`` too (torch/_C/__init__.pyi, Size)."""
    owner = func.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return func.attr == "numel" and any(word in name.lower() for word in ("shape", "size"))


def told_by_call(
    call: ast.Call, table: TorchTable, module: ModuleMap, function: FunctionNode | None
) -> str:
    """Return why the owner of a called method is a tensor; "" if the call does not show it."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return ""
    name = func.attr
    if of_no_tensor(call, table) or of_a_size(func):
        return ""
    if name in _TELLING:
        return f"`.{name}` is asked for"
    bare = not call.args and not call.keywords
    if (bare and name in _BARE) or (name in SIZE_METHODS and call.args):
        return f"`.{name}(...)` is called"
    if name in BY_SIZES and _takes_sizes(call, BY_SIZES[name]):
        return f"`.{name}(...)` is called with sizes"
    for keyword in call.keywords:
        if keyword.arg in DIMS and _numeric(keyword.value) and table.method(name) is not None:
            return f"`.{name}({keyword.arg}=...)` is called"
        if keyword.arg == "memory_format" and name in ("clone", "contiguous"):
            return f"`.{name}({keyword.arg}=...)` is called"
    shown = name in _OF_ARRAYS and bare == (name in _OF_ARRAYS_BARE)
    read = bare and name in _READS and not _as_others_ask(func.value)
    if not (shown or read or (name in _ALONG and _axis_alone(call))):
        return ""
    if knows_arrays(module, function) or (read and not _speaks_of_torch(module, function)):
        return ""
    return f"`.{name}(...)` is called"


def _as_others_ask(node: ast.expr) -> bool:
    """True for forms of other libraries, as ``x.max(axis=0)`` or ``x.mean(dim="time")``."""
    match node:
        case ast.Call(keywords=keywords):
            return any(
                k.arg == "axis" or (k.arg in DIMS and not _numeric(k.value)) for k in keywords
            )
        case ast.Subscript(slice=ast.Tuple(elts=parts)):
            return any(isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts)
    return False


def _speaks_of_torch(module: ModuleMap, function: FunctionNode | None) -> bool:
    """True if a function names torch, or its module has no arrays with methods like a tensor's."""
    if not knows_arrays(module):
        return True
    return function is not None and not _of_torch(module).isdisjoint(module.nodes(function).words())


def _axis_alone(call: ast.Call) -> bool:
    """True if a method's only argument is an integer literal."""
    match call:
        case ast.Call(args=[ast.Constant(value=int()) as axis], keywords=[]):
            return not isinstance(axis.value, bool)
        case ast.Call(
            args=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))], keywords=[]
        ):
            return True
    return False


def _takes_sizes(call: ast.Call, several: int) -> bool:
    """True for ``x.expand(n, m)``, ``x.view(-1)`` and ``x.expand(y.shape[0])``."""
    return not call.keywords and (len(call.args) >= several or any(map(_is_size, call.args)))


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=int())):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[_]):
            return True
    return False


def _numeric(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and isinstance(node.value, (str, type(None))))


def told_by_index(node: ast.Subscript, module: ModuleMap) -> str:
    """Return why an indexed value is a tensor, ``x[:, -1]``; "" if the index does not show it.

    No container takes a slice among several indices.
    """
    return SLICED if sliced(node.slice) and not knows_arrays(module) else ""


SLICED = "several of its dimensions are indexed"


def loss_of(call: ast.Call, table: TorchTable, function: FunctionNode) -> ast.expr | None:
    """Return the loss that a call runs backward from without a gradient, or None.

    Examples are ``loss.backward()``, ``scaler.scale(loss).backward()``,
    ``accelerator.backward(loss)`` and ``self.manual_backward(loss)``.
    """
    match call:
        case ast.Call(func=ast.Attribute(attr="manual_backward"), args=[loss, *_]):
            return loss
        case ast.Call(func=ast.Attribute(value=owner, attr="backward"), args=[]):
            if any(keyword.arg in (None, "gradient") for keyword in call.keywords):
                return None
            match owner:
                case ast.Call(func=ast.Attribute(attr="scale"), args=[loss]):
                    return loss
            return owner
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="backward"), args=[loss]):
            asked = attributes_by_name(function).get(owner, frozenset())
            known = all(table.attribute(a) or table.method(a) for a in asked)
            return None if known else loss  # a tensor's argument is the gradient
        case ast.Call(func=ast.Attribute(value=ast.Attribute(), attr="backward"), args=[loss]):
            return loss
    return None


@once
def attributes_by_name(function: ast.AST) -> dict[str, frozenset[str]]:
    """Return the attributes and methods that a function uses, by the name of their owner."""
    found: dict[str, set[str]] = {}
    for node in walk([function]):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr):
                found.setdefault(name, set()).add(attr)
    return {name: frozenset(attributes) for name, attributes in found.items()}


def scaled(name: str, value: ast.expr | None) -> bool:
    """True for ``loss = loss / n``, which works like ``loss /= n``: a tensor stays a tensor."""
    match value:
        case ast.BinOp(left=ast.Name(id=same), op=ast.Div() | ast.Mult()):
            return same == name
    return False


def brought(node: ast.expr) -> ast.expr | None:
    """Return the ``x`` of ``x.to(device)``, ``x.cuda()``, ``x.cpu()``, or None.

    It is a tensor, a module or a batch.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="to"), args=[where, *_]):
            return base if called_a_device(where) else None
        case ast.Call(func=ast.Attribute(value=base, attr="to"), keywords=[first, *_]):
            return base if first.arg == "device" else None
        case ast.Call(func=ast.Attribute(value=base, attr="cuda" | "cpu"), args=[]):
            return base
    return None


def sliced(node: ast.expr) -> bool:
    """True for ``x[:, -1]``, whose index an array takes but no container."""
    return isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts)


def told_by_attribute(name: str, module: ModuleMap) -> bool:
    """True if only tensors have this attribute, among the types that the module uses."""
    return name in _TELLING or (name in SHAPE_ATTRIBUTES and not knows_arrays(module))


def told_by_cast(func: ast.Attribute, table: TorchTable) -> tuple[ast.expr, str] | None:
    """Return the ``x`` of ``x.float().mean()`` and why it is a tensor: no module has ``.mean``."""
    match func.value:
        case ast.Call(func=ast.Attribute(value=base, attr=cast), args=[], keywords=[]) if (
            cast in _CASTS and func.attr not in MODULE_METHODS and _has(table, func.attr)
        ):
            return base, f"`.{cast}().{func.attr}` is asked for"
    return None


def foreign(name: str, table: TorchTable) -> bool:
    """True if a tensor has no attribute of this name."""
    return not (name.startswith("__") or _has(table, name))


def _has(table: TorchTable, name: str) -> bool:
    return name in table.method_names() or name in table.attribute_names()


def settled(statement: ast.stmt) -> str:
    """Return the name that a statement restricts to classes that are no tensors.

    After ``if not isinstance(x, Spec): raise``, every use of ``x`` is the use of a Spec.
    """
    match statement:
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test), body=[*_, last], orelse=[]):
            if not isinstance(last, (ast.Raise, ast.Return, ast.Continue, ast.Break)):
                return ""
        case ast.Assert(test=test):
            pass
        case _:
            return ""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), classes]):
            words = {n.id for n in ast.walk(classes) if isinstance(n, ast.Name)}
            words |= {n.attr for n in ast.walk(classes) if isinstance(n, ast.Attribute)}
            return name if HOLDING.isdisjoint(words) else ""
    return ""


# Classes that a tensor may be an instance of, and classes that hold tensors.
HOLDING = frozenset((
    "Tensor", "Parameter", "object", "list", "tuple", "dict", "set", "Sequence", "Iterable",
    "Iterator", "Mapping", "Collection", "MutableMapping", "MutableSequence", "Generator",
))  # fmt: skip


def knows_arrays(module: ModuleMap, function: FunctionNode | None = None) -> bool:
    """True if a module imports a library with arrays like tensors, or does not import torch.

    If torch is imported and ``function`` is given, that function or its class has to name such a
    library, or to work on a data frame. In a function that names torch, the library's constants and
    random numbers don't count.
    """
    _array_names(module)  # asked for each linted file, though the answers are kept
    known = _with_arrays(module)
    if function not in known:
        known[function] = _knows_arrays(module, function)
    found, owner = known[function]
    if owner is not None:
        owner.ask()
    return found


@once_per_module
def imports_arrays_alone(module: ModuleMap) -> bool:
    """True if a module imports numpy, and not torch, at its top level."""
    return "numpy" in module.imported_from(("numpy",)).values() and not imports_torch(module)


@once_per_module
def _with_arrays(
    _module: ModuleMap,
) -> dict[FunctionNode | None, tuple[bool, ClassInfo | None]]:
    """Return what `knows_arrays` finds, by the function, with the class that it was read from."""
    return {}


def _knows_arrays(
    module: ModuleMap, function: FunctionNode | None
) -> tuple[bool, ClassInfo | None]:
    names = _array_names(module)
    if not names:
        return names is None, None
    if function is None:
        return True, None
    nodes = module.nodes(function)
    words = nodes.words()
    plain = not _of_torch(module).isdisjoint(words)
    if _names_arrays(nodes, names, plain) or not OF_FRAMES.isdisjoint(words):
        return True, None
    info = function_at(module, function.lineno)
    owner = None if info is None or info.tree is not function else info.owner
    if owner is not None and _names_arrays(module.nodes(owner.node), names, plain):
        return True, owner
    spec = function.args
    stated = [p.annotation for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    nodes_of_types = (node for node in (*stated, function.returns) if node is not None)
    return any(_names_one(node, names) for node in nodes_of_types), owner


def _names_arrays(nodes: Nodes, names: frozenset[str], plain: bool) -> bool:
    """True if code names an array library; if ``plain``, for more than a plain number."""
    if names.isdisjoint(nodes.words()):
        return False
    if not plain:
        return True
    numbers = {id(n.value) for n in nodes.of(ast.Attribute) if n.attr in CONSTANTS}
    for call in nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=ast.Attribute(value=library, attr="random"), attr=name):
                if _is_number(call, name):
                    numbers.add(id(library))
    if any(n.id in names and id(n) not in numbers for n in nodes.of(ast.Name)):
        return True
    return any(n.attr in names for n in nodes.of(ast.Attribute)) or any(
        k.arg in names for k in nodes.of(ast.keyword)
    )


def _is_number(call: ast.Call, name: str) -> bool:
    """True for ``np.random.rand()`` and ``np.random.randint(9)``, which make one number each."""
    spread = any(isinstance(one, ast.Starred) for one in call.args)
    return not (call.keywords or spread) and len(call.args) <= DRAWS.get(name, -1)


# The constants of numpy.
CONSTANTS = frozenset(("pi", "e", "inf", "nan"))
# Functions of numpy.random that draw one number if they are given no shape, and the count of
# arguments before the shape. `seed` returns nothing.
DRAWS = {
    "rand": 0, "randn": 0, "random": 0, "random_sample": 0, "randint": 2, "uniform": 2, "normal": 2,
    "seed": 1,
}  # fmt: skip


@once_per_module
def _array_names(module: ModuleMap) -> frozenset[str] | None:
    """Return the names of imported array libraries; None if the module does not import torch."""
    found = module.imported_from(("torch", *ARRAYS))
    heads = {name: target.partition(".")[0] for name, target in found.items()}
    if "torch" not in heads.values():
        return None
    return frozenset(name for name, head in heads.items() if head in ARRAYS)


def _names_one(annotation: ast.expr, names: frozenset[str]) -> bool:
    for node in ast.walk(annotation):
        match node:
            case ast.Name(id=name):
                if name in names:
                    return True
            case ast.Constant(value=str(text)):
                if any(name in text for name in names):
                    return True
    return False


# Calls that test a type: the code in a branch that they guard is no evidence for other branches.
TYPE_TESTS = {
    "isinstance", "issubclass", "hasattr", "type", "callable", "is_tensor", "is_tensor_like",
}  # fmt: skip
NAME_ATTRIBUTES = {"__name__", "__qualname__", "__module__"}


def asked_for_type(nodes: list[ast.AST]) -> set[str]:
    """Return the names whose type an expression of a statement tests."""
    found: set[str] = set()
    tests = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and node.args and called_name(node.func) in TYPE_TESTS
    ]
    if not tests:
        return found
    named = {
        id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr in NAME_ATTRIBUTES
    }
    for test in tests:
        if id(test) in named:
            continue  # `type(x).__name__` tests nothing
        first = test.args[0]
        while isinstance(first, (ast.Attribute, ast.Subscript)):
            first = first.value
        if isinstance(first, ast.Name):
            found.add(first.id)
    return found
