"""The kinds of waits that a run records agree with the table that linting uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.knowledge.sync_kinds import (  # noqa: E402
    AS,
    ELSEWHERE,
    LOOK,
    WAIT,
    WaitingCall,
    derived,
    load,
    read,
    waiting,
)
from flake8_torchperf.knowledge.table import load as load_table  # noqa: E402
from flake8_torchperf.runtime.workload.sync_kinds import (  # noqa: E402
    DIRECT,
    LOOKS,
    waiting_kind,
)
from flake8_torchperf.runtime.workload.sync_recorder import Witness  # noqa: E402

DATA = read()
TABLE = waiting(load_table())
A, ROW = torch.eye(3) + 0.1, torch.ones(3)


def otherwise(*ways: str) -> set[str]:
    return {name for row in DATA["otherwise"] if row["as"] in ways for name in row["calls"]}


def test_every_call_that_waits_by_the_table_is_recorded_or_said_to_be_seen_elsewhere() -> None:
    assert set(TABLE) <= set(load().calls) | otherwise(LOOK, ELSEWHERE)


def test_every_kind_names_calls_that_wait() -> None:
    named = {name for row in DATA["kind"] for name in row["calls"]}
    assert named <= set(load().calls)
    begun = [row["begins"] for row in DATA["kind"] if "begins" in row]
    assert all(any(name.startswith(one) for name in TABLE) for one in begun)


def test_no_exception_repeats_the_table() -> None:
    known = {name for name in otherwise(WAIT) if name in TABLE}
    assert not {name for name in known if WaitingCall("", TABLE[name]).always}
    assert otherwise(ELSEWHERE) <= set(TABLE)
    assert set(LOOKS) == otherwise(LOOK)


def test_every_exception_has_a_reason_and_one_way() -> None:
    rows = DATA["otherwise"]
    assert all(row["reason"] and row["as"] in AS for row in rows)
    names = [name for row in rows for name in row["calls"]]
    assert len(names) == len(set(names))


def test_a_call_that_the_table_no_longer_lists_is_no_longer_recorded() -> None:
    class Shrunk:
        def method_names(self) -> list[str]:
            return ["tolist"]

        def function_names(self) -> list[str]:
            return []

        def function(self, name: str) -> Any:
            return load_table().function(name)

    table: Any = Shrunk()
    assert set(derived(table, {**DATA, "otherwise": []}).calls) == {"tolist"}


def test_the_calls_that_always_wait_wait_in_all_overloads() -> None:
    assert "scalar-arg" not in DIRECT.values()
    assert all(set("hsy") & TABLE[name].own_flags for name in set(DIRECT) - otherwise(WAIT))


# What each call of torch is handed as, and the kind that is recorded for it.
CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: torch.linalg.inv(A), "linalg"),
    (lambda: torch.inverse(A), "linalg"),
    (lambda: A.pinverse(), "linalg"),
    (lambda: torch.linalg.inv_ex(A), ""),
    (lambda: torch.linalg.inv_ex(A, check_errors=True), "linalg"),
    (lambda: torch.linalg.inv_ex(A, check_errors=False), ""),
    (lambda: torch.linalg.solve_ex(A, A, check_errors=True), "linalg"),
    (lambda: torch.linalg.lu_factor_ex(A, check_errors=True), "linalg"),
    (lambda: torch.linalg.det(A), ""),
    (lambda: A.slogdet(), ""),
    (lambda: torch.logdet(A), ""),
    (lambda: A.qr(), ""),
    (lambda: torch.linalg.lu(A), ""),
    (lambda: torch.linalg.lstsq(A, A), "linalg"),
    (lambda: torch.linalg.cond(A), "linalg"),
    (lambda: torch.linalg.matrix_norm(A), ""),
    (lambda: torch.linalg.matrix_norm(A, 2), "linalg"),
    (lambda: torch.linalg.matrix_power(A, 2), ""),
    (lambda: torch.linalg.matrix_power(A, -1), "linalg"),
    (lambda: torch.linalg.tensorinv(torch.eye(4).reshape(4, 2, 2), ind=1), "linalg"),
    (lambda: torch.multinomial(ROW, 2), ""),
    (lambda: torch.normal(ROW, 1.0), ""),
    (lambda: torch.normal(ROW, ROW), "normal-check"),
    (lambda: torch.histc(ROW, 4), "in-kernel"),
    (lambda: torch.histc(ROW, 4, min=0, max=1), ""),
    (lambda: torch.cov(A), "in-kernel"),
    (lambda: A.to_sparse_csr(), "sparse"),
    (lambda: A.to_sparse().coalesce(), "sparse"),
    (lambda: torch.unique(ROW), "unique"),
    (lambda: torch.linspace(0.0, 1.0, 3), ""),
    (lambda: torch.linspace(ROW[0], 1.0, 3), "scalar-arg"),
    (lambda: torch.narrow(ROW, 0, torch.tensor(1), 1), ""),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_call_is_recorded_as_the_table_says(number: int) -> None:
    call, kind = CALLS[number]
    seen: list[tuple[str, str]] = []

    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            name = getattr(func, "__name__", "")
            seen.append((name, waiting_kind(name, args, kwargs or {})))
            return func(*args, **(kwargs or {}))

    with Names():
        call()
    assert seen[-1][1] == kind, seen


CTC = (torch.randn(5, 1, 3).log_softmax(2), torch.tensor([[1, 2]]))


def test_lengths_in_tensors_are_copied_to_the_host() -> None:
    lengths = (torch.tensor([5]), torch.tensor([2]))
    assert waiting_kind("ctc_loss", (*CTC, *lengths), {}) == "ctc-loss"
    assert waiting_kind("ctc_loss", (*CTC, (5,), (2,)), {}) == ""


WORK = """\
def work(start, weights, matrix, at):
    torch.linspace(start, 2.0, 3)
    torch.multinomial(weights, 1)
    torch.linalg.svd(matrix)
    matrix.narrow(0, at, 1)
"""


@pytest.mark.parametrize("inference", [False, True])
def test_a_number_that_is_read_is_counted_once(inference: bool) -> None:
    """In inference mode too, reads inside kernels are part of their call."""
    names: dict[str, Any] = {"torch": torch}
    exec(compile(WORK, "<work>", "exec"), names)
    start, weights, matrix, at = torch.ones(()), torch.ones(1), torch.eye(3), torch.tensor(1)
    with torch.inference_mode(inference), Witness(lambda name: name == "<work>") as witness:
        names["work"](start.add(0), weights.add(0), matrix.add(0), at.add(0))
    rows = {(row.line, row.category, row.kind, row.times) for row in witness.rows}
    assert rows == {
        (2, "sync", "scalar-arg", 1), (4, "extra", "linalg", 1), (5, "sync", "scalar-arg", 1),
    }  # fmt: skip
