"""A program that torch compiles or traces does the same under `torchperf run` as without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import python, torchperf

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
# Prints, for each function, its graphs, breaks and result or exception.
PROGRAM = """
    import json, pickle, copy, warnings
    import torch

    warnings.simplefilter("ignore")

    def optimizer(p):
        p.copy_(p - 0.1)

    class Casts(torch.nn.Module):
        def forward(self, p):
            return (p.to(torch.float64) * 2).to(torch.float32)

    def casts(p):
        return Casts()(p)

    def to_host(p):
        return p.cpu() + 1

    def to_numpy(p):
        return p.numpy() + 1

    def new_tensor(p):
        return p.new_tensor([1.0, 2.0]) * 2

    def factories(p):
        return torch.tensor([1.0]) * p + torch.as_tensor(p) + torch.asarray([1.0])

    def on_device(p):
        return torch.tensor([1.0], device=p.device) * p

    def to_list(p):
        return p.tolist()[0] + p.sum()

    def printed(p):
        return repr(p), f"{p.sum()}", p + 1

    def unbound(p):
        return [method(p) for method in (torch.Tensor.cpu, torch.Tensor.clone)]

    def read(p):
        return p.sum().item() + p

    def with_a_mode(p):
        with torch.device("cpu"):
            made = torch.ones(3)
        return made + p

    def outcome(function, fullgraph):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        graphs = []

        def backend(module, inputs):
            graphs.append([[node.op, getattr(node.target, "__name__", str(node.target))]
                           for node in module.graph.nodes])
            return module.forward

        given = torch.arange(3.0)
        try:
            result = repr(torch.compile(function, backend=backend, fullgraph=fullgraph)(given))
        except Exception as error:
            result = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
        return [graphs, breaks, result, given.tolist()]

    def again():
        torch._dynamo.reset()
        graphs = []

        def backend(module, inputs):
            graphs.append(len(module.graph.nodes))
            return module.forward

        compiled = torch.compile(lambda p: 0.5 * p + 1, backend=backend)
        results = [compiled(torch.full((3,), float(n))) for n in range(3)]  # compiles
        return [one.tolist() for one in results], graphs

    def traced():
        graph = torch.jit.trace(lambda x: x * 2 + 0.1, torch.ones(3))  # compiles
        return [graph(torch.ones(3)).tolist(), "0.1" in str(graph.graph)]

    functions = (optimizer, casts, to_host, to_numpy, new_tensor, factories, on_device, to_list,
                 printed, unbound, read, with_a_mode)
    found = {f"{one.__name__} {full}": outcome(one, full) for one in functions
             for full in (True, False)}
    found["again"] = again()
    found["traced"] = traced()
    with torch.device("meta"):
        found["device"] = [str(torch.tensor([1.0]).device), str(torch.as_tensor([1.0]).device)]
    found["the same function"] = [
        torch.Tensor.to in {torch._C.TensorBase.to}, torch._C.TensorBase.to in {torch.Tensor.to},
        pickle.loads(pickle.dumps(torch.tensor)) == torch.tensor,
        copy.deepcopy(torch.tensor) is torch.tensor,
    ]
    HANDLED = {torch.Tensor.cpu: "mine"}

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return HANDLED.get(func) or super().__torch_function__(func, types, args, kwargs)

    found["handled"] = torch.ones(2).as_subclass(Mine).cpu()
    with open("outcome.json", "w") as file:
        json.dump(found, file)
"""


def ran(folder: Path, *command: str) -> Any:
    done = subprocess.run(
        [sys.executable, *command, "work.py"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, timeout=300,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "outcome.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "work.py").write_text(dedent(PROGRAM))
    return folder


@pytest.fixture(scope="module")
def alone(folder: Path) -> Any:
    """What the program finds with nothing counted, from where the run at level `reads` starts."""
    done = python("work.py", cwd=folder)
    assert done.status == 0, done.errors
    return json.loads((folder / "outcome.json").read_text())


@pytest.mark.parametrize("level", ["reads", "full"])
def test_graphs_breaks_results_and_errors_are_those_without(
    folder: Path, alone: Any, level: str
) -> None:
    assert alone["optimizer True"][1:] == [0, "None", pytest.approx([-0.1, 0.9, 1.9])]
    results, graphs = alone["again"]
    assert (results, len(graphs)) == ([[1.0] * 3, [1.5] * 3, [2.0] * 3], 1)
    (folder / "outcome.json").unlink()
    command = ("run", "--level", level, "--json", "report.json")
    if level == "full":  # as for a user, dynamo is imported once torch's functions were replaced
        assert ran(folder, "-m", "flake8_torchperf.cli.main", *command) == alone
    else:
        run = torchperf(*command, "work.py", cwd=folder)
        assert run.status == 0, run.errors
        assert json.loads((folder / "outcome.json").read_text()) == alone
    # What the compiler and the check of a trace read is not counted.
    report = json.loads((folder / "report.json").read_text())
    (file,) = report["files"]
    reads = {int(line): counts.get("host_reads", 0) for line, counts in file["lines"].items()}
    lines = enumerate(dedent(PROGRAM).splitlines(), 1)
    assert [reads.get(line, 0) for line, text in lines if "# compiles" in text] == [0, 0]
    assert report["totals"]["host_reads"] == sum(reads.values()) > 0


def test_a_program_that_compiles_nothing_imports_no_dynamo(tmp_path: Path) -> None:
    # A program that spells dynamo out is forked from a process that has imported it.
    (tmp_path / "work.py").write_text(
        dedent("""
            import json, sys
            import torch

            torch.ones(3).cpu().tolist()
            found = [one for one in sys.modules if one.startswith("torch._dyn")]
            json.dump(found, open("outcome.json", "w"))
        """)
    )
    run = torchperf("run", "work.py", cwd=tmp_path)
    assert run.status == 0, run.errors
    assert json.loads((tmp_path / "outcome.json").read_text()) == []
