"""Turns the interpreter's values for a function's parameters into specs.

The child tries the specs until the flagged lines run.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.runtime.confirm.specs import input_specs
from flake8_torchperf.runtime.confirm.specs.from_names import by_name, is_device, pool
from flake8_torchperf.runtime.confirm.specs.from_usage import ParameterUse, uses
from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec, listing, simple, tensor
from flake8_torchperf.values import values as v
from flake8_torchperf.values.combining import without

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo

# The most candidates for one parameter: the child tries them one at a time.
MAX_CANDIDATES = 26
MODULE_USES = {
    "parameters", "named_parameters", "state_dict", "modules", "named_modules", "train", "eval",
    "children", "named_children", "register_forward_hook", "buffers", "named_buffers",
}  # fmt: skip
OPTIMIZER_USES = {"param_groups", "zero_grad", "add_param_group"}
TORCH_KINDS = {
    "torch.optim.Optimizer": "optimizer",
    "torch.optim.optimizer.Optimizer": "optimizer",
    "torch.nn.Module": "module",
    "torch.nn.modules.module.Module": "module",
    "torch.utils.data.DataLoader": "loader",
    "torch.Generator": "generator",
    "torch.Size": "size",
}


def candidates(
    info: FunctionInfo, machine: Analysis
) -> tuple[dict[str, list[InputSpec]], tuple[str, ...]]:
    """Return the specs to try for each parameter of ``info`` but ``self``; none if it is unknown.

    The second value names the required parameters of which at most uses are known.
    """
    declared = declared_parameters(info, machine)
    used = uses(info.node)
    defaults = _defaults(info.node.args)
    found: dict[str, list[InputSpec]] = {}
    unsure: list[str] = []
    for name, value in declared.items():
        use = used.get(name, ParameterUse())
        made = of_value(value, use)
        if not made:
            made = [*(by_name(name) if is_device(name) else ()), *of_use(use)]
            if name not in defaults:
                unsure.append(name)
        if name in defaults:
            made = [*defaults[name], *(made or by_name(name))]
        found[name] = input_specs.unique(made)[:MAX_CANDIDATES]
    return found, tuple(unsure)


def _defaults(spec: ast.arguments) -> dict[str, list[InputSpec]]:
    """Return the specs of each parameter with a default: the default, then the other bool."""
    ordinary = [*spec.posonlyargs, *spec.args]
    pairs = list(zip(ordinary[len(ordinary) - len(spec.defaults) :], spec.defaults, strict=True))
    pairs += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d]
    made: dict[str, list[InputSpec]] = {}
    for argument, default in pairs:
        others: list[InputSpec] = []
        if isinstance(default, ast.Constant) and isinstance(default.value, bool):
            others = input_specs.values((not default.value,))
        made[argument.arg] = [simple("default"), *others]
    return made


def of_value(value: v.Value, use: ParameterUse) -> list[InputSpec]:
    """Return specs for the interpreter's value of a parameter; none for Unknown."""
    match value:
        case v.Tensor(dtype=dtype, scalar=scalar, role=role):
            scalar = scalar or use.single
            if dtype == "unknown" and use.indexes:
                indexes = input_specs.tensors("int", _ranks(use), scalar)
                return [*indexes[:6], *input_specs.tensors(dtype, _ranks(use), scalar)]
            return input_specs.tensors(dtype, _ranks(use), scalar, role == "parameter")
        case v.Scalar():
            return _of_scalar(value, use)
        case v.NoneValue():
            return [input_specs.value(None)]
        case v.Sequence():
            return _of_sequence(value, use)
        case v.Mapping_(items=items, element=element):
            known = {key: _first(item) for key, item in items}
            known.update({key: _first(element) for key in use.keys if key not in known})
            if not known and not isinstance(element, v.UnknownValue):
                known = {str(i): _first(element) for i in range(2)}
            return [input_specs.mapping(known)]
        case v.Union(options=options) if v.NONE in options:
            rest = without(value, v.NoneValue)
            made = [] if rest is None else of_value(rest, use)
            return [*made[:3], input_specs.value(None), *made[3:]]
        case v.Union(options=options):
            return [one for option in _tensors_first(options) for one in of_value(option, use)]
        case v.Instance(name=name, info=info):
            return _of_instance(name, info is not None)
        case v.Returning(value=returned):
            return [{"kind": "callable", "result": _first(returned)}, simple("callable")]
    return _of_the_rest(value)


def _of_the_rest(value: v.Value) -> list[InputSpec]:
    match value:
        case v.NDArray():
            return [{**one, "array": True} for one in input_specs.tensors("float")[:4]]
        case v.Device():
            return [simple("device"), input_specs.value(None)]
        case v.DType():
            return [simple("dtype"), input_specs.value(None)]
        case v.Closure() | v.Function():
            return [simple("callable")]
    return []


def _of_instance(name: str, ours: bool) -> list[InputSpec]:
    if name in TORCH_KINDS:
        return [simple(TORCH_KINDS[name])]
    if not ours and name.startswith("torch.nn."):
        return [input_specs.instance(name), simple("module")]
    return [input_specs.instance(name), simple("stand-in")]


