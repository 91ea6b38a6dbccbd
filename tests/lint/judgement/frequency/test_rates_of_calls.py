"""How often a place is said to run that calls lead to: per epoch, per scene, at the end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from linting import ALL, HOT, check

from flake8_torchperf.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.options import Options

READ = """
import torch


def read(x: torch.Tensor):
    return x.mean().item()
"""
STEPS = """
def train_epoch(model, optimizer, loader):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).sum()
        loss.backward()
        optimizer.step()
    return loss
"""
RUN = """

if __name__ == "__main__":
    main(*made())
"""
PARTS = """
import torch


def made():
    model = torch.nn.Linear(9, 9).cuda()
    return model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.ones(9)]
"""
# Each program ends in `RUN`; the words are those for the read in `helper.py`.
PROGRAMS = {
    "per epoch (called by `main` at line 16)": f"""
{STEPS}

def main(model, optimizer, loader):
    for epoch in range(9):
        loss = train_epoch(model, optimizer, loader)
        read(loss)
""",
    "per scene (called by `main` at line 16)": f"""
{STEPS}

def main(model, optimizer, loader):
    for scene in ["a", "b"]:
        loss = train_epoch(model, optimizer, loader)
        read(loss)
""",
    "at the end (called by `main` at line 17)": f"""
{STEPS}

def main(model, optimizer, loader):
    for epoch in range(9):
        loss = train_epoch(model, optimizer, loader)

    read(loss)
""",
    "per epoch (called by `show` at line 14)": f"""
{STEPS}

def show(loss):
    print(read(loss))


def main(model, optimizer, loader):
    for epoch in range(9):
        show(train_epoch(model, optimizer, loader))
""",
    "per scene (called by `show` at line 18)": f"""
{STEPS}

class Runner:
    def __init__(self, *parts):
        self.parts = parts

    def show(self, loss):
        read(loss)

    def run(self, scenes):
        for scene in scenes:
            self.show(train_epoch(*self.parts))


def main(*parts):
    Runner(*parts).run(["a"])
""",
    # What is called once before the steps is called more often in their rounds.
    "per epoch (called by `main` at line 17)": f"""
{STEPS}

def main(model, optimizer, loader):
    read(model.weight)
    for epoch in range(9):
        loss = train_epoch(model, optimizer, loader)
        read(loss)
""",
    # Nothing says how often a loop of its own repeats the call.
    "per call (in a helper)": f"""
{STEPS}

def main(model, optimizer, loader):
    for epoch in range(9):
        loss = train_epoch(model, optimizer, loader)
    for one in loss.unbind():
        read(one)
""",
}


def words(folder: Path, files: dict[str, str], options: Options) -> list[str]:
    """Return how often the findings of `helper.py` wait, with the cause."""
    (folder / ".git").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    file = folder / "helper.py"
    told = lint(file.read_text(encoding="utf-8"), str(file), options)
    return [re.sub(r".*` waits (.*?\)).*", r"\1", one.message) for one in told]


@pytest.mark.parametrize("said", PROGRAMS)
def test_calls_beside_the_steps(said: str, tmp_path: Path) -> None:
    text = f"from helper import read\nfrom parts import made\n{PROGRAMS[said].rstrip()}\n{RUN}"
    files = {"helper.py": READ, "parts.py": PARTS, "train.py": text}
    assert words(tmp_path, files, ALL) == [said]
    assert words(tmp_path, files, HOT) == []


def test_a_call_in_a_step_outweighs_one_per_epoch(tmp_path: Path) -> None:
    main = f"""
from helper import read
from parts import made
{STEPS.replace("    return", "        read(loss)" + chr(10) + "    return")}

def main(model, optimizer, loader):
    for epoch in range(9):
        read(train_epoch(model, optimizer, loader))
{RUN}"""
    files = {"helper.py": READ, "parts.py": PARTS, "train.py": main}
    assert words(tmp_path, files, ALL) == ["per call (in a helper)"]
    assert [one.partition(" (")[0] for one in words(tmp_path, files, HOT)] == ["per step"]


def test_code_below_the_steps_runs_as_often_as_its_function(tmp_path: Path) -> None:
    helper = f"""
import torch
{STEPS.replace("return loss", "print(loss.item())")}
"""
    main = f"""
from helper import train_epoch
from parts import made


def main(*parts):
    for epoch in range(9):
        train_epoch(*parts)
{RUN}"""
    files = {"helper.py": helper, "parts.py": PARTS, "train.py": main}
    assert words(tmp_path, files, ALL) == ["per epoch (outside the steps)"]
    alone = {**files, "train.py": main.replace("    for epoch in range(9):\n    ", "")}
    assert words(tmp_path, alone, ALL) == ["at the end (outside the steps)"]


def test_below_a_loop_over_scenes_in_a_method(tmp_path: Path) -> None:
    helper = f"""
import torch
{STEPS}

class Runner:
    def __init__(self, *parts):
        self.parts = parts

    def run(self, scenes):
        for scene in scenes:
            loss = train_epoch(*self.parts)
            print(loss.item())
        print(loss.item())
"""
    main = f"""
from helper import Runner
from parts import made


def main(*parts):
    Runner(*parts).run(["a"])
{RUN}"""
    files = {"helper.py": helper, "parts.py": PARTS, "train.py": main}
    told = ["per scene (convention programs)", "at the end (convention programs)"]
    assert words(tmp_path, files, ALL) == told


ANSWER = """
import torch


def read(size: int):
    return torch.ones(size, device="cuda").mean().item()
"""
ROUTE = """
from fastapi import FastAPI
from helper import read

app = FastAPI()


@app.post("/answer")
def answer(values: list):
    return read(len(values))
"""
QUEUE = """
from helper import read


def serve(requests):
    while True:
        request = requests.get()
        request.reply(read(request.size))
"""


@pytest.mark.parametrize("server", [ROUTE, QUEUE], ids=["a route", "a queue"])
def test_what_a_server_calls_runs_per_request(server: str, tmp_path: Path) -> None:
    name, line = ("answer", 10) if server is ROUTE else ("serve", 8)
    files = {"helper.py": ANSWER, "serve.py": server}
    said = [f"per request (called by `{name}` at line {line})"]
    assert words(tmp_path, files, HOT) == said
    assert words(tmp_path, files, ALL) == said


def test_a_program_that_trains_has_other_steps_than_requests(tmp_path: Path) -> None:
    files = {"helper.py": ANSWER, "serve.py": STEPS + ROUTE}
    assert words(tmp_path, files, HOT) == []


def test_a_function_that_calls_itself_in_a_loop() -> None:
    """Its rate is not asked of itself, through others either."""
    code = """
        def walk(parts: list, x: Tensor):
            for part in parts:
                walk(part, x)
                fold(part, x)
            return x.sum().item()  # TPF101

        def fold(parts: list, x: Tensor):
            for part in parts:
                walk(part, x)
        """
    check(code)
