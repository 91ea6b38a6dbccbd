"""Triton: which functions are kernels, which parameters are compiled in, what keeps sizes few."""

from __future__ import annotations

# Decorators of kernels: triton/runtime/jit.py, `jit`.
KERNEL_MAKERS = frozenset(("triton.jit", "triton.runtime.jit.jit", "triton.runtime.jit"))
# The annotation of a parameter whose value is part of the key of a compiled kernel:
# triton/runtime/jit.py, `KernelParam.is_constexpr`. Other integers are told apart only as 1, as
# a multiple of 16, or as neither (`specialize_impl`), and by whether they fit 32 bits.
COMPILED_IN = frozenset(("triton.language.constexpr", "triton.language.core.constexpr"))
# Functions whose results vary as their argument does; `triton.next_power_of_2` has few results.
COUNTING = frozenset(("triton.cdiv",))
# Calls that make a tensor of the shape of another one, and calls that are given its sizes. Those
# that fill it with zeros may make the gradient of a weight, which is summed there.
LIKE = frozenset(("empty_like",))
SIZED = frozenset(("empty", "zeros", "ones", "full", "new_empty", "new_zeros", "new_ones"))
# Methods that leave a tensor's first size in front.
KEEPING_FIRST = frozenset(("contiguous", "detach", "float", "half", "bfloat16", "to", "cuda",
                           "clone", "requires_grad_"))  # fmt: skip
# Methods that make one row of each leading position: `x.view(-1, x.shape[-1])`.
ROW_MAKERS = frozenset(("view", "reshape"))
