"""The same program has the same host reads at each level, with and without inference mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime import DispatchCounter  # noqa: E402
from flake8_torchperf.runtime.counting.dispatch_modes import READ_INSIDE  # noqa: E402

V, EYE, THREE = torch.arange(6.0), torch.eye(3) + 1, torch.arange(3)
MASK, PLACE = V > 2, torch.tensor([1])
linalg, functional = torch.linalg, torch.nn.functional

# Call -> the reads of the host that it costs on an accelerator.
CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "item": (lambda: V.sum().item(), 1),
    "bool": (lambda: bool(V.any()), 1),
    "int": (lambda: int(V[0]), 1),
    "float": (lambda: float(V[0]), 1),
    "complex": (lambda: complex(V[1]), 1),
    "index": (lambda: [1, 2, 3][THREE[1]], 1),
    "contains": (lambda: 2 in V, 1),
    "is_nonzero": (lambda: torch.is_nonzero(V[1]), 1),
    "tolist": (lambda: V.tolist(), 1),
    "numpy": (lambda: V.numpy(), 1),
    "format": (lambda: f"{V[0]:.2f}", 1),
    "repr": (lambda: repr(V), 1),
    "equal": (lambda: torch.equal(V, V.clone()), 1),
    "allclose": (lambda: torch.allclose(V, V.clone()), 1),
    "one_hot": (lambda: functional.one_hot(THREE), 2),
    "arange": (lambda: torch.arange(THREE[2]), 1),
    "full": (lambda: torch.full((2,), V[1]), 1),
    "clamp": (lambda: V.clamp(V[0], V[1]), 0),
    "nonzero": (lambda: torch.nonzero(V), 0),
    "masked": (lambda: V[MASK], 0),
    "masked number": (lambda: V.clone().__setitem__(MASK, 0.0), 0),
    "masked tensor": (lambda: V.clone().__setitem__(MASK, V[1]), 0),
    "unique": (lambda: torch.unique(V), 0),
    "tensor_split": (lambda: torch.tensor_split(V, THREE[1:]), 0),
    "Categorical": (lambda: torch.distributions.Categorical(torch.ones(4)).sample(), 1),
    "Normal": (lambda: torch.distributions.Normal(V[1], V[2]).sample(), 2),
    "tensor": (lambda: torch.tensor([V[0], V[1]]), 0),
    "matrix_power": (lambda: linalg.matrix_power(EYE, -1), 0),
    "inv": (lambda: linalg.inv(EYE), 0),
    "solve": (lambda: linalg.solve(EYE, EYE), 0),
    "svd": (lambda: linalg.svdvals(EYE), 0),
    "det": (lambda: torch.det(EYE), 0),
}
# Operations that read numbers in their kernels on the host, each by a call.
INSIDE: dict[str, Callable[[], Any]] = {
    "_linalg_check_errors": lambda: linalg.cholesky(EYE @ EYE.T),
    "_linalg_eigh": lambda: linalg.eigvalsh(EYE),
    "_linalg_eigvals": lambda: linalg.eigvals(EYE),
    "_linalg_solve_ex": lambda: linalg.solve_ex(EYE, EYE),
    "_linalg_svd": lambda: linalg.svd(EYE),
    "_histogramdd_from_bin_cts": lambda: torch.histogramdd(torch.rand(4, 2), [2, 2]),
    "_histogramdd_from_bin_tensors": lambda: torch.histogramdd(torch.rand(4, 2), [V, V]),
    "_to_sparse": lambda: V.to_sparse(),
    "cholesky": lambda: torch.cholesky(EYE),
    "cholesky_inverse": lambda: torch.cholesky_inverse(EYE),
    "cholesky_solve": lambda: torch.cholesky_solve(EYE, EYE),
    "embedding_renorm_": lambda: torch.embedding_renorm_(torch.ones(3, 2), THREE, 1.0, 2.0),
    "histc": lambda: torch.histc(V),
    "histogram": lambda: torch.histogram(V, 3),
    "index_fill.int_Tensor": lambda: V.index_fill(0, PLACE, V[0]),
    "index_fill_.int_Tensor": lambda: V.clone().index_fill_(0, PLACE, V[0]),
    "index_put": lambda: V.index_put((MASK,), V[0]),
    "index_put_": lambda: V.clone().index_put_((MASK,), V[0]),
    "linalg_eig": lambda: linalg.eig(EYE),
    "linalg_inv_ex": lambda: linalg.inv_ex(EYE),
    "linalg_ldl_solve": lambda: linalg.ldl_solve(*linalg.ldl_factor(EYE), EYE),
    "linalg_lstsq": lambda: linalg.lstsq(EYE, EYE),
    "linalg_lu_solve": lambda: linalg.lu_solve(*linalg.lu_factor(EYE), EYE),
    "linspace.Scalar_Tensor": lambda: torch.linspace(0, V[1], 3),
    "linspace.Tensor_Scalar": lambda: torch.linspace(V[0], 1, 3),
    "linspace.Tensor_Tensor": lambda: torch.linspace(V[0], V[1], 3),
    "logspace.Scalar_Tensor": lambda: torch.logspace(0, V[1], 3),
    "logspace.Tensor_Scalar": lambda: torch.logspace(V[0], 1, 3),
    "logspace.Tensor_Tensor": lambda: torch.logspace(V[0], V[1], 3),
    "masked_fill.Tensor": lambda: V.masked_fill(MASK, V[0]),
    "masked_fill_.Tensor": lambda: V.clone().masked_fill_(MASK, V[0]),
    "masked_select": lambda: V.masked_select(MASK),
    "multilabel_margin_loss_forward": lambda: functional.multilabel_margin_loss(V[:3], THREE),
    "multinomial": lambda: torch.multinomial(torch.ones(4), 2),
    "nanquantile": lambda: torch.nanquantile(V, 0.5),
    "normal": lambda: torch.normal(V, V + 1),
    "quantile": lambda: torch.quantile(V, 0.5),
    "repeat_interleave.Tensor": lambda: torch.repeat_interleave(THREE),
    "rrelu_with_noise": lambda: functional.rrelu(V, training=True),
    "segment_reduce": lambda: torch.segment_reduce(V, "sum", lengths=torch.tensor([2, 4])),
    "std.correction": lambda: V.std(),
    "std_mean.correction": lambda: torch.std_mean(V),
    "var.correction": lambda: V.var(),
    "var_mean.correction": lambda: torch.var_mean(V),
}
MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)


def reads(call: Callable[[], Any]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for mode in MODES:
        for level in ("reads", "full"):
            with DispatchCounter(level, host_as_device=True) as counter, mode():
                call()
            found[mode.__name__, level] = counter.evidence.totals.host_reads
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_the_same_reads_at_each_level_and_in_each_mode(name: str) -> None:
    call, times = CALLS[name]
    counted = reads(call)
    assert counted == dict.fromkeys(counted, times)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", INSIDE)
def test_what_a_kernel_reads_on_the_host_is_not_counted(name: str) -> None:
    counted = reads(INSIDE[name])
    assert counted == dict.fromkeys(counted, 0)


def test_each_operation_that_reads_inside_is_called() -> None:
    assert set(INSIDE) == set(READ_INSIDE)


def test_dispatches_are_those_of_the_parts_in_inference_mode_too() -> None:
    def step() -> Any:
        return functional.linear(V, torch.ones(2, 6)).softmax(-1).reshape(2, 1).squeeze()

    totals = []
    for mode in MODES:
        with DispatchCounter("full") as counter, mode():
            step()
        totals.append({one.name: one.dispatches for one in counter.evidence.ops})
    assert totals[0] == totals[1] == totals[2]
    assert "aten::_softmax" in totals[0]


def test_a_number_that_torch_wrapped_is_taken_as_a_tensor() -> None:
    with pytest.warns(DeprecationWarning, match="torch.jit.trace"):
        traced = torch.jit.trace(lambda x: x * 2 + 0.1, torch.ones(3), check_trace=False)
    with DispatchCounter("full"):
        shown = str(traced.graph)
    assert shown == str(traced.graph)
    assert "value={0.1}" in shown
