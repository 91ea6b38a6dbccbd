"""What decides how often code runs: stronger evidence wins over weaker, in the order of `judgement/frequency/`.

Each program holds a pair: the commented lines are reported by default, and something like them is
found in scope `all` alone, because evidence of another strength decides there. Branches have a file
of their own, `test_heat_of_branches.py`, calls between modules are in `test_heat_of_packages.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT, check, check_pair, findings, program, table

from flake8_torchperf.options import Options

OWN_TEXT = {
    "a loop over elements, under a convention": """
        def save_rows(x: Tensor):
            print(x.max().item())
            for row in x:  # TPF201
                print(row.sum().item())  # TPF101
        """,
    "a loop over elements, in set-up": """
        class Net(nn.Module):
            def __init__(self, x: Tensor):
                super().__init__()
                self.limit = x.max().item()
                for row in x:  # TPF201
                    print(row.sum().item())  # TPF101

        class Rows(torch.utils.data.Dataset):
            def __init__(self, x: Tensor):
                self.limit = x.max().item()
                self.rows = [row.sum().item() for row in x]  # TPF101, TPF201
        """,
    "a loop that trains, under a convention and in a constructor": """
        def load_and_tune(net, loader, optimizer):
            first = torch.ones(3, device="cuda").max().item()
            for x in loader:
                loss = torch.relu(net(x)).mean()
                loss.backward()
                optimizer.step()
                print(first, loss.item())  # TPF101

        class Net(nn.Module):
            def __init__(self, net, loader, optimizer):
                super().__init__()
                self.first = torch.ones(3, device="cuda").max().item()
                for x in loader:
                    loss = torch.relu(net(x)).mean()
                    loss.backward()
                    optimizer.step()
                    print(loss.item())  # TPF101
        """,
    "a loop that calls a module, under a convention": """
        def export_scores(model: nn.Module, loader):
            first = torch.ones(3, device="cuda").max().item()
            for x in loader:
                print(first, torch.relu(model(x)).sum().item())  # TPF101
        """,
    "a training step, under a convention": """
        def make_progress(net, x):
            loss = torch.relu(net(x)).mean()
            loss.backward()
            return loss.item()  # TPF101

        def make_guess(net, x):
            return torch.relu(net(x)).mean().item()
        """,
    "compiled, under a convention": """
        @torch.compile
        def save_scaled(x: Tensor):
            return x / x.max().item()  # TPF602

        def save_halved(x: Tensor):
            return x / x.max().item()
        """,
}

CALLS = {
    "from a step, over a convention": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return x / load_scale(x)

        def load_scale(x: Tensor):
            return x.max().item()  # TPF101

        def load_other_scale(x: Tensor):
            return x.max().item()
        """,
    "from a step, over set-up": """
        class Net(nn.Module):
            def reset_parameters(self):
                self.scale = self.weight.detach().max().item()  # TPF101

            def forward(self, x: Tensor):
                self.reset_parameters()
                return x / self.scale

        class Other(nn.Module):
            def reset_parameters(self):
                self.scale = self.weight.detach().max().item()
        """,
    "from a loop over steps, through a function that a convention calls cold": """
        def run(model: nn.Module, loader, optimizer):
            for x in loader:
                loss = torch.relu(model(x)).mean()
                loss.backward()
                optimizer.step()
                report_loss(loss)

        def report_loss(loss: Tensor):
            write_number(loss)

        def write_number(x: Tensor):
            print(x.max().item())  # TPF101

        def write_shape(x: Tensor):
            print(x.max().item())
        """,
    "from any loop, of a function of which nothing else is known": """
        def read(n: int):
            return torch.ones(n, device="cuda").sum().item()  # TPF101

        def read_once(n: int):
            return torch.ones(n, device="cuda").sum().item()

        def all_of(names):
            return read_once(3), [read(len(name)) for name in names]
        """,
    "from a loop that is no step, which says nothing against set-up": """
        class Net(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.scale = torch.ones(n, device="cuda").sum().item()

            def forward(self, x: Tensor):
                return x / x.max().item()  # TPF101

        def nets():
            return [Net(n) for n in range(3)]
        """,
}

