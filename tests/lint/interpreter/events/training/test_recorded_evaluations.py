"""Evaluations that record gradients (TPF511): told by what is switched, called and asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linting import HOT, check, findings, in_package, program, table

PREVIEWED = replace(HOT, preview=True)
RECORDED = frozenset(("TPF511",))
EVALUATIONS = {
    "a function": """
        def evaluate(model: nn.Module, loader):
            model.eval()
            hits = 0
            for x, y in loader:
                out = model(x)  # TPF511
                hits += (out.argmax(1) == y).sum()
            return hits
        """,
    "a model of which nothing is said": """
        def evaluate(net, loader):
            net = net.eval()
            return [net(x.cuda()) for x in loader]  # TPF511
        """,
    "an attribute": """
        class Trainer:
            def validate(self, loader):
                self.model.eval()
                for i, batch in enumerate(loader):
                    self.losses.append(self.model(batch))  # TPF511
                self.model.train()
        """,
    "moved as well, with a bar": """
        from tqdm import tqdm

        def predict(path, loader):
            model = torch.load(path).eval().to("cuda")
            with tqdm(total=10) as bar:
                for batch in loader:
                    model(batch)  # TPF511
        """,
    "at module level": """
        model = nn.Linear(2, 2)
        model.eval()
        for x in torch.randn(10, 2, 2):
            out = model(x)  # TPF511
        """,
}
SILENT = {
    "under no_grad": """
        def evaluate(model: nn.Module, loader):
            model.eval()
            with torch.no_grad():
                for x in loader:
                    model(x)
            for x in loader:
                with torch.inference_mode():
                    model(x)
        """,
    "decorated": """
        @torch.inference_mode()
        def evaluate(model: nn.Module, loader):
            model.eval()
            for x in loader:
                model(x)

        @without_gradients
        def validate(model: nn.Module, loader):
            model.eval()
            for x in loader:
                model(x)
        """,
    "a context of which nothing is known": """
        def evaluate(model: nn.Module, loader, quiet):
            model.eval()
            with quiet():
                for x in loader:
                    model(x)
        """,
    "called without gradients": """
        def evaluate(model: nn.Module, loader):
            model.eval()
            for x in loader:
                model(x)

        def report(model, loader):
            evaluate(model, loader)

        def train(model, loader, opt):
            for x in loader:
                model(x).sum().backward()
                opt.step()
            with torch.no_grad():
                report(model, loader)
        """,
    "trained": """
        def train(model: nn.Module, teacher: nn.Module, loader, opt):
            teacher.eval()
            for x in loader:
                F.mse_loss(model(x), teacher(x)).backward()
                opt.step()
        """,
    "trained again before the loop": """
        def run(model: nn.Module, loader):
            model.eval()
            model.train()
            for x in loader:
                model(x)
        """,
    "gradients of the inputs": """
        def attack(model: nn.Module, loader):
            model.eval()
            for x in loader:
                x.requires_grad_()
                model(x)

        def saliency(model: nn.Module, loader):
            model.eval()
            return [torch.autograd.grad(model(x).sum(), x) for x in loader]
        """,
    "frozen": """
        def evaluate(model: nn.Module, loader):
            model.eval()
            model.requires_grad_(False)
            for x in loader:
                model(x)
        """,
    "switched off for the whole program": """
        torch.set_grad_enabled(False)

        def evaluate(model: nn.Module, loader):
            model.eval()
            for x in loader:
                model(x)
        """,
    "another module, no data, no loop": """
        def evaluate(model: nn.Module, other: nn.Module, loader, x):
            model.eval()
            for batch in loader:
                other(batch)
            for _ in range(3):
                model(x)
            return model(x)
        """,
    "a forward that records nothing": """
        class Net(nn.Module):
            @torch.no_grad()
            def forward(self, x):
                return x

        def evaluate(loader):
            net = Net()
            net.eval()
            for x in loader:
                net(x)
        """,
}


@table(EVALUATIONS)
def test_evaluations_that_record(code: str) -> None:
    check(code, PREVIEWED, only=RECORDED)
    assert not [one for one in findings(program(code)) if "TPF511" in one]


@table(SILENT)
def test_evaluations_that_do_not_or_may_not(code: str) -> None:
    check(code, PREVIEWED, only=RECORDED)


CALLERS = {
    "with gradients": ("return evaluate(model, loader)", True),
    "without": ("with torch.no_grad(): return evaluate(model, loader)", False),
}


@pytest.mark.parametrize("case", list(CALLERS.values()), ids=list(CALLERS))
def test_a_caller_in_another_module(case: tuple[str, bool], tmp_path: Path) -> None:
    body, told = case
    source = program(EVALUATIONS["a function"])
    folder = tmp_path / "work"
    name = in_package(folder, "app/scoring.py", source)
    caller = f"from ..scoring import evaluate\n\n\ndef main(model, loader):\n    {body}\n"
    in_package(folder, "app/runs/main.py", f"import torch\n{caller}")
    found = [one for one in findings(source, PREVIEWED, name) if "TPF511" in one]
    assert bool(found) == told
