"""Transforms of torch.func: what vmap cannot run or runs row by row, and what it does to the rest.

What the rules say of torch is run here as well, with the torch that is installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from linting import COMPILED, COMPILING, check, findings, program, table

torch = pytest.importorskip("torch")

from flake8_torchperf.knowledge.batching import ROW_BY_ROW, ROW_BY_ROW_METHODS  # noqa: E402

MAPPED = {
    "operations that have a rule": """
        def f(a: Tensor, b: Tensor):
            q = torch.linalg.pinv(a) @ torch.linalg.solve(a, b) + torch.linalg.cholesky(a)
            return q + torch.inverse(a) + torch.repeat_interleave(b, 2).sum()
        def g(a: Tensor, b: Tensor):
            return vmap(f)(a, b)
        """,
    "operations that have none": """
        def f(x: Tensor, y: Tensor):
            a = torch.quantile(x, 0.5)  # TPF606
            a = a + torch.isin(y, x)  # TPF606
            b = torch.nn.functional.kl_div(x, y)  # TPF606
            return a, b, x.repeat_interleave(y)  # TPF606
        def g(x: Tensor, y: Tensor):
            return torch.vmap(f)(x, y)
        """,
    "a function of torch itself that has none": """
        def f(x: Tensor, y: Tensor):
            a = torch.vmap(torch.take, in_dims=0)(x, y)  # TPF606
            b = vmap(functools.partial(torch.histc, bins=3))(x)  # TPF606
            return a, b, vmap(torch.sort)(x), vmap(torch.repeat_interleave)(x, 2)
        """,
    "at module level": """
        among = torch.vmap(torch.isin)  # TPF606
        """,
    "operations that have none, over what is not mapped": """
        def f(x: Tensor, y: Tensor):
            return x * torch.quantile(y, 0.5)
        def g(x: Tensor, y: Tensor):
            return torch.vmap(f, in_dims=(0, None))(x, y)
        """,
    "what in_dims leaves out": """
        def f(x: Tensor, scale: Tensor):
            if scale.any():
                return x
            if x.any():  # TPF606
                return scale
            return x
        def g(x: Tensor, y: Tensor):
            return vmap(f, in_dims=(0, None))(x, y)
        """,
    "in_dims that are not written out": """
        def f(x: Tensor):
            return x if x.any() else -x
        def g(x: Tensor, dims):
            return vmap(f, in_dims=dims)(x)
        """,
    "nested in_dims": """
        def f(xs: list[Tensor], other: Tensor):
            a = xs[0].any() and 1  # TPF606
            return other.any() or a
        def g(x: Tensor, y: Tensor):
            return vmap(f, in_dims=((0, None), None))([x, y], y)
        """,
    "a whole number for in_dims": """
        def f(x: Tensor):
            return x.item()  # TPF606
        def g(x: Tensor):
            return vmap(f, -1)(x)
        """,
    "what a partial binds": """
        def f(w: Tensor, x: Tensor, v: Tensor):
            if w.any() or v.any():
                return x
            return -x if x.any() else x  # TPF606
        def g(w: Tensor, x: Tensor):
            return vmap(functools.partial(f, w, v=w))(x)
        """,
    "through another transform": """
        def f(x: Tensor, w: Tensor):
            return x.sum() if w.any() else x.max() if x.any() else x.min()  # TPF606
        def g(x: Tensor, w: Tensor):
            return vmap(grad(f), (0, None))(x, w)
        """,
    "inside another transform": """
        def f(x: Tensor):
            return x.sum() if x.any() else x.min()  # TPF606
        def total(x: Tensor):
            return vmap(f)(x).sum()
        def g(x: Tensor):
            return grad(total)(x), grad(lambda y: vmap(f)(y).sum())(x)
        """,
    "a method": """
        class Net(nn.Module):
            def one(self, x: Tensor, w: Tensor):
                return x * w.item() if x.any() else w  # TPF606
            def forward(self, x: Tensor, w: Tensor):
                return vmap(self.one, (0, None))(x, w)
        """,
    "a decorator": """
        @torch.vmap
        def f(x: Tensor):
            return x[x > 0]  # TPF606
        @functools.partial(torch.vmap, in_dims=(None, 0))
        def g(x: Tensor, y: Tensor):
            return x[x > 0].sum() + y[y > 0].sum()  # TPF606
        """,
    "what is only asked": """
        def f(x: Tensor):
            n, k = x.shape[0], len(x)
            if n > 3 or x.dim() == 2 or x.is_floating_point() or k:
                return x[:n]
            return x[: x.size(0) - 1]
        def g(x: Tensor):
            return vmap(f)(x)
        """,
    "bounds": """
        def f(x: Tensor, n: Tensor):
            a = x[:n]  # TPF606
            return [a for _ in range(n)]  # TPF606
        def g(x: Tensor, n: Tensor):
            return vmap(f)(x, n)
        """,
    "tensors in a list": """
        def f(w: Tensor):
            return torch.tensor([[0.0, -w[2]], [w[1], 0.0]])  # TPF606
        def g(w: Tensor):
            return vmap(f)(w)
        """,
    "what is called": """
        def check(x: Tensor, w: Tensor):
            assert w.all()
            return x.item()  # TPF606
        def f(x: Tensor, w: Tensor):
            doubled = x * 2
            return check(doubled.sum(), w=w)
        def g(x: Tensor, w: Tensor):
            return vmap(f, (0, None))(x, w)
        """,
    "gradients asked for": """
        def f(x: Tensor):
            y = x.detach().clone().requires_grad_(True)  # TPF606
            return torch.autograd.grad(y.sum(), y)[0]
        def g(x: Tensor):
            return vmap(functools.partial(f))(x)
        """,
}
INSIDE = {
    "a compiled function that a transform runs": """
        @torch.compile
        def energy(x: Tensor):
            return x.sum()
        def f(x: Tensor):
            return energy(x) * 2  # TPF606
        def g(x: Tensor):
            return vmap(f)(x), grad(lambda y: energy(y))(x)  # TPF606
        """,
    "a compiled module with other parameters": """
        net = torch.compile(nn.Linear(3, 3))
        def f(p, x: Tensor):
            return torch.func.functional_call(net, p, (x,)).sum()  # TPF606
        def g(p, x: Tensor):
            return vmap(grad(f), (None, 0))(p, x)
        """,
    "all of it compiled": """
        @torch.compile
        def energy(x: Tensor):
            return x.sum()
        def f(x: Tensor):
            return energy(x) * 2
        @torch.compile
        def g(x: Tensor):
            return vmap(f)(x)
        """,
    "what is leaked": """
        seen = []
        sizes = []
        def f(x: Tensor, w: Tensor):
            seen.append(x * 2)  # TPF607
            sizes.append(x.shape)
            sizes.append(w)
            return x
        def g(x: Tensor, w: Tensor):
            return vmap(f, (0, None))(x, w)
        """,
}


@table({**MAPPED, **INSIDE})
def test_what_transforms_run(code: str) -> None:
    check(code, prelude=COMPILING, only=COMPILED)


def test_the_message_says_that_rows_are_run_one_by_one() -> None:
    code = program(
        """
        def f(x: Tensor):
            return x.histc(10)
        def g(x: Tensor):
            return vmap(f)(x)
        """,
        COMPILING,
    )
    (found,) = [f for f in findings(code) if "TPF606" in f]
    assert "`x.histc(10)` runs row by row under vmap" in found


def square(n: int = 4) -> torch.Tensor:
    return torch.randn(3, n, n)


def rows() -> torch.Tensor:
    return torch.randn(3, 4)


def numbers() -> torch.Tensor:
    return torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2]])


def lu(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linalg.lu_factor(a)


nnf = torch.nn.functional
PROBES: dict[str, Callable[[], object]] = {
    "torch.bincount": lambda: torch.vmap(lambda i: torch.bincount(i, minlength=4))(numbers()),
    "torch.diagflat": lambda: torch.vmap(torch.diagflat)(rows()),
    "torch.histc": lambda: torch.vmap(lambda x: torch.histc(x, 10))(rows()),
    "torch.index_reduce": lambda: torch.vmap(
        lambda x, i: torch.index_reduce(x, 0, i, x, "amax")
    )(rows(), numbers()),
    "torch.isclose": lambda: torch.vmap(torch.isclose)(rows(), rows()),
    "torch.istft": lambda: torch.vmap(
        lambda x: torch.istft(
            torch.stft(x, 4, 1, window=torch.ones(4), return_complex=True),
            4, 1, window=torch.ones(4),
        )
    )(torch.randn(3, 16)),
    "torch.stft": lambda: torch.vmap(
        lambda x: torch.stft(x, 4, 1, window=torch.ones(4), return_complex=True)
    )(torch.randn(3, 16)),
    "torch.lu_solve": lambda: torch.vmap(lambda a: torch.lu_solve(a, *lu(a)))(square()),
    "torch.masked_scatter": lambda: torch.vmap(lambda x: torch.masked_scatter(x, x > 0, x))(rows()),
    "torch.nanquantile": lambda: torch.vmap(lambda x: torch.nanquantile(x, 0.5))(rows()),
    "torch.quantile": lambda: torch.vmap(lambda x: torch.quantile(x, 0.5))(rows()),
    "torch.nonzero_static": lambda: torch.vmap(lambda i: torch.nonzero_static(i, size=3))(
        numbers()
    ),
    "torch.put": lambda: torch.vmap(lambda x, i: torch.put(x, i, x))(rows(), numbers()),
    "torch.renorm": lambda: torch.vmap(lambda a: torch.renorm(a, 2, 0, 1))(square()),
    "torch.repeat_interleave": lambda: torch.vmap(lambda x, i: torch.repeat_interleave(x, i))(
        rows(), numbers()
    ),
    "torch.take": lambda: torch.vmap(torch.take)(rows(), numbers()),
    "torch.histogram": lambda: torch.vmap(lambda x: torch.histogram(x, 4)[0])(rows()),
    "torch.isin": lambda: torch.vmap(torch.isin)(rows(), rows()),
    "torch.segment_reduce": lambda: torch.vmap(
        lambda x: torch.segment_reduce(x, "sum", lengths=torch.tensor([2, 2]))
    )(rows()),
    "torch.vander": lambda: torch.vmap(torch.vander)(rows()),
    "torch.pdist": lambda: torch.vmap(torch.pdist)(square()),
    "torch.linalg.ldl_solve": lambda: torch.vmap(
        lambda a: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a), a)
    )(square()),
    "torch.linalg.lu": lambda: torch.vmap(torch.linalg.lu)(square()),
    "torch.nn.functional.kl_div": lambda: torch.vmap(nnf.kl_div)(rows(), rows()),
    "torch.nn.functional.margin_ranking_loss": lambda: torch.vmap(nnf.margin_ranking_loss)(
        rows(), rows(), rows()
    ),
    "torch.nn.functional.multi_margin_loss": lambda: torch.vmap(nnf.multi_margin_loss)(
        square(), numbers()
    ),
    "torch.nn.functional.multilabel_margin_loss": lambda: torch.vmap(nnf.multilabel_margin_loss)(
        rows(), numbers()
    ),
    "torch.nn.functional.pdist": lambda: torch.vmap(nnf.pdist)(square()),
    "torch.nn.functional.soft_margin_loss": lambda: torch.vmap(nnf.soft_margin_loss)(
        rows(), rows()
    ),
    "torch.nn.functional.triplet_margin_loss": lambda: torch.vmap(nnf.triplet_margin_loss)(
        square(), square(), square()
    ),
    "torch.nn.functional.affine_grid": lambda: torch.vmap(
        lambda a: nnf.affine_grid(a[None, :2, :3], [1, 1, 2, 2])
    )(square()),
    "torch.nn.functional.max_unpool1d": lambda: torch.vmap(
        lambda a: nnf.max_unpool1d(*nnf.max_pool1d(a, 2, return_indices=True), 2)
    )(square()),
    "torch.nn.functional.max_unpool2d": lambda: torch.vmap(
        lambda a: nnf.max_unpool2d(*nnf.max_pool2d(a[None], 2, return_indices=True), 2)
    )(square()),
    "torch.nn.functional.max_unpool3d": lambda: torch.vmap(
        lambda a: nnf.max_unpool3d(*nnf.max_pool3d(a[None], 2, return_indices=True), 2)
    )(torch.randn(3, 4, 4, 4)),
    "torch.special.airy_ai": lambda: torch.vmap(torch.special.airy_ai)(rows()),
    "torch.special.log_ndtr": lambda: torch.vmap(torch.special.log_ndtr)(rows()),
    "torch.special.chebyshev_polynomial_t": lambda: torch.vmap(
        lambda x: torch.special.chebyshev_polynomial_t(x, 3)
    )(rows()),
    "torch.special.hermite_polynomial_h": lambda: torch.vmap(
        lambda x: torch.special.hermite_polynomial_h(x, 3)
    )(rows()),
}  # fmt: skip


def test_every_operation_without_a_rule_is_probed() -> None:
    assert set(PROBES) == ROW_BY_ROW
    assert {f"torch.{name}" for name in ROW_BY_ROW_METHODS} <= ROW_BY_ROW
    assert all(hasattr(torch.Tensor, name) for name in ROW_BY_ROW_METHODS)


@pytest.mark.parametrize("name", list(PROBES))
def test_vmap_has_no_rule_for_it(name: str) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        PROBES[name]()
    assert any("performance drop" in str(w.message) for w in heard)


BATCHED: dict[str, Callable[[torch.Tensor], object]] = {
    "solve": lambda a: torch.linalg.solve(a, a),
    "inv": torch.linalg.inv,
    "pinv": torch.linalg.pinv,
    "cholesky_ex": torch.linalg.cholesky_ex,
    "svd": torch.linalg.svd,
    "eigh": torch.linalg.eigh,
    "repeats that are a number": lambda a: torch.repeat_interleave(a, 2),
    "a mask that is not batched": lambda a: a[torch.arange(4) > 1],
    "a branch that is not batched": lambda a: a if torch.ones(1).any() else -a,
    "sizes": lambda a: a[: a.shape[0] - 1],
    "an index that is batched": lambda a: a[a[0, 0].long().clamp(0, 3)],
}


@pytest.mark.parametrize("name", list(BATCHED))
def test_vmap_has_a_rule_for_it(name: str) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.vmap(BATCHED[name])(square())
    assert not any("performance drop" in str(w.message) for w in heard)


REFUSED: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda a: a.sum().item(),
    "if": lambda a: a if a.any() else -a,
    "a mask that is batched": lambda a: a[a > 0],
    "tensor of tensors": lambda a: torch.tensor([a[0, 0], 1.0]),
    "slice": lambda a: a[: a.sum().long()],
    "requires_grad_": lambda a: a.detach().clone().requires_grad_(True),
    "unique": torch.unique,
    "equal": lambda a: torch.equal(a, a),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_vmap_refuses(name: str) -> None:
    with pytest.raises(RuntimeError):
        torch.vmap(REFUSED[name])(square())


@pytest.mark.parametrize("outer", [torch.vmap, torch.func.jacrev, torch.func.jacfwd])
def test_a_transform_runs_what_is_compiled_uncompiled(outer: Callable[..., object]) -> None:
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x.sin(), backend=counter)
    compiled(rows())
    outer(lambda x: compiled(x) * 2)(rows())
    assert counter.frame_count == 1
    torch._dynamo.reset()
    again = torch.compile(lambda x: x.cos(), backend=counter)
    outer(lambda x: again(x) * 2)(rows())
    again(rows())  # given up by then
    assert counter.frame_count == 1
