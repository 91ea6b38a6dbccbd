"""What an H100 said of torch's operations, folded into the table and reported by the linter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from linting import ALL, check, table

from flake8_torchperf.knowledge.overloads import Overload
from flake8_torchperf.knowledge.table import TABLE_PATH, Op, load
from flake8_torchperf.linter import lint

MEASURED: Mapping[str, Mapping[str, str]] = json.loads(
    (Path(__file__).parents[3] / "benchmarks" / "measured_syncs.json").read_bytes()
)["operations"]
METHOD = "torch.Tensor."
# Whether it copies is not a matter of types: `x.new([2, 3])` does, `x.new(2, 3)` does not.
COPY = f"{METHOD}new"
# An argument for each type that a parameter can have; tensors are the function's own parameters.
ARGUMENTS = {"i": "1", "n": "2", "f": "0.5", "Z": "(2, 3)", "b": "True", "1": "True", "s": '"sum"'}


def operations() -> Iterator[tuple[str, Op, Mapping[str, str]]]:
    """Every operation of the table that was called, with what was seen of its overloads."""
    known = load()
    for name, seen in MEASURED.items():
        method = name.startswith(METHOD)
        op = known.method(name.removeprefix(METHOD)) if method else known.function(name)
        if op is not None and seen and "the process ended" not in seen.values() and name != COPY:
            yield name, op, seen


def overloads() -> Iterator[tuple[str, Op, Overload, bool]]:
    """Every overload that was called, and whether it waited."""
    for name, op, seen in operations():
        for text, overload in zip(op.texts, op.overloads, strict=True):
            outcome = seen.get(text.partition("->")[0])
            if outcome is not None:
                yield name, op, overload, outcome != "none"


def test_every_overload_that_was_called_has_the_flag_that_was_seen() -> None:
    wrong = [
        (name, overload)
        for name, op, overload, waited in overloads()
        if waited != ("s" in op.own_flags | overload.flags)
    ]
    assert wrong == []


def test_methods_were_folded_as_functions_were() -> None:
    """The key of a method without parameters is empty, as the row of a lost process is."""
    bare = {
        name.removeprefix(METHOD): seen[""]
        for name, _, seen in operations()
        if name.startswith(METHOD) and "" in seen
    }
    assert len(bare) > 190
    waiting = {name for name, outcome in bare.items() if outcome != "none"}
    assert {"item", "matrix_exp", "svd", "to_sparse_coo"} - waiting == {"svd"}  # `svd` has options
    folded = {name for name in bare if "s" in getattr(load().method(name), "flags", ())}
    assert folded == waiting


def test_what_was_seen_not_to_wait_needs_nothing_of_the_device() -> None:
    """A tag or a probe that says otherwise is outweighed."""
    wrong = [
        (name, overload)
        for name, op, overload, waited in overloads()
        if not waited and (op.own_flags | overload.flags) & set("dhsy")
    ]
    assert wrong == []


def test_where_it_was_measured_is_said_once() -> None:
    text = TABLE_PATH.read_text(encoding="utf-8")
    origin = load().measured_on
    assert text.count(origin) == text.count("H100") == 1
    sources = {op.source for _, op, seen in operations() if set(seen.values()) != {"none"}}
    assert f"measured: {origin}" in sources


def test_an_operation_that_does_not_wait_names_no_measurement() -> None:
    added = load().function("torch.add")
    assert added is not None
    assert added.source == ""


def call_of(name: str, op: Op, overload: Overload) -> str | None:
    """A call of the overload, with the option without which it does not wait.

    None where a parameter is of a type that has no example here.
    """
    given: list[str] = []
    for index, param in enumerate(overload.params):
        if param.optional and param.name not in op.only_with:
            continue
        text = f"t{index}" if param.type == "T" else ARGUMENTS.get(param.type)
        if text is None:
            return None
        given.append(text if param.form == "positional" else f"{param.name}={text}")
    owner = "x" if name.startswith(METHOD) else name.rpartition(".")[0]
    return f"{owner}.{name.rpartition('.')[2]}({', '.join(given)})"


def test_the_linter_says_of_every_overload_what_the_device_said() -> None:
    """One function for each: it is looked at, reported or not, for this call alone."""
    lines = ["import torch", "from torch import Tensor"]
    waits: dict[int, tuple[str, bool]] = {}
    tensors = ", ".join(f"t{index}: Tensor" for index in range(6))
    for name, op, overload, waited in overloads():
        call = call_of(name, op, overload)
        # Python 2 called these, and nobody else does.
        if call is not None and not call.endswith((".__long__()", ".__nonzero__()")):
            lines += [f"def f{len(lines)}(x: Tensor, {tensors}):", f"    return {call}"]
            waits[len(lines)] = call, waited
    reported = {finding.line for finding in lint("\n".join(lines) + "\n", "model.py", ALL)}
    wrong = [told for line, told in waits.items() if told[1] != (line in reported)]
    assert wrong == []
    assert len(waits) > 1700
    assert sum(waited for _, waited in waits.values()) > 120


OVERLOADS = {
    "a fill: the value is read where it is a tensor on the device": """
        def step(x: Tensor, m: Tensor, i: Tensor, t: Tensor, lengths: list[int]):
            a = x.masked_fill(m, t), x.masked_fill(m, value=t.sum())  # TPF404, TPF404
            b = x.masked_fill_(m, t), torch.masked_fill(x, m, t)  # TPF404, TPF404
            c = x.index_fill(0, i, t), torch.index_fill(x, 0, i, t)  # TPF404, TPF404
            return a, b, c, x.index_fill_(0, i, t)  # TPF404
        """,
    "a fill with a number, of whatever kind, or with a tensor on the host": """
        def step(x: Tensor, m: Tensor, i: Tensor, value: float, unknown):
            a = x.masked_fill(m, 0), x.masked_fill_(m, float("-inf")), x.masked_fill(m, value)
            b = x.index_fill(0, i, 0.0), x.index_fill_(1, i, value), x.masked_fill(m, unknown)
            c = x.masked_fill(m, torch.finfo(x.dtype).min), x.masked_fill(m, torch.tensor(0.0))
            return a, b, c, x.index_fill(0, i, unknown), x.index_fill_(0, i, torch.tensor(1.0))
        """,
    "torch.normal: the deviations are checked, the means are not": """
        def step(mean: Tensor, std: Tensor, n: int):
            a = torch.normal(mean, std), torch.normal(0.0, std)  # TPF404, TPF404
            b = torch.normal(mean=mean, std=std.exp())  # TPF404
            return a, b, torch.normal(mean, 1.0), torch.normal(0.0, 1.0, (n,)), torch.normal(mean)
        """,
    "narrow: a start on the device is read": """
        def step(x: Tensor, t: Tensor, n: int):
            a = x.narrow(0, t, 1), torch.narrow(x, 0, t, 1)  # TPF404, TPF404
            return a, x.narrow(0, 1, 1), x.narrow(0, n, 1), torch.narrow(x, 0, n, 1)
        """,
    "linspace and logspace: bounds on the device are read": """
        def step(t: Tensor, n: int):
            a = torch.linspace(t, 1, 5), torch.linspace(0, t, 5)  # TPF404, TPF404
            b = torch.linspace(t, t + 1, 5), torch.logspace(t, 2, 5)  # TPF404, TPF404
            return a, b, torch.linspace(0, 1, n), torch.logspace(0.0, 1.0, 5)
        """,
    "the Gaussian loss: variances are checked, one variance is not": """
        def step(x: Tensor, y: Tensor, var: Tensor):
            a = F.gaussian_nll_loss(x, y, var)  # TPF404
            b = F.gaussian_nll_loss(x, y, var, reduction="sum")  # TPF404
            return a, b, F.gaussian_nll_loss(x, y, 1.0)
        """,
    "repeats: a number needs no count": """
        def step(x: Tensor, t: Tensor, n: int):
            a = x.repeat_interleave(t), torch.repeat_interleave(t)  # TPF405, TPF405
            b = torch.repeat_interleave(x, t, dim=0)  # TPF405
            return a, b, x.repeat_interleave(2), x.repeat_interleave(n, dim=0)
        """,
    "a norm: 2 and -2 need singular values, others are sums": """
        def step(x: Tensor, p: float):
            a = torch.linalg.matrix_norm(x, 2), torch.linalg.matrix_norm(x, ord=-2)  # TPF404, TPF404
            b = torch.nuclear_norm(x), torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, 1)  # TPF404
            return a, b, torch.linalg.matrix_norm(x, math.inf), torch.linalg.matrix_norm(x, p)
        """,
}  # fmt: skip


@table(OVERLOADS)
def test_only_the_form_that_waits_is_reported(code: str) -> None:
    check(code, ALL)


NEWLY_KNOWN = {
    "what is made of singular values": """
        def step(x: Tensor):
            u, s, v = torch.svd(x)  # TPF404
            u, s, v = x.svd()  # TPF404
            u, s, vh = torch.linalg.svd(x)  # TPF404
            return u, torch.pca_lowrank(x), torch.svd_lowrank(x)  # TPF404, TPF404
        """,
    "matrix functions and solvers": """
        def step(x: Tensor, y: Tensor):
            a = torch.matrix_exp(x), x.matrix_exp(), torch.linalg.matrix_exp(x)  # TPF404, TPF404, TPF404
            return a, torch.linalg.tensorsolve(x, y), torch.lobpcg(x)  # TPF404, TPF404
        """,
    "statistics": """
        def step(x: Tensor):
            return x.cov(), torch.cov(x), x.corrcoef(), torch.corrcoef(x)  # TPF404, TPF404, TPF404, TPF404
        """,
    "sizes and positions": """
        def step(x: Tensor, i: Tensor):
            return torch.combinations(x), torch.unravel_index(i, (2, 3))  # TPF404, TPF404
        """,
    "layouts": """
        def step(x: Tensor):
            a = x.to_sparse(), x.to_sparse_coo(), x.to_sparse_csr()  # TPF404, TPF404, TPF404
            return a, x.to_sparse_csc(), x.to_sparse_bsr((2, 2)), x.to_sparse_bsc((2, 2))  # TPF404, TPF404, TPF404
        """,
    "of the host nothing waits": """
        def step():
            x = torch.zeros(3, 3)
            a = torch.linalg.svd(x), torch.cov(x), x.matrix_exp(), x.to_sparse()
            return a, x.masked_fill(x > 0, x.sum()), torch.linspace(x[0, 0], 1, 5)
        """,
    "their neighbours that were seen not to wait": """
        def step(x: Tensor, y: Tensor):
            a = torch.linalg.qr(x), torch.linalg.det(x), torch.logdet(x), x.to_dense()
            return a, torch.linalg.vector_norm(x), torch.cdist(x, y), torch.linalg.inv_ex(x)
        """,
}  # fmt: skip


@table(NEWLY_KNOWN)
def test_what_the_measurement_found_is_reported(code: str) -> None:
    check(code, ALL)