STEPS = {
    "of a module, over a convention for classes and functions": """
        class GradLogger(nn.Module):
            def forward(self, x: Tensor):
                return x / x.max().item()  # TPF101

        class GradWriter:
            def scaled(self, x: Tensor):
                return x / x.max().item()
        """,
    "of an optimizer and of a function for autograd, beside what sets them up": """
        class Scaled(torch.optim.Optimizer):
            def __init__(self, x: Tensor):
                self.scale = x.max().item()

            def step(self):
                return torch.ones(3, device="cuda").max().item()  # TPF101

        class Cut(torch.autograd.Function):
            @staticmethod
            def backward(ctx, x: Tensor):
                return x[x > 0]  # TPF402
        """,
    "of lightning, beside what it calls once": """
        import lightning

        class Net(lightning.LightningModule):
            def configure_optimizers(self):
                return self.adam(torch.ones(3, device="cuda").max().item())

            def training_step(self, batch, index):
                return torch.ones(3, device="cuda").max().item()  # TPF101

            def on_train_epoch_end(self):
                print(torch.ones(3, device="cuda").max().item())
        """,
}

AROUND_STEPS = {
    "before and after the loop over steps, whatever the function is called": """
        def train_one_epoch(model: nn.Module, loader, optimizer):
            total = torch.zeros((), device="cuda")
            first = total.sum().item()
            for x in loader:
                loss = model(x).mean()
                loss.backward()
                optimizer.step()
                total += loss.detach()
                print(first, loss.item())  # TPF101
            return float(total)

        def run_epoch(model: nn.Module, loader, optimizer):
            total = torch.zeros((), device="cuda")
            first = total.sum().item()
            for x in loader:
                loss = model(x).mean()
                loss.backward()
                optimizer.step()
                total += loss.detach()
                print(first, loss.item())  # TPF101
            return float(total)
        """,
    "around the loop over steps": """
        def run(model: nn.Module, loader, optimizer, epochs: int):
            for _ in range(epochs):
                total = torch.zeros((), device="cuda")
                for x in loader:
                    loss = model(x).mean()
                    loss.backward()
                    optimizer.step()
                    total += loss.detach()
                    print(loss.item())  # TPF101
                print(float(total))
        """,
    "what is called beside that loop, though it is given tensors": """
        def run(model: nn.Module, loader, optimizer, start: Tensor):
            limit = _largest(start)
            for x in loader:
                loss = model(x).mean()
                loss.backward()
                optimizer.step()
                limit = _smallest(loss)
            return limit

        def _largest(x: Tensor):
            return x.max().item()

        def _smallest(x: Tensor):
            return x.min().item()  # TPF101
        """,
}

SET_UP = {
    "of modules, over the tensors that it is given": """
        class Net(nn.Module):
            def __init__(self, x: Tensor):
                super().__init__()
                self.scale = x.max().item()

            def extra_repr(self):
                return f"{self.weight.detach().max().item()}"

            def scaled(self, x: Tensor):
                return x / x.max().item()  # TPF101
        """,
    "its loops, too, where they do not go over elements or steps": """
        class Net(nn.Module):
            def __init__(self, parts: list[Tensor]):
                super().__init__()
                self.limits = [part.max().item() for part in parts]

            def limits_of(self, parts: list[Tensor]):
                return [part.max().item() for part in parts]  # TPF101
        """,
    "what it alone calls": """
        class Net(nn.Module):
            def __init__(self, x: Tensor):
                super().__init__()
                self.scale = self._largest(x)

            def _largest(self, x: Tensor):
                return _read(x.max())

            def low(self, x: Tensor):
                return self._smallest(x)

            def _smallest(self, x: Tensor):
                return x.min().item()  # TPF101

        def _read(x: Tensor):
            return x.item()
        """,
    "no constructor of other objects, which a step may make": """
        class Bound:
            def __init__(self, x: Tensor):
                self.limit = x.max().item()  # TPF101

        class Layer(nn.Module):
            def __init__(self, x: Tensor):
                super().__init__()
                self.limit = x.max().item()
        """,
    "what workers of a data loader run": """
        class Rows(torch.utils.data.Dataset):
            def __getitem__(self, index: int):
                return torch.ones(3, device="cuda").max().item()

        def scaled(x: Tensor):
            return x / x.max().item()  # TPF101
        """,
}

CONVENTIONS = {
    "over the tensors that a function is given": """
        def save_scale(x: Tensor):
            return x.max().item()

        def scale(x: Tensor):
            return x.max().item()  # TPF101
        """,
    "over a loop of which nothing is known": """
        def save_scales(parts: list[Tensor]):
            return [part.max().item() for part in parts]

        def scales(parts: list[Tensor]):
            return [part.max().item() for part in parts]  # TPF101
        """,
    "a program's straight code, not its loops": """
        def main(parts: list[Tensor]):
            print(parts[0].max().item())
            for part in parts:
                print(part.max().item())  # TPF101
        """,
    "a step by its name, where nothing else is known": """
        def decode_step(n: int):
            return torch.ones(n, device="cuda").max().item()  # TPF101

        def decode(n: int):
            return torch.ones(n, device="cuda").max().item()
        """,
}

