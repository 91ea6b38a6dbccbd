"""The two ways to see a dispatch: a dispatch mode for all of them, kernels for reads alone.

Both only find the place and add one; the recorder decides on the place.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.utils._python_dispatch import TorchDispatchMode

from flake8_torchperf.runtime.counting.op_schemas import aten, is_composite, looks_at_elements
from flake8_torchperf.runtime.counting.recording.recorder import Recorder
from flake8_torchperf.runtime.counting.threads import by_thread
from flake8_torchperf.runtime.counting.user_frames import waiting_frame

# Not OpOverload.decompose, which prefers decompositions in Python, made for compilers.
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


class CountingMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts every aten dispatch of this thread, with its duration, at the user's line."""

    supports_higher_order_operators = True
    steps_aside = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count_into(recorder)

    def count_into(self, recorder: Recorder) -> None:
        """Add to this recorder from now on."""
        self.recorder = recorder
        self.spots = recorder.spots

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The wrapper that keeps dynamo out costs a Python call for each dispatch. Dynamo never
        # gets here: `ignore_compile_internals` takes the mode off the stack while it compiles.
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return True: torch.compile then compiles while a counter is open.

        Otherwise it would run eagerly.
        """
        return True

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        getframe: Any = sys._getframe,
        clock: Any = perf_counter_ns,
    ) -> Any:
        """Find the innermost frame of the user's, count, and run. This path must stay short."""
        try:
            frame = innermost = getframe(1)
        except ValueError:
            frame = innermost = waiting_frame(self.recorder.opener)
        known = self.spots
        offset = 0
        while frame is not None:
            code = frame.f_code
            spots = known.get(id(code))
            if spots is None:
                spots = self.recorder.learn(code)
            if spots:
                offset = frame.f_lasti
                break
            frame = frame.f_back
        else:
            spots = self.recorder.elsewhere
        cells = spots.get(offset)
        if cells is None:
            cells = spots[offset] = {}
        cell = cells.get(id(func))
        if not cell:
            cell = self.recorder.cell(cells, func)
            if not cell:
                with self:
                    return func._op_dk(_COMPOSITE, *args, **(kwargs or {}))
        cell[0] += 1
        if self.recorder.arriving and looks_at_elements(func, cell[6], args, kwargs):
            self.recorder.read_early(innermost, cell[6], args)
        began = clock()
        try:
            out = cell[2](*args, **kwargs) if kwargs else cell[2](*args)
        except RuntimeError as error:
            if _UNWRAPPED not in str(error):
                raise
            out = cell[2](*_wrapped(func, args), **(kwargs or {}))
        took = clock() - began
        cell[1] += took
        cell[3](took)
        if cell[4] is not None:
            self.recorder.began = began
            cell[4](self.recorder, cell[6], innermost, args, out)
        return out


# A mode gets a number that C++ wrapped into a tensor as the number, and torch then refuses that for
# an operation without an overload for numbers: `print(traced.graph)` views its constants.
_UNWRAPPED = "Cast error details: Unable to cast"
_WIDEST = {float: torch.float64, complex: torch.complex128}


def _wrapped(func: Any, args: tuple[Any, ...]) -> list[Any]:
    """Return the arguments with a tensor for each number where the operation takes a tensor."""
    return [
        torch.tensor(one, dtype=_WIDEST.get(type(one)))
        if isinstance(one, (int, float, complex)) and str(taken.type) == "Tensor"
        else one
        for taken, one in zip(func._schema.arguments, args, strict=False)
    ]


# The lighter level. torch reserves a dispatch key for modes in its tests, above autograd and below
# the Python modes. If a thread includes it, only operations with a kernel for it take a detour; all
# others fall through at a cost of about 1 % (measured, torch 2.13).
_KEY_NAME = "TESTING_ONLY_GenericMode"
_KEY = torch._C._dispatch_key_parse(_KEY_NAME)
_BELOW = torch._C._dispatch_keyset_full_after(_KEY)
# Not excluded during a call of the program, but during calls that an operation's kernel makes,
# which are part of that operation. Inference mode excludes it for both, so they look alike there.
_AUTOGRAD = torch._C.DispatchKey.AutogradFunctionality
# Excluded while torch.tensor fills its storage.
_PYTHON = torch._C.DispatchKey.Python
_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded

