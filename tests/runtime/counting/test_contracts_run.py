"""Functions that must not wait, while they run: `sync_free` and `torchperf run --contracts`."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from check_run import torchperf

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime import BudgetExceeded, sync_free  # noqa: E402

X = torch.arange(4.0)
PROGRAM = """
    import torch

    def clean(x):  # torchperf: sync-free
        return x * 2

    def helper(x):
        allowed = x.tolist()  # noqa: TPF102
        return x.sum().item()

    class Base:
        def decode(self, x):
            return helper(x)

    class Engine(Base):
        pass

    x = torch.ones(3, device=torch.device("cpu"))
    x.tolist()
    clean(x)
    Engine().decode(x)
    Base().decode(x)
    Base().decode(torch.ones(3))  # made on the host on every machine
    """


def test_a_call_that_waits_for_nothing_returns_what_it_returns() -> None:
    @sync_free
    def doubled(x: torch.Tensor) -> torch.Tensor:
        """Twice as much."""
        return x * 2

    assert doubled(X).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert doubled.__doc__ == "Twice as much."


@pytest.mark.parametrize(
    ("wait", "counted"),
    [
        (lambda: X.sum().item(), "1 host read, 0 allowed"),
        (lambda: X.nonzero(), "1 dynamic shape, 0 allowed"),
        (lambda: X.cpu(), "1 host read, 0 allowed; 1 transfer, 0 allowed"),
    ],
)
def test_what_waits_is_told_with_its_line(wait, counted: str) -> None:
    with pytest.raises(BudgetExceeded) as raised, sync_free(host_as_device=True):
        wait()
    assert raised.value.headline == counted
    assert "test_contracts_run.py:" in str(raised.value)


def test_lines_with_noqa_may_wait() -> None:
    with sync_free(host_as_device=True):
        X.tolist()  # noqa: TPF102


def broken(folder: Path, *options: str) -> tuple[int, list[tuple[str, int, str, int]]]:
    """The exit status of a run, and of what broke a contract name, line, operation and times."""
    (folder / "decode.py").write_text(dedent(PROGRAM), encoding="utf-8")
    run = torchperf("run", "--contracts", *options, "--json", "run.json", "decode.py", cwd=folder)
    rows = json.loads((folder / "run.json").read_text(encoding="utf-8"))["broken_contracts"]
    told = [(row["contract"], row["line"], row["operation"], row["times"]) for row in rows]
    assert all(f"decode.py:{line}: {name} waited" in run.errors for _, line, name, _ in told)
    return run.status, told


def test_a_run_fails_with_the_lines_that_broke_a_contract(tmp_path: Path) -> None:
    assert broken(tmp_path) == (0, [])
    assert broken(tmp_path, "--sync-free", "Engine.decode") == (
        1,
        [("Engine.decode", 9, "item", 1)],
    )
    assert broken(tmp_path, "--sync-free", "Base.*") == (1, [("Base.decode", 9, "item", 2)])


def test_a_run_without_contracts_says_nothing_of_them(tmp_path: Path) -> None:
    (tmp_path / "decode.py").write_text(dedent(PROGRAM), encoding="utf-8")
    run = torchperf("run", "--sync-free", "decode", "--json", "run.json", "decode.py", cwd=tmp_path)
    assert run.status == 0
    assert "broken" not in run.errors
    assert "broken_contracts" not in json.loads((tmp_path / "run.json").read_text("utf-8"))
