"""Values that a program puts on the device of its choice, and findings that say so."""

from __future__ import annotations

import textwrap
from pathlib import Path

from check_run import torchperf
from linting import HOT, PRELUDE, program, table

from flake8_torchperf.linter import lint
from flake8_torchperf.values.values import Tensor

# Each line that is found ends with where the value lies that it reads. Of a batch, the part that no
# statement moves lies on the host if another part is moved.
MOVES = {
    "a device in a variable": """
        def train(model: nn.Module, loader, opt, args):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            for x, y, z, w, v in loader:
                x, y = x.to(device), y.to(args.device, non_blocking=True)
                z = z.to(z.device)
                w = w.cuda()
                loss = model(x).sum()
                loss.backward()
                opt.step()
                print(x.max().item())  # device
                print(y.max().item())  # chosen
                print(z.max().item())  # unknown
                print(w.max().item())  # device
                print(v.max().item())
        """,
    "only some runs move it": """
        def train(model: nn.Module, loader, opt, use_cuda: bool):
            for x, y in loader:
                if use_cuda:
                    x = x.cuda()
                loss = model(x).sum()
                loss.backward()
                opt.step()
                print(x.max().item())  # chosen
                print(y.max().item())
        """,
    "what is computed with it": """
        def train(model: nn.Module, loader, opt, device: torch.device):
            table = torch.zeros(10, device=device)
            for x, y in loader:
                loss = model(x).sum()
                loss.backward()
                opt.step()
                print((table * x).max().item())  # chosen
                print(F.mse_loss(y, table).item())  # chosen
                print((y * 2).max().item())  # unknown
        """,
    "parameters of a module, and what its layers return": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(3, 4)
                self.scale = nn.Parameter(torch.ones(3))
                self.register_buffer("mean", torch.zeros(3))
                self.act = nn.ReLU()

            def forward(self, x: Tensor, y: Tensor):
                print(self.scale.max().item())  # chosen
                print(self.mean.max().item())  # chosen
                print(self.lin(x).max().item())  # chosen
                print(self.act(y).max().item())  # unknown
                for p in self.parameters():
                    print(p.max().item())  # chosen
                return x
        """,
    "parameters of the function, by what they are combined with": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(3, 4)
                self.scale = nn.Parameter(torch.ones(3))

            def forward(self, a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor):
                print(a.max().item())  # chosen
                print(b.max().item())  # chosen
                print(d.max().item())  # unknown
                print(e.max().item())  # unknown
                e = e * 2
                number = torch.tensor(3.0) * d
                return self.lin(a), b - self.scale, e * self.scale, torch.cat([c, torch.arange(3)])
        """,
}


@table(MOVES)
def test_a_value_lies_where_the_program_chooses(code: str) -> None:
    text = program(code)
    found = {
        one.line: one.site.operand.device
        for one in lint(text, "model.py", HOT)
        if isinstance(one.site.operand, Tensor)
    }
    lines = enumerate(text.splitlines(), 1)
    said = {number: line.rpartition("  # ")[2] for number, line in lines if "  # " in line}
    assert found == said


def test_what_is_combined_with_a_host_tensor_is_not_told() -> None:
    def told(combined: str) -> list[int]:
        code = f"""
            class Net(nn.Module):
                def forward(self, c: Tensor, d: Tensor):
                    print(c.max().item())
                    return {combined}
            """
        return [one.line for one in lint(program(code), "model.py", HOT)]

    start = len(PRELUDE.splitlines())
    assert told("torch.cat([d, torch.arange(3)])") == [start + 4]
    assert told("torch.cat([c, torch.arange(3)])") == []
    assert told("c * torch.ones(3)") == []
    assert told("c * torch.tensor(3.0)") == [start + 4]  # a number, for a tensor anywhere


HELPERS = """
    import torch


    def check(x: torch.Tensor) -> None:
        while x.max() > 3:
            x = x / 2


    def outer(batch) -> None:
        inner(batch["x"])


    def inner(x: torch.Tensor) -> None:
        while x.max() > 3:
            x = x / 2
    """
TRAIN = """
    import torch
    from helpers import check, outer


    def step(batch):
        outer(batch)


    def train(model: torch.nn.Module, loader, opt, device):
        for batch in loader:
            {moved}
            check(batch["x"])
            step(batch)
            loss = model(batch["x"]).sum()
            loss.backward()
            opt.step()
    """


def places_in_helpers(folder: Path, moved: str) -> dict[int, str]:
    """Return where the values lie that the helpers of a project read, by line."""
    (folder / ".git").mkdir(parents=True)
    (folder / "train.py").write_text(textwrap.dedent(TRAIN.format(moved=moved)))
    helpers = folder / "helpers.py"
    helpers.write_text(textwrap.dedent(HELPERS))
    return {
        one.line: one.site.operand.device
        for one in lint(helpers.read_text(), str(helpers), HOT)
        if isinstance(one.site.operand, Tensor)
    }


MODULES = """
    class Pad(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, x):
            return x * self.n


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

        def forward(self, x):
            return x


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pad = Pad(3)
            self.block = Block()

        def forward(self, x: Tensor, y: Tensor):
            print(self.pad(y).max().item())  # unknown
            print(self.block(x).max().item())  # chosen
    """


def test_modules_of_the_project_place_what_they_compute_with_parameters(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    model = tmp_path / "model.py"
    model.write_text(program(MODULES))
    found = {
        one.line: one.site.operand.device
        for one in lint(model.read_text(), str(model), HOT)
        if isinstance(one.site.operand, Tensor)
    }
    lines = enumerate(model.read_text().splitlines(), 1)
    assert found == {n: line.rpartition("  # ")[2] for n, line in lines if "  # " in line}


def test_callers_of_callers_place_what_a_function_is_given(tmp_path: Path) -> None:
    moving = "batch = {name: value.to(device) for name, value in batch.items()}"
    assert places_in_helpers(tmp_path / "a", moving) == {6: "chosen", 15: "chosen"}
    assert places_in_helpers(tmp_path / "b", "pass") == {6: "unknown", 15: "unknown"}


def test_why_names_the_line_that_moves_a_value(tmp_path: Path) -> None:
    places_in_helpers(tmp_path, "batch = {name: value.to(device) for name, value in batch.items()}")
    shown = torchperf("why", "helpers.py:15", cwd=tmp_path).output
    assert "on the device that the program chooses: put there at train.py:12" in shown