DEFAULT = {
    "a helper that computes on tensors it is given is hot, anything else is cold": """
        def scale(x: Tensor):
            return x.max().item()  # TPF101

        def start(n: int):
            return torch.ones(n, device="cuda").max().item()
        """,
    "a loop counts by what its rounds show, or where its head names batches": """
        def read(names, model: nn.Module, sides):
            for name in names:
                print(name, torch.ones(3, device="cuda").max().item())
            for side in sides:
                print(model(side).max().item())  # TPF101

        def count(names):
            for batch in names():
                print(torch.ones(3, device="cuda").max().item())  # TPF101
        """,
}

PAIRS = {
    f"{step}: {title}": code
    for step, cases in (
        ("own text", OWN_TEXT),
        ("calls", CALLS),
        ("steps", STEPS),
        ("around the loop over steps", AROUND_STEPS),
        ("set-up", SET_UP),
        ("conventions", CONVENTIONS),
        ("default", DEFAULT),
    )
    for title, code in cases.items()
}


@table(PAIRS)
def test_stronger_evidence_wins(code: str) -> None:
    check_pair(code)


SETTINGS = {
    "cold, over a loop over steps and a loop over elements": (
        Options(cold=("Tuner.*",)),
        """
        class Tuner:
            def run(self, model: nn.Module, loader, optimizer):
                for x in loader:
                    loss = model(x).mean()
                    loss.backward()
                    optimizer.step()
                    for row in loss.detach():
                        print(row.item())

        class Trainer:
            def run(self, model: nn.Module, loader, optimizer):
                for x in loader:
                    loss = model(x).mean()
                    loss.backward()
                    optimizer.step()
                    for row in loss.detach():  # TPF201
                        print(row.item())  # TPF101
        """,
    ),
    "cold, over a step of a module": (
        Options(cold=("Watched.forward",)),
        """
        class Watched(nn.Module):
            def forward(self, x: Tensor):
                return x / x.max().item()

        class Net(nn.Module):
            def forward(self, x: Tensor):
                return x / x.max().item()  # TPF101
        """,
    ),
    "hot, over set-up, a convention and a function of which nothing is known": (
        Options(hot=("Net.*", "save_limits", "start")),
        """
        class Net(nn.Module):
            def __init__(self, x: Tensor):
                super().__init__()
                self.scale = x.max().item()  # TPF101

        def save_limits(x: Tensor):
            return x.max().item()  # TPF101

        def start():
            return torch.ones(3, device="cuda").max().item()  # TPF101

        class Other(nn.Module):
            def __init__(self, x: Tensor):
                super().__init__()
                self.scale = x.max().item()
        """,
    ),
}


@pytest.mark.parametrize(("options", "code"), SETTINGS.values(), ids=list(SETTINGS))
def test_settings_win_over_everything(options: Options, code: str) -> None:
    check_pair(code, options)


# Copies in a loop over batches that calls a model.
BATCHES = {
    "lists": """
        def scores(model: nn.Module, loader):
            for batch in loader:
                rows = model(batch).tolist()  # TPF102
                print(rows)
        """,
    "copies": """
        def scores(model: nn.Module, loader):
            found = []
            for batch in loader:
                found.append(torch.softmax(model(batch), -1).cpu())  # TPF102
            return found
        """,
    "types of the host": """
        def scores(model: nn.Module, loader):
            for batch in loader:
                index = torch.argmax(model(batch), -1).type(torch.LongTensor)  # TPF102
                print(index.shape)
        """,
    "arrays": """
        def scores(model: nn.Module, loader):
            array = np.ones(3)
            for batch in loader:
                print(model(batch, torch.as_tensor(array, device="cuda")))  # TPF502
        """,
    "after the loop nothing repeats a copy": """
        def scores(model: nn.Module, loader):
            found = []
            for batch in loader:
                found.append(torch.softmax(model(batch), -1))
            return torch.cat(found).cpu()
        """,
}


@table(BATCHES)
def test_copies_in_loops_over_batches(code: str) -> None:
    check(code, HOT)


PYTEST = program("""
    def test_scale(x: Tensor):
        for row in x:
            assert row.max().item() > 3

    class TestNet:
        def check(self, x: Tensor):
            return x.max().item()
    """)


@pytest.mark.parametrize(("name", "hot"), [("test_net.py", False), ("net.py", True)])
def test_pytest_runs_tests_in_files_of_tests(tmp_path: Path, name: str, hot: bool) -> None:
    path = tmp_path / name
    path.write_text(PYTEST, encoding="utf-8")
    assert bool(findings(PYTEST, HOT, str(path))) is hot
