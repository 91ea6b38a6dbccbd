"""What the modules of one package tell each other: types, functions, classes, re-exports."""

import os
import textwrap
from pathlib import Path

import pytest
from flake8_run import flake8
from linting import ALL, expected

from flake8_torchperf.linter import lint

PACKAGE = {
    "__init__.py": """
        from .net import Net
        """,
    "types.py": """
        from dataclasses import dataclass
        from typing import Dict, NamedTuple, Optional, TypedDict

        import torch
        from torch import *
        from torch import Tensor

        TensorDict = Dict[str, Tensor]

        class Out(NamedTuple):
            loss: Tensor
            n: int

        class Batch(TypedDict):
            ids: Tensor
            n: int

        @dataclass
        class State:
            x: Tensor
            extra: Optional[Tensor] = None

            @property
            def norm(self):
                return self.x.norm()
        """,
    "ops.py": """
        import torch

        LIMIT = 3

        def norm_of(x):
            return torch.norm(x)

        def mask_of(lengths, n):
            return torch.arange(n, device=lengths.device)[None] < lengths[:, None]

        def size_of(x):
            return x.size(0)

        async def fetch(n) -> torch.Tensor: ...
        """,
    "base.py": """
        import torch
        from torch import nn

        class Base(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.register_buffer("seen", torch.zeros((), dtype=torch.long))
                self.scale = nn.Parameter(torch.ones(()))
                self.fc = nn.Linear(d, d)
                self.width = d

            def forward(self, x):
                return self.fc(x), self.fc(x).mean()

            @property
            def temperature(self):
                return self.scale.exp()
        """,
    "net.py": """
        from __future__ import annotations

        import torch
        from typing import TYPE_CHECKING

        import pkg.ops as operations
        from . import types
        from .base import Base
        from .ops import LIMIT, mask_of as masks, norm_of, size_of

        if TYPE_CHECKING:
            from .types import Batch, Out, State, Tensor, TensorDict

        class Net(Base):
            def forward(self, x):
                y, mean = super().forward(x)
                if self.width > 3 or LIMIT > 3 or size_of(x) > 3:
                    return y
                if mean > 3 or self.temperature > 1:  # TPF301, TPF301
                    return y
                return x[: self.seen]  # TPF107

            def step(self, batch: Batch, out: Out, state: State, more: TensorDict, t: Tensor):
                if batch["n"] > 3 or out.n > 3:
                    return batch["ids"].item(), out.loss.item()  # TPF101, TPF101
                if state.extra is not None:
                    state.extra.item()  # TPF101
                return state.norm.item(), more["a"].item(), t.item()  # TPF101, TPF101, TPF101

        async def step(lengths, n, x):
            if norm_of(x) > 3 or operations.norm_of(x) > 3:  # TPF301, TPF301
                return types.State(x).x
            y = await operations.fetch(n)
            return y[masks(lengths, n)]  # TPF402
        """,
    "no_word_of_it.py": """
        from .ops import norm_of
        from . import types as t

        def step(x, out: t.Out, extra: t.TensorDict):
            if norm_of(x) > 3:  # TPF301
                return extra["a"].item()  # TPF101
            return out.loss.item() if out.n > 3 else None  # TPF101
        """,
    "says_no_torch.py": """
        from .types import *
        from pkg import Net

        def step(x: Tensor, out: Out):
            return x.item(), out.loss.item(), Net(3).scale.item()  # TPF101, TPF101, TPF101
        """,
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package") / "pkg"
    folder.mkdir()
    for name, code in PACKAGE.items():
        (folder / name).write_text(textwrap.dedent(code))
    return folder


@pytest.mark.parametrize("name", PACKAGE)
def test_what_a_module_learns_from_those_beside_it(package: Path, name: str) -> None:
    source = (package / name).read_text()
    found = lint(source, str(package / name), ALL)
    assert sorted((f.line, f.code) for f in found) == expected(source)


def test_one_file_and_all_files_give_the_same(package: Path) -> None:
    options = ("--select", "TPF", "--torchperf-scope=all")
    together = flake8(*options, "pkg", cwd=package.parent)
    alone = [flake8(*options, f"pkg/{name}", cwd=package.parent) for name in PACKAGE]
    assert together.codes
    assert sorted(together.output.splitlines()) == sorted(
        line for one in alone for line in one.output.splitlines()
    )


def test_a_file_that_imports_nothing_of_the_kind_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def total(x):\n    return x.sum()\n")
    code = "from beside import total\n\ndef step(x):\n    return total(x).detach().item()\n"
    (tmp_path / "alone.py").write_text(code)
    assert lint(code, str(tmp_path / "alone.py"), ALL) == []
    (tmp_path / "beside.py").write_text("import torch\n\ntotal = torch.sum\n")
    assert lint(code, str(tmp_path / "alone.py"), ALL) != []


OPS = "import torch\n\n\ndef total():\n    return torch.ones((), device='cuda')\n"


@pytest.mark.parametrize(
    "line",
    [
        "from pkg import ops",
        "from pkg.sub import ops",
        "from .sub import ops",
        "from . import (\n    other,  # (of this package)\n    ops,\n)",
        "from pkg import (ops,)",
        "import os, pkg.ops as ops",
        "import pkg.sub.ops as ops",
        "import pkg.ops; ops = pkg.ops",
    ],
)
def test_every_way_of_naming_a_module_that_speaks_of_tensors(tmp_path: Path, line: str) -> None:
    package = tmp_path / "pkg"
    (package / "sub").mkdir(parents=True)
    for folder in (package, package / "sub"):
        (folder / "__init__.py").write_text("")
        (folder / "ops.py").write_text(OPS)
    (package / "other.py").write_text("")
    code = f"{line}\n\n\ndef step():\n    return ops.total().item()\n"
    user = package / "user.py"
    user.write_text(code)
    told = lint(f"{code}# torch\n", str(user), ALL)
    assert [one.code for one in told] == ["TPF101"]
    assert [one.code for one in lint(code, str(user), ALL)] == ["TPF101"]


def test_a_module_that_comes_and_goes_between_two_files(tmp_path: Path) -> None:
    code = "import torch\nfrom beside import total\n\ndef step(x):\n    return int(total(x))\n"
    script, beside = tmp_path / "script.py", tmp_path / "beside.py"
    script.write_text(code)
    os.utime(tmp_path, (1e9, 1e9))  # a folder whose list of files is kept
    assert lint(code, str(script), ALL) == []
    beside.write_text("import torch\n\ntotal = torch.sum\n")
    assert [f.code for f in lint(code, str(script), ALL)] == ["TPF101"]
    beside.unlink()
    assert lint(code, str(script), ALL) == []


FOREIGN = """
    from mine import Tensor

    def step(x: Tensor):
        return x.item()
    """


def test_a_tensor_in_a_module_that_never_says_torch_may_be_anyones(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(textwrap.dedent(FOREIGN))
    assert lint(textwrap.dedent(FOREIGN), str(tmp_path / "alone.py"), ALL) == []
