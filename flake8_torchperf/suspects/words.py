"""The names of calls that may wait, read or copy: a function without any of them is no suspect."""

from __future__ import annotations

# Methods and functions that read, copy, wait or have a data-dependent shape for any argument:
# torch's own, and the special methods by which Python reads.
WAITING_CALLS = {
    "item", "tolist", "cpu", "numpy", "nonzero", "unique", "unique_consecutive", "masked_select",
    "_check_tensor_all", "_check_tensor_all_with",
    "equal", "allclose", "is_nonzero", "synchronize", "barrier", "monitored_barrier",
    "empty_cache", "bincount", "repeat_interleave", "argwhere", "histogram", "histogramdd",
    "histc", "one_hot", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__repr__",
    "where", "combinations", "cov", "corrcoef", "inv", "solve", "cholesky", "lstsq", "inverse",
    "pinverse", "pinv", "eig", "eigh", "eigvals", "eigvalsh", "svdvals", "matrix_rank", "cond",
    "lu_factor", "ldl_factor", "inv_ex", "solve_ex", "cholesky_ex", "lu_factor_ex",
    "ldl_factor_ex", "multinomial", "index_put", "index_put_", "pad_packed_sequence",
    "pack_padded_sequence", "gaussian_nll_loss", "lobpcg", "normal", "asarray", "array", "svd",
    "svd_lowrank", "pca_lowrank", "matrix_exp", "matrix_norm", "nuclear_norm", "tensorsolve",
    "unravel_index", "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc",
    "to_sparse_bsr", "to_sparse_bsc", "all_gather_object", "gather_object", "scatter_object_list",
    "broadcast_object_list", "send_object_list", "recv_object_list", "save", "full_tensor",
    "set_detect_anomaly", "detect_anomaly", "set_sync_debug_mode", "nested_tensor_from_jagged",
    "coalesce", "ctc_loss", "tensorinv",
}  # fmt: skip
# Calls that make a Python number of a tensor.
CONVERTING = frozenset(("float", "int", "bool", "complex"))
# Calls that read, format or iterate a tensor if it is an argument.
ARGUMENT_READERS = {
    "float", "int", "bool", "complex", "round", "max", "min", "sum", "any", "all", "sorted",
    "print",
    "str", "repr", "format", "range", "enumerate", "zip", "map", "filter", "list", "tuple", "set",
    "reversed", "iter", "frozenset", "ascii", "debug", "info", "warning", "warn", "error",
    "critical",
    "exception", "log", "index", "tensor", "as_tensor", "islice", "cycle", "deque", "type",
    "count", "remove", "new",
}  # fmt: skip
# Calls that take numbers; a tensor passed in place of a number is read.
NUMBER_TAKERS = {
    "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "eye", "arange",
    "linspace", "logspace", "new_zeros", "new_ones", "new_empty", "new_full", "view", "reshape",
    "expand", "repeat", "tile", "narrow", "roll", "split", "chunk", "topk", "pad", "unflatten",
    "unfold", "select", "interpolate", "tril", "triu", "diag", "kthvalue", "as_strided", "pow_",
    "clamp", "clamp_", "fill_", "add_", "sub_", "mul_", "addcmul_", "addcdiv_", "add", "sub",
    "addcmul", "addcdiv", "Size", "slice_scatter", "select_scatter", "new_tensor", "full_like",
}  # fmt: skip
# Calls whose last argument is a number; a tensor in its place is read.
FILL_CALLS = {"masked_fill", "masked_fill_", "index_fill", "index_fill_"}
# Calls that make a tensor on the host unless they name a device, or that show one to be there.
HOST_MADE = {
    "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "eye", "arange",
    "linspace", "logspace", "tensor", "as_tensor", "asarray", "from_numpy", "pin_memory",
    "DataLoader", "zeros_like", "ones_like", "full_like", "scalar_tensor", "tril_indices",
    "triu_indices", "Tensor", "FloatTensor", "LongTensor", "BoolTensor", "IntTensor",
    "DoubleTensor", "HalfTensor", "ByteTensor",
}  # fmt: skip
# Calls that copy a tensor to another device.
MOVE_CALLS = {"to", "cuda", "xpu", "hpu", "npu", "mps", "type_as", "type", "copy_"}
# Methods that move a module with all its parameters and buffers.
MODULE_MOVES = frozenset(("to", "cuda", "cpu", "xpu", "hpu", "npu"))
# Calls that copy host data to a device if they name one.
HOST_DATA_COPIES = {"tensor", "as_tensor", "asarray"}
# Calls that configure how training loads data, runs backward and steps.
TRAINING = {"DataLoader", "backward", "zero_grad", "manual_backward", "new_tensor"}
# Operations on two tensors, whose only number is a further factor.
PAIRING = {"add", "sub", "add_", "sub_", "mul_"}
# Operations that a `torch._foreach_*` twin or `torch.nn.utils.get_total_norm` does for all
# parameters in one call (torch/_C/_VariableFunctions.pyi lists the twins).
PER_PARAMETER = {
    "mul_", "add_", "sub_", "div_", "addcmul_", "addcdiv_", "lerp_", "zero_", "copy_", "clamp_",
    "norm", "neg_", "abs_", "sqrt_", "pow_", "clamp_min_", "clamp_max_", "vector_norm",
}  # fmt: skip
# Operations that keep a triangle, and factories whose result is one number throughout.
TRIANGLES = frozenset(("triu", "tril"))
CONSTANT_MAKERS = frozenset(("ones", "full", "new_ones", "new_full", "zeros"))
# Variables of the environment that make every kernel wait; the CUDA driver reads them when the
# program starts a device: CUDA C++ Programming Guide, "CUDA Environment Variables".
VARIABLES = ("CUDA_LAUNCH_BLOCKING",)
JOINING_CALLS = {
    "cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack",
    "row_stack",
}  # fmt: skip
NUMERIC_MODULES = {"math", "cmath", "np", "numpy", "operator"}
