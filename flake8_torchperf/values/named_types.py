"""Types by name: the value of an object whose class has a given qualified name."""

from __future__ import annotations

import builtins
from dataclasses import replace

from flake8_torchperf.values.devices import CHOSEN
from flake8_torchperf.values.values import (
    BOOL,
    FLOAT,
    INT,
    NDARRAY,
    NONE,
    NUMBER,
    SHAPE,
    STR,
    UNKNOWN,
    Device,
    DType,
    Instance,
    Mapping_,
    Opaque,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Value,
)

# dtype classes of the legacy tensor types, https://docs.pytorch.org/docs/stable/tensors.html
LEGACY_TENSORS = {
    "FloatTensor": "float", "DoubleTensor": "float", "HalfTensor": "float",
    "BFloat16Tensor": "float", "ByteTensor": "int", "CharTensor": "int", "ShortTensor": "int",
    "IntTensor": "int", "LongTensor": "int", "BoolTensor": "bool",
}  # fmt: skip

DTYPES = {
    "bool": "bool",
    **dict.fromkeys(
        ("uint8", "int8", "int16", "short", "int32", "int", "int64", "long", "uint16", "uint32",
         "uint64"), "int"),
    **dict.fromkeys(
        ("float16", "half", "bfloat16", "float32", "float", "float64", "double",
         "float8_e4m3fn", "float8_e5m2"), "float"),
    **dict.fromkeys(("complex32", "complex64", "cfloat", "complex128", "cdouble"), "complex"),
}  # fmt: skip

# https://docs.kidger.site/jaxtyping/api/array/ : dtype class by the name before the bracket
JAXTYPING = {
    "Float": "float", "Float16": "float", "Float32": "float", "Float64": "float",
    "BFloat16": "float", "Int": "int", "Int8": "int", "Int16": "int", "Int32": "int",
    "Int64": "int", "UInt8": "int", "Integer": "int", "Bool": "bool", "Complex": "complex",
    "Num": "unknown", "Shaped": "unknown", "Inexact": "unknown", "Real": "unknown",
}  # fmt: skip

# The last is a function, which annotations often name for the class.
TENSOR_CLASSES = {
    "torch.Tensor", "torch._tensor.Tensor", "torch.TensorBase", "torch._C.TensorBase",
    "torch.autograd.Variable", "torch.autograd.variable.Variable",
    "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer",
    "torch.nn.parameter.Buffer", "torch.nn.UninitializedParameter",
    "torch.nn.parameter.UninitializedParameter", "torch.nn.UninitializedBuffer",
    "torch.distributed.tensor.DTensor", "torch.distributed._tensor.DTensor", "torch.tensor",
}  # fmt: skip

# Packages whose `Tensor` is another framework's.
FOREIGN_TENSORS = {"tensorflow", "jax", "paddle", "mindspore", "tinygrad", "mlx", "onnx", "oneflow"}

HOST_TYPES: dict[str, Value] = {
    "builtins.int": INT,
    "builtins.float": FLOAT,
    "builtins.bool": BOOL,
    "builtins.str": STR,
    "builtins.bytes": Scalar("bytes"),
    "builtins.complex": Scalar("complex"),
    "builtins.object": UNKNOWN,
    "builtins.type": Opaque("class"),
    "builtins.slice": Opaque("slice"),
    "numbers.Number": NUMBER,
    "numbers.Real": NUMBER,
    "numbers.Integral": INT,
    "torch.types.Number": NUMBER,
    "torch.types._size": SHAPE,
    "torch.Size": SHAPE,
    "torch.device": Device(CHOSEN),
    "torch.types.Device": Device(CHOSEN),
    "torch.dtype": DType("unknown"),
    "torch.types._dtype": DType("unknown"),
    "torch.memory_format": Opaque("memory format"),
    "torch.layout": Opaque("layout"),
    "torch.Generator": Opaque("generator"),
    "numpy.ndarray": NDARRAY,
    "numpy.generic": NDARRAY,
    "os.PathLike": STR,
    "pathlib.Path": Opaque("path"),
    "types.NoneType": NONE,
}


# Libraries of tables, which behave like arrays: they lie on the host and are read by element.
FRAMES = ("pandas", "polars")


# Classes and functions that return their first argument, a module or function, in a wrapper: a call
# of the wrapper calls the wrapped object. From torch's sources, 2.13.
MODULE_WRAPPERS = frozenset((
    "torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.nn.parallel.data_parallel.DataParallel", "torch.nn.parallel.DataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel", "torch.distributed.fsdp.FSDPModule",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed._composable.replicate",
    "torch.distributed.tensor.parallel.parallelize_module",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper",
    "torch.compile", "torch.compiler.compile", "torch.compiler.disable", "torch._dynamo.disable",
    "torch._dynamo.OptimizedModule", "torch.jit.script", "torch.jit.trace", "torch.jit.freeze",
    "torch.jit.optimize_for_inference", "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "torch.optim.swa_utils.AveragedModel", "torch.cuda.make_graphed_callables",
    "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.weight_norm", "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.parametrizations.orthogonal",
))  # fmt: skip
# Objects of other libraries that wrap modules, with the methods that do: accelerate/accelerator.py,
# lightning/fabric/fabric.py
_OF_FABRIC = ("setup", "setup_module")
KEEPERS = {
    "accelerate.Accelerator": ("prepare", "prepare_model", "unwrap_model"),
    "lightning.Fabric": _OF_FABRIC,
    "lightning.fabric.Fabric": _OF_FABRIC,
    "lightning_fabric.Fabric": _OF_FABRIC,
}


def instance_of(name: str, reason: Reason) -> Value:
    """Return an object of the class with this qualified name; UNKNOWN for unknown classes."""
    host = HOST_TYPES.get(name)
    if host is not None:
        return host
    head, _, last = name.rpartition(".")
    if name in TENSOR_CLASSES:
        role = "parameter" if last == "Parameter" else ""
        return Tensor(reason, role=role, device="device" if ".cuda" in head else "unknown")
    if last in LEGACY_TENSORS and head in ("torch", "torch.cuda"):
        return Tensor(reason, LEGACY_TENSORS[last])
    if head.startswith("numpy") or (head.startswith(FRAMES) and last in ("DataFrame", "Series")):
        return NDARRAY
    if head.endswith(".torch"):
        return UNKNOWN  # another module of that name
    if last == "Tensor" and head.partition(".")[0] not in FOREIGN_TENSORS:
        # A package whose source is missing re-exports the name.
        return Tensor(replace(reason, strength=Strength.INFERRED))
    if last in MODULE_HOLDERS and head.startswith("torch.nn"):
        return _holder(last)
    return Instance(name) if name.startswith("torch.") or name in KEEPERS else UNKNOWN


MODULE_HOLDERS = ("ParameterList", "ParameterDict", "ModuleList", "ModuleDict")


def _holder(name: str) -> Value:
    """Return a list or dict of modules or parameters whose contents are unknown."""
    held: Value = Instance("torch.nn.Module")
    if name.startswith("Parameter"):
        held = Tensor(Reason(f"element of a {name}"), role="parameter")
    return Mapping_(STR, held) if name.endswith("Dict") else Sequence("list", held)


def builtin_name(name: str) -> str | None:
    """Return ``builtins.<name>`` if Python itself defines the name, else None."""
    return f"builtins.{name}" if name in BUILTINS else None


BUILTINS = frozenset(dir(builtins))