def _of_scalar(value: v.Scalar, use: ParameterUse) -> list[InputSpec]:
    if value.known:
        return input_specs.values((value.value,))
    told = [one for one in use.compared if isinstance(one, str) == (value.kind == "str")]
    match value.kind:
        case "int":
            return input_specs.values((2, 1, 0, 4, -1, *told))
        case "bool":
            return input_specs.values((False, True))
        case "str":
            return input_specs.values((*told, "mean", "sum", "none", "a"))
        case "bytes":
            return input_specs.values(("a",))
    return input_specs.values((0.5, 2.0, 1.0, 4, *told))


def _of_sequence(value: v.Sequence, use: ParameterUse) -> list[InputSpec]:
    form = {"tuple": "tuple", "set": "set", "iterator": "iterator", "generator": "iterator"}.get(
        value.kind, "list"
    )
    if value.items is not None and value.items:
        return [input_specs.fixed((_first(item) for item in value.items), form)]
    element = value.element
    tensor_inside = v.tensor_of(element)
    if tensor_inside is not None:
        made = _tensor_lists(tensor_inside, use, form)
        if isinstance(element, v.Union):
            made.append(listing(input_specs.value(None), "n", form))
        return [*made, input_specs.fixed((), form)]
    inner = of_value(element, ParameterUse())
    if not inner:
        inner = [tensor((4,)), input_specs.value(2)]
    # A list of lists of tensors grows in one place only, or counts would grow with n squared.
    if isinstance(element, v.Sequence):
        return [listing(one, 1, form) for one in inner[:4]] + [listing(inner[0], "n", form)]
    made = [listing(one, "n", form) for one in inner[:3]]
    if isinstance(element, v.Scalar) and element.kind == "int":
        made.append(input_specs.ASCENDING)
    return [*made, *(listing(one, 2, form) for one in inner[:4]), input_specs.fixed((), form)]


def _tensor_lists(inside: v.Tensor, use: ParameterUse, form: str) -> list[InputSpec]:
    """Return specs of lists of tensors, the most suitable first.

    Where the code also iterates each tensor, a list of one tensor comes first: the number of
    elements is then n, and not n squared.
    """
    dtype = "float" if inside.dtype == "unknown" else inside.dtype
    parameter = inside.role == "parameter"
    wide = [
        listing(tensor(shape, dtype, parameter=parameter), 1, form) for shape in (("n",), ("n", 4))
    ]
    shapes: list[input_specs.Shape] = list(input_specs.ITEM_SHAPES)
    if inside.scalar:
        shapes.insert(0, ())
    long = [listing(tensor(shape, dtype, parameter=parameter), "n", form) for shape in shapes]
    if inside.dtype == "unknown":
        long += [listing(tensor(shape, "int"), "n", form) for shape in ((4,), ())]
    return [*wide, *long] if use.twice else [*long, *wide]


def of_use(use: ParameterUse) -> list[InputSpec]:
    """Return specs for a parameter of which only the uses are known; none if they say nothing."""
    made: list[InputSpec] = []
    if use.attributes & OPTIMIZER_USES:
        made.append(simple("optimizer"))
    if use.attributes & MODULE_USES:
        made.append(simple("module"))
    if use.keys:
        made.append(input_specs.mapping({key: _by_name_first(key) for key in use.keys}))
    if use.compared:
        made += input_specs.values(use.compared)
    if use.counted:
        made += input_specs.values((4, 2))
    if use.returns:
        several = [tensor((), data="normal"), *(tensor(("n",)) for _ in range(use.returns - 1))]
        made.append({"kind": "callable", "result": input_specs.fixed(several)})
        alike = input_specs.fixed(tensor(("n",)) for _ in range(use.returns))
        made.append({"kind": "callable", "result": alike})
    if use.called:
        made += [simple("callable"), simple("module")]
    if use.ranks or use.least_rank or use.attributes & {"shape", "size", "dtype", "device"}:
        made += input_specs.tensors("unknown", _ranks(use))[:14]
    if use.iterated:
        made += [
            listing(tensor((4,)), "n"),
            listing(tensor(("n",)), 1),
            listing(input_specs.value(2), "n"),
        ]
    if not made and use.attributes:
        made.append(simple("stand-in"))
    return made


def _ranks(use: ParameterUse) -> tuple[int, ...]:
    if use.ranks:
        return tuple(sorted(use.ranks))
    return tuple(range(use.least_rank, 5)) if use.least_rank else ()


def _tensors_first(options: tuple[v.Value, ...]) -> list[v.Value]:
    return sorted(options, key=lambda o: 0 if isinstance(o, v.Tensor) else 1)


def _first(value: v.Value) -> InputSpec:
    made = of_value(value, ParameterUse())
    return made[0] if made else tensor(("n",))


def _by_name_first(name: str) -> InputSpec:
    made = by_name(name) or pool()
    return made[0]
