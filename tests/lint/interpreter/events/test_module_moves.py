"""Moves of a whole module: told in a step, not where the round or the program needs them."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest
from linting import HOT, PRELUDE, check, findings, places, program, table

from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.suspects.nominate import nominate

PREVIEWED = replace(HOT, preview=True)
MOVED = frozenset(("TPF510",))


@table(
    {
        "a parameter": """
        def train(model: nn.Module, loader, opt, device):
            for batch in loader:
                model.to(device)  # TPF510
                model(batch.to(device, non_blocking=True)).sum().backward()
                opt.step()
        """,
        "bound again, and called at once": """
        def train(model: nn.Module, loader, opt, device):
            for batch in loader:
                model = model.to(device)  # TPF510
                loss = model.cuda()(batch).sum()  # TPF510
                loss.backward()
                opt.step()
        """,
        "an attribute, in the step that a loop calls": """
        class Trainer:
            def __init__(self, net: nn.Module, opt):
                self.net = net
                self.opt = opt
                self.net.to("cuda")

            def step(self, batch):
                net, opt = self.net, self.opt
                net.to("cuda").train()  # TPF510
                net(batch).sum().backward()
                opt.step()

            def fit(self, loader):
                for batch in loader:
                    self.step(batch)
        """,
        "a module that may be None": """
        from typing import Optional

        def train(model: nn.Module, teacher: Optional[nn.Module], loader, opt, device):
            for batch in loader:
                if teacher is not None:
                    teacher.to(device)  # TPF510
                model(batch).sum().backward()
                opt.step()
        """,
        "each of several, in every step": """
        def train(model: nn.Module, teachers: list[nn.Module], loader, opt, device):
            for batch in loader:
                for teacher in teachers:
                    teacher.to(device)  # TPF510
                model(batch).sum().backward()
                opt.step()
        """,
        "made before the loop, at module level": """
        model = nn.Linear(4, 4)
        opt = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
        for step in range(100):
            model.cuda()  # TPF510
            model(torch.randn(4, 4, device="cuda")).sum().backward()
            opt.step()
        """,
        "in a function of tensors, which any step may call": """
        def compressed(x: Tensor, codec: nn.Module) -> Tensor:
            codec.to(x.device)  # TPF510
            return codec(x)
        """,
        "to the host alone": """
        def train(model: nn.Module, loader, opt):
            for batch in loader:
                model.cpu()  # TPF510
                model(batch).sum().backward()
                opt.step()
        """,
    }
)
def test_a_module_that_each_step_moves(code: str) -> None:
    check(code, PREVIEWED, only=MOVED)
    assert "TPF510" not in {code for _, code in places(program(code), HOT)}


@table(
    {
        "set-up code": """
        class Trainer:
            def __init__(self, net: nn.Module, device):
                self.net = net.to(device)

        def main(model: nn.Module, loader, opt, device):
            model.to(device)
            for batch in loader:
                model(batch).sum().backward()
                opt.step()
        """,
        "once per epoch": """
        def train(model: nn.Module, loader, opt, device):
            for epoch in range(10):
                model.to(device)
                for batch in loader:
                    model(batch).sum().backward()
                    opt.step()
        """,
        "made in the round": """
        class Net(nn.Module):
            def forward(self, x):
                return x * 2

        def search(loader, device):
            for batch in loader:
                first = Net().to(device)
                second = Net()
                second.to(device)
                third, count = Net(), 3
                third = third.to(device)
                if (fourth := Net()) is not None:
                    fourth.to(device)
                fifth: nn.Module = Net()
                fifth.to(device)
                loss = first(batch) + second(batch) + third(batch)
                (loss + fourth(batch) + fifth(batch)).sum().backward()
        """,
        "moved to the host and back": """
        def train(model: nn.Module, teacher: nn.Module, loader, opt, device):
            for batch in loader:
                teacher.to(device)
                target = teacher(batch)
                teacher.to("cpu")
                (model(batch) - target).sum().backward()
                opt.step()
        """,
        "moved back by another method": """
        class Trainer:
            def __init__(self, net: nn.Module, opt):
                self.net = net
                self.opt = opt

            def rest(self):
                self.net.to(torch.device("cpu"))

            def fit(self, loader, device):
                for batch in loader:
                    self.net.to(device)
                    self.net(batch).sum().backward()
                    self.opt.step()
                    self.rest()
        """,
        "in few steps": """
        def train(model: nn.Module, loader, opt, device):
            for step, batch in enumerate(loader):
                model(batch).sum().backward()
                opt.step()
                if step % 100 == 0:
                    model.to(device)
        """,
        "another module in each round": """
        def main(models: list[nn.Module], path: str, device):
            batch = torch.load(path)
            for model in models:
                model.to(device)
                model(batch)
            for i in range(len(models)):
                model = models[i]
                model.to(device)
                model(batch)
            return [model.to(device)(batch) for model in models]
        """,
        "a loss, which has no parameters": """
        def train(model: nn.Module, loader, opt, criterion: nn.CrossEntropyLoss, device):
            for batch in loader:
                criterion.to(device)
                criterion(model(batch), batch).backward()
                opt.step()
        """,
        "in a function of that name": """
        def to(module: nn.Module, device):
            return module.to(device)

        class Averaged:
            def __init__(self, net: nn.Module):
                self.net = net

            def to(self, device):
                self.net = self.net.to(device)

        def train(model: nn.Module, averaged: Averaged, loader, opt, device):
            for batch in loader:
                model(batch.to(device, non_blocking=True)).sum().backward()
                opt.step()
                averaged.to(device)
                to(model, device)
        """,
        "a method of its own": """
        class Net(nn.Module):
            def to(self, device):
                return self

            def forward(self, x):
                return x * 2

        def train(model: Net, loader, opt, device):
            for batch in loader:
                model.to(device)
                model(batch).sum().backward()
                opt.step()
        """,
    }
)
def test_moves_that_are_needed_or_seldom(code: str) -> None:
    check(code, PREVIEWED, only=MOVED)


def test_the_message_says_what_it_costs_and_what_to_do() -> None:
    code = """
    def train(model: nn.Module, loader, opt, device):
        for batch in loader:
            model.to(device)
            model(batch).sum().backward()
            opt.step()
    """
    (message,) = findings(program(code), PREVIEWED)
    assert "goes over every parameter" in message
    assert message.endswith("move the module once, before the loop")


@pytest.mark.parametrize(
    ("move", "suspect"),
    [
        ("model.to(x.device)", True),
        ("return model.cuda().eval()", True),
        ("return model.xpu()(x)", True),
        ("model = model.to(x.device); model(x)", True),
        ("x = x.to(model.device)", False),
        ("return x.cuda()", False),
    ],
)
def test_moves_in_place_or_of_what_is_called_nominate(move: str, suspect: bool) -> None:
    source = f"{PRELUDE}def step(model, x, device):\n    {move}\n"
    module = read_module(ast.parse(source), tuple(source.splitlines()), None)
    assert bool(nominate(module).functions) is suspect
