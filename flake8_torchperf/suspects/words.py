"""The words nomination goes by: names whose meaning needs no look at the code.

The operations of torch come from `knowledge/nomination_words.json`, which
`tools/generate_nomination_words.py` derives from the torch table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[1] / "knowledge" / "nomination_words.json"

# Attributes that are facts about a tensor or a module, never a tensor.
HOST_ATTRIBUTES = frozenset((
    "shape", "ndim", "dtype", "device", "is_cuda", "is_cpu", "requires_grad", "is_leaf", "layout",
    "is_sparse", "is_quantized", "is_meta", "is_mps", "is_xpu", "is_nested", "training", "name",
    "itemsize", "nbytes", "names", "is_sparse_csr", "is_mkldnn", "output_nr", "_version",
    "__name__", "__class__", "__doc__", "__module__", "__qualname__", "is_vulkan", "is_hpu",
    "is_ipu", "is_mtia", "is_maia", "is_xla", "retains_grad", "grad_dtype", "_is_fsdp_sharded",
))  # fmt: skip
# Attributes by which an unannotated parameter is known to be a tensor (interpret/evidence.py).
TELLING = frozenset((
    "requires_grad", "grad_fn", "is_cuda", "is_sparse", "retain_grad", "detach", "detach_",
    "numel", "unsqueeze", "unsqueeze_", "masked_fill", "masked_fill_", "contiguous", "expand_as",
    "view_as", "index_select", "scatter_", "scatter_add_", "new_zeros", "new_ones", "new_full",
    "new_empty", "new_tensor", "softmax", "log_softmax", "bmm", "data_ptr", "masked_select",
    "logsumexp", "addcmul_", "addcdiv_", "index_add_", "index_copy_", "mul_", "add_", "sub_",
    "div_", "zero_", "fill_", "clamp_", "permute", "is_floating_point", "is_contiguous",
    "is_complex", "element_size", "untyped_storage", "bernoulli_", "lerp_", "sqrt_", "type_as",
    "tolist_", "masked_scatter", "scatter_reduce", "scatter_reduce_", "grad", "size", "stride",
    "device",
))  # fmt: skip
# `x.float().mean()` tells as well: a module's `.float()` is a module, which has no `.mean`.
CASTS = frozenset(("float", "double", "half", "bfloat16"))
# Methods that, called without arguments, tell that an unknown object is a tensor
# (interpret/calls.py, told_by_use), and those that yield tensors of any module.
TOLD_BY_CALL = frozenset(("backward", "detach", "requires_grad_", "numel", "contiguous"))
ITERATIONS = frozenset(("parameters", "named_parameters", "buffers", "named_buffers"))
SYNCHRONISING = frozenset((
    "synchronize", "empty_cache", "barrier", "monitored_barrier", "wait_stream", "empty_host_cache",
))  # fmt: skip
LOG_CALLS = frozenset((
    "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "warning_once",
))  # fmt: skip
NUMBER_CALLS = frozenset(("float", "int", "bool", "complex", "round"))
REDUCTIONS = frozenset(("max", "min", "any", "all", "sorted"))
TEXT_CALLS = frozenset(("print", "str", "repr", "format", "ascii"))
ITERATING = frozenset((
    "enumerate", "zip", "map", "filter", "reversed", "iter", "list", "tuple", "set", "frozenset",
    "sum", "dict",
))  # fmt: skip
TENSOR_READS = frozenset((
    "item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__",
    "__complex__", "is_nonzero", "equal", "allclose",
))  # fmt: skip
# Copies to the device: only what lies on the host has to go there.
MOVES = frozenset(("cuda", "xpu", "npu", "hpu", "mps"))
# Methods after which it is still the same parameter that is worked on (interpret/tensor_calls.py).
KEEPING_ROLE = frozenset(("detach", "float", "view", "data", "flatten", "double", "half"))
PER_PARAMETER = frozenset((
    "mul_", "add_", "sub_", "div_", "addcmul_", "addcdiv_", "lerp_", "zero_", "copy_", "clamp_",
    "norm", "neg_", "abs_", "sqrt_", "pow_", "clamp_min_", "clamp_max_", "vector_norm",
))  # fmt: skip
GROWING = frozenset((
    "cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack",
    "row_stack",
))  # fmt: skip
FILLING = frozenset((
    "append", "add", "extend", "insert", "update", "setdefault", "appendleft", "extendleft",
))  # fmt: skip
DTYPES = frozenset((
    "bool", "uint8", "int8", "int16", "short", "int32", "int", "int64", "long", "uint16", "uint32",
    "uint64", "float16", "half", "bfloat16", "float32", "float", "float64", "double", "complex64",
    "complex128", "cfloat", "cdouble", "complex32", "float8_e4m3fn", "float8_e5m2",
))  # fmt: skip
# Classes of torch whose objects are host facts, and libraries that pass their arguments on.
HOST_CLASSES = frozenset((
    "device", "dtype", "Size", "Generator", "memory_format", "layout", "finfo", "iinfo",
    "no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "profile",
    "record_function", "_size", "Device", "_dtype", "Number",
))  # fmt: skip
HOST_CONSTANTS = frozenset((
    *(f"torch.{name}" for name in DTYPES),
    *(f"torch.{name}" for name in (
        "inf", "nan", "pi", "e", "newaxis", "strided", "sparse_coo", "sparse_csr", "jagged",
        "contiguous_format", "channels_last", "channels_last_3d", "preserve_format", "quint8",
        "qint8", "__version__",
    )),
))  # fmt: skip
PROPERTIES = ("property", "cached_property", "lazy_property", "lazyproperty")
PASSING = frozenset(("collections", "itertools", "functools", "copy", "typing", "contextlib",
                     "typing_extensions", "operator", "dataclasses"))  # fmt: skip


def is_public(name: str) -> bool:
    """A dotted name without a private part: where it is one of torch's, the table describes it."""
    return "._" not in name


@dataclass(frozen=True, slots=True)
class Operations:
    """Functions or methods of torch by last name.

    ``results`` are grades. ``tensors_at`` has a bit per position, set where an argument may be
    more than a number.
    """

    costly: frozenset[str]
    results: dict[str, int]
    tensors_at: dict[str, int]
    number_keywords: frozenset[str]
    factories: frozenset[str]


@dataclass(frozen=True, slots=True)
class TorchWords:
    """What nomination knows of torch; ``members`` and ``attributes`` of its classes by grade."""

    functions: Operations
    methods: Operations
    classes: frozenset[str]
    members: dict[str, int]
    attributes: dict[str, int]


@lru_cache(maxsize=1)
def torch_words() -> TorchWords:
    """The committed words, read once."""
    data = json.loads(PATH.read_bytes())
    return TorchWords(
        _operations(data["functions"]),
        _operations(data["methods"]),
        frozenset(data["classes"]),
        _by_name(data["members"]),
        _by_name(data["attributes"]),
    )


def _operations(data: dict[str, Any]) -> Operations:
    return Operations(
        frozenset(data["costly"]),
        _by_name(data["results"]),
        _by_name(data["tensors_at"]),
        frozenset(data["number_keywords"]),
        frozenset(data["factories"]),
    )


def _by_name(groups: dict[str, list[str]]) -> dict[str, int]:
    return {name: int(number) for number, names in groups.items() for name in names}