# These read numbers in their kernels on the host. Found by running the samples of torch's own tests
# (torch 2.13, torch/testing/_internal/common_methods_invocations.py) under its profiler.
READ_INSIDE = (
    "_histogramdd_from_bin_cts",
    "_histogramdd_from_bin_tensors",
    "_linalg_check_errors",
    "_linalg_eigh",
    "_linalg_eigvals",
    "_linalg_solve_ex",
    "_linalg_svd",
    "_to_sparse",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "embedding_renorm_",
    "histc",
    "histogram",
    "index_fill.int_Tensor",
    "index_fill_.int_Tensor",
    "index_put",
    "index_put_",
    "linalg_eig",
    "linalg_inv_ex",
    "linalg_ldl_solve",
    "linalg_lstsq",
    "linalg_lu_solve",
    "linspace.Scalar_Tensor",
    "linspace.Tensor_Scalar",
    "linspace.Tensor_Tensor",
    "logspace.Scalar_Tensor",
    "logspace.Tensor_Scalar",
    "logspace.Tensor_Tensor",
    "masked_fill.Tensor",
    "masked_fill_.Tensor",
    "masked_select",
    "multilabel_margin_loss_forward",
    "multinomial",
    "nanquantile",
    "normal",
    "quantile",
    "repeat_interleave.Tensor",
    "rrelu_with_noise",
    "segment_reduce",
    "std.correction",
    "std_mean.correction",
    "var.correction",
    "var_mean.correction",
)
# Made of other operations, but only the host checks their arguments.
_CHECKS = frozenset({"quantile", "nanquantile"})

_reading: dict[int, list[Recorder]] = by_thread()
_libraries: list[Any] = []
_lock = threading.Lock()


def start_reading(recorder: Recorder) -> None:
    """Count the host reads that this thread dispatches into a recorder."""
    with _lock:
        if not _libraries:
            _libraries.extend(_register())
    recorders = _reading.setdefault(threading.get_ident(), [])
    recorders.append(recorder)
    torch._C._dispatch_tls_set_dispatch_key_included(_KEY, True)


def stop_reading(recorder: Recorder, thread: int | None = None) -> None:
    """Undo `start_reading`, of this thread or of another."""
    here = threading.get_ident()
    thread = here if thread is None else thread
    _reading[thread].remove(recorder)
    if not _reading[thread]:
        del _reading[thread]
        if thread == here:  # Another thread keeps its key, whose kernels then only pass calls on.
            torch._C._dispatch_tls_set_dispatch_key_included(_KEY, False)


@contextlib.contextmanager
def no_reading() -> Iterator[None]:
    """Count no reads of this thread meanwhile."""
    included = torch._C._dispatch_tls_is_dispatch_key_included(_KEY)
    torch._C._dispatch_tls_set_dispatch_key_included(_KEY, False)
    try:
        yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_included(_KEY, included)


def _register() -> list[Any]:
    """Register the kernels, once per process; only threads that include the key call them."""
    library: Any = torch.library.Library
    others = library("_", "IMPL", _KEY_NAME)
    others.fallback(torch.library.fallthrough_kernel, _KEY_NAME)
    kernels = library("aten", "IMPL", _KEY_NAME)
    for name, kernel in {
        "_local_scalar_dense": _reads(aten._local_scalar_dense.default),
        "equal": _reads(aten.equal.default),
        "allclose": _reads(aten.allclose.default),
    }.items():
        kernels.impl(name, kernel, _KEY_NAME, with_keyset=True)
    for name in READ_INSIDE:
        for op in _overloads(name):
            kernels.impl(op, _reads_inside(op), _KEY_NAME, with_keyset=True)
    # Higher-order operators (flex_attention, cond) dispatch in Python, where a backend's fallback
    # is not looked up: existing operators, and those made later, are set to skip the key.
    ops: Any = torch._ops
    ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(_KEY)
    for higher_order in ops._higher_order_ops.values():
        higher_order.fallthrough(_KEY)
    return [others, kernels]


def _reads(op: Any) -> Any:
    name = op._schema.name

    def kernel(keyset: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            # A number that C++ wrapped into a tensor arrives unwrapped; reading it gives itself.
            return tensor
        recorders = list(_reading.get(threading.get_ident(), ()))  # Another thread may close one.
        program = keyset.has(_AUTOGRAD) or (
            torch.is_inference_mode_enabled() and not _excluded(_PYTHON)
        )
        program = program and not is_compiling()
        for recorder in recorders:
            if program and not recorder.inside:
                recorder.read(sys._getframe(1), name, tensor)
            recorder.inside += 1  # allclose and, on CUDA, equal read through item().
        try:
            return op.redispatch(keyset & _BELOW, tensor, *args, **kwargs)
        finally:
            for recorder in recorders:
                recorder.inside -= 1

    return kernel


def _overloads(name: str) -> list[Any]:
    """Return the overloads of "name.overload" or, if they have kernels of their own, of "name"."""
    packet, _, overload = name.partition(".")
    found: Any = getattr(aten, packet, None)
    if found is None:  # not in this release of torch
        return []
    if overload:
        return [getattr(found, overload)] if overload in found.overloads() else []
    made = [getattr(found, one) for one in found.overloads()]
    real = [one for one in made if torch._C._dispatch_has_kernel(one.name())]
    return [one for one in real if name in _CHECKS or not is_composite(one)]


def _reads_inside(op: Any) -> Any:
    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        recorders = _reading.get(threading.get_ident(), ())
        for recorder in recorders:
            recorder.inside += 1
        try:
            return op.redispatch(keyset & _BELOW, *args, **kwargs)
        finally:
            for recorder in recorders:
                recorder.inside -= 1

    return kernel
