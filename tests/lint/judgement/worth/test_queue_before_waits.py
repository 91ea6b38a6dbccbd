"""The work that is queued on the device in front of each wait, as evidence of what it costs."""

from __future__ import annotations

import textwrap
from pathlib import Path

from linting import HOT, program, table
from weighing import weighed

from flake8_torchperf.findings.message import leading
from flake8_torchperf.judgement.worth.features import BEHIND_ONCE, features
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

PROGRAMS = {
    "a wait straight behind another, and behind a few operations": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                a = x.max().item()  # queue:start
                b = x.min().item() + x.argmax().item()  # queue:little queue:little
                return a, b, x.sum(), float(x[0, 0])  # queue:little
        """,
    "a model lies between": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                a = x.max().item()  # queue:start
                y = self.model(x)
                return a, y.sum().item()  # queue:much
        """,
    "a layer is one operation, several layers are not": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(3, 3)
                self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

            def training_step(self, x: Tensor):
                a = x.max().item()  # queue:start
                y = self.embedding(x)
                b = y.sum().item()  # queue:little
                return a, b, self.layers(y).sum().item()  # queue:much
        """,
    "what a path queues that returns lies before no other": """
        class Net(nn.Module):
            def training_step(self, x: Tensor, flag: bool):
                a = self.early(x, flag).max().item()  # queue:much
                if flag:
                    return self.model(x)
                return a, x.sum().item()  # queue:little

            def early(self, x: Tensor, flag: bool):
                if flag:
                    return self.model(x)
                x[0].sum().item()  # queue:start
                return x
        """,
    "a loop's rounds follow each other": """
        def train_step(loader, model: nn.Module):
            for x in loader:
                x = x.cuda(non_blocking=True)
                print(x.sum().item())  # queue:each-round
            for x in loader:
                x = x.cuda(non_blocking=True)
                print(model(x).sum().item())  # queue:much
        """,
    "a call leaves what follows on the last wait of its function": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                self.log_loss(x)
                a = x.max().item()  # queue:little
                y = self.encoded(x)
                b = y.max().item()  # queue:much
                self.unknown(y)
                return a, b, y.min().item()  # queue:much

            def log_loss(self, x: Tensor):
                y = self.model(x)
                print(y.sum().item())  # queue:much

            def encoded(self, x: Tensor):
                print(x.sum().item())  # queue:little
                return self.model(x)
        """,
    "what a caller has queued stands in front of a function": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                y = self.model(x)
                self.behind_model(y)
                self.behind_wait(y)
                return self.behind_some(y)

            def behind_model(self, y: Tensor):
                print(y.sum().item())  # queue:much

            def behind_wait(self, y: Tensor):
                print(y.sum().item())  # queue:little

            def behind_some(self, y: Tensor):
                z = y * 2 + y * 3
                print(z.sum().item())  # queue:little
                return self.deeper(z)

            def deeper(self, z: Tensor):
                return self.deepest(z * 2)

            def deepest(self, z: Tensor):
                return z.sum().item()  # queue:little
        """,
    "a loop calls the function again and again": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                for i in range(3):
                    x = self.halved(x)
                return x

            def halved(self, x: Tensor):
                return x / x.sum().item() + self.least(x)  # queue:each-round

            def least(self, x: Tensor):
                return x.min().item()  # queue:little
        """,
    "of two callers, the one with more in the queue counts": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                print(x.sum().item())  # queue:start
                self.shown(x)
                return self.shown(self.model(x))

            def shown(self, y: Tensor):
                print(y.sum().item())  # queue:much
        """,
    "small operations end as fast as they are queued": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                a = x.max().item()  # queue:start
                for i in range(3):
                    x = x * 2 + x.exp() - x.log() + x.sin() - x.cos()
                    x = x * 2 + x.exp() - x.log() + x.sin() - x.cos()
                return a + x.sum().item()  # queue:some
        """,
    "arrays and modules of the host queue nothing": """
        import numpy as np
        from PIL import Image

        class Net(nn.Module):
            def training_step(self, x: Tensor, path: str):
                a = x.cpu().numpy().astype(np.float32)  # queue:start
                b = np.asarray(Image.open(path))
                return a, b, x.sum().item()  # queue:little
        """,
    "a function may call itself": """
        class Net(nn.Module):
            def training_step(self, x: Tensor, depth: int):
                self.training_step(x, depth - 1)
                return x.max().item()  # queue:little
        """,
    "the step of a gradient scaler waits, and leaves the update": """
        def train_step(x: Tensor, model: nn.Module, scaler, optimizer):
            loss = model(x).sum()
            scaler.scale(loss).backward()
            a = loss.item()  # queue:kept-behind queue:much
            scaler.step(optimizer)
            scaler.update()
            return a + loss.item()  # queue:little
        """,
    "the step of a fused optimizer does not": """
        def train_step(x: Tensor, model: nn.Module, scaler):
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            loss = model(x).sum()
            scaler.scale(loss).backward()
            a = loss.item()  # queue:much
            scaler.step(optimizer)
            return a + loss.item()  # queue:much
        """,
    "the step of a scaler of another name waits": """
        def train_step(x: Tensor, model: nn.Module, optimizer):
            amp = torch.amp.GradScaler("cuda")
            loss = model(x).sum()
            amp.scale(loss).backward()
            a = loss.item()  # queue:kept-behind queue:much
            amp.step(optimizer)
            return a + loss.item()  # queue:little
        """,
    "what bears the name of a scaler need not be one that waits": """
        def train_step(x: Tensor, model: nn.Module, optimizer):
            scaler = torch.amp.GradScaler("cuda", enabled=False)
            loss = model(x).sum()
            scaler.scale(loss).backward()
            a = loss.item()  # queue:much
            scaler.step(optimizer)
            return a + loss.item()  # queue:much
        """,
    "an explicit wait stays, here and where a function begins with it": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                a = self.model(x).sum().item()  # queue:kept-behind queue:much
                self.timed()
                b = self.model(x).sum().item()  # queue:kept-behind queue:much
                torch.cuda.synchronize()  # queue:empty
                return a + b + x.sum().item()  # queue:little

            def timed(self):
                torch.cuda.synchronize()  # queue:empty
                print("done")
        """,
    "iterators, modes, dicts and objects of the host queue nothing": """
        import random

        class Net(nn.Module):
            def training_step(self, x: Tensor, losses: dict, loader, flags):
                rng = random.Random(0)
                found = {}
                a = x.max().item()  # queue:start
                next(loader)
                self.model.train()
                losses.update({"a": 1})
                found.update(losses)
                rng.shuffle(flags)
                if flags.is_set_here():
                    self.logger.setLevel(3)
                return a + x.sum().item()  # queue:little
        """,
    "a function that is given arrays and numbers computes on the host": """
        def counted(x, y):
            for i in range(3):
                x = x @ y
            return model(x) + x

        def train_step(x: Tensor, name: str):
            a = x.cpu().numpy()  # queue:start
            b = counted(to_numpy(x), x.shape)
            c = counted(len(name), 3)
            return a, b, c, x.sum().item()  # queue:little
        """,
    "a branch that raises leads nowhere": """
        class Net(nn.Module):
            def training_step(self, x: Tensor):
                a = self.told(x)
                return a + x.sum().item()  # queue:little

            def told(self, x):
                if isinstance(x, Tensor):
                    return x.cpu()  # queue:start
                elif isinstance(x, list):
                    return [self.told(one) for one in x]
                else:
                    self.model(x)
                    raise ValueError
        """,
    "a name that the code binds is no class, although it is called so": """
        def train_step(x: Tensor):
            box, cls = x.split((4, 80), 1)
            a = box.max().item()  # queue:start
            conf, j = cls.max(1, keepdim=True)
            return a + conf.sum().item()  # queue:little
        """,
    "in front of a function inside another stand the places that run it": """
        def made(scale: float):
            def loss_of(x: Tensor):
                return x.sum().item() * scale  # queue:little

            return loss_of

        def train_step(x: Tensor, model: nn.Module):
            y = model(x)
            loss_of = made(2.0)
            print(y.sum().item())  # queue:much
            return loss_of(y)
        """,
    "a loss that an attribute holds is a few operations, a model is not": """
        class Focal(nn.Module):
            def __init__(self, loss):
                super().__init__()
                self.loss = loss

            def forward(self, x: Tensor, y: Tensor):
                return self.loss(x, y) * 2

        class Criterion:
            def __init__(self, model: nn.Module, focal: bool):
                loss = nn.BCEWithLogitsLoss()
                if focal:
                    loss = Focal(loss)
                self.loss = loss
                self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
                self.given = model
                self.encoder: Encoder = ENCODERS["deep"]()

            def training_step(self, x: Tensor, y: Tensor):
                a = x.max().item()  # queue:start
                b = self.loss(x, y).item()  # queue:little
                c = self.layers(x).sum().item()  # queue:much
                d = self.given(x).sum().item()  # queue:much
                self.encoder(x)
                return a, b, c, d, x.sum().item()  # queue:much

        class Encoder(nn.Module):
            def forward(self, x: Tensor):
                raise NotImplementedError

        class Deep(Encoder):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

            def forward(self, x: Tensor):
                return self.layers(x)

        ENCODERS = {"deep": Deep}

        def main(model: nn.Module, x: Tensor):
            Criterion(model, True).training_step(x, x)
        """,
    "a tensor that is made without a device lies on the host": """
        import numpy as np

        def train_step(x: Tensor, path: str):
            a = x.max().item()  # queue:start
            b = torch.ones(x.shape[0], 3).bool().float().exp()
            c = torch.from_numpy(np.load(path)).permute(1, 0).float().exp().log()
            sizes = np.diff(np.load(path))
            d = torch.tensor([sizes, 3]).sum().clamp(3)
            return a, b, c, d, x[torch.ones(3).bool().to(x.device)]  # queue:empty queue:empty

        def with_device(x: Tensor):
            a = x.max().item()  # queue:start
            b = torch.ones(3, device=x.device).bool().float().exp()
            c = torch.tensor(x).sum().exp().log()
            return a, b, c, x.sum().item()  # queue:some
        """,
    "of two branches, the fuller queue counts": """
        def train_step(x: Tensor, model: nn.Module, flag: bool):
            a = x.max().item()  # queue:start
            if flag:
                x = model(x)
            return a + x.sum().item()  # queue:much queue:on-some-path
        """,
}


@table(PROGRAMS)
def test_the_queue_in_front_of_a_wait(code: str) -> None:
    _assert_queues(program(code), "model.py")


def _assert_queues(text: str, name: str) -> None:
    """Assert that the waits of a file have the features of its comments."""
    found: dict[int, list[str]] = {}
    for one in lint(text, name, HOT):
        shown = features(one.site, one.code) - {BEHIND_ONCE, "queue:wait-behind"}
        queue = sorted(one for one in shown if one.startswith("queue:"))
        found.setdefault(one.line, []).extend(queue)
    expected = {
        number: line.partition("# ")[2].split()
        for number, line in enumerate(text.splitlines(), 1)
        if "# queue:" in line
    }
    assert found == expected


CALLED_ELSEWHERE = {
    "pyproject.toml": '[project]\nname = "kit"\n',
    "kit/__init__.py": "",
    "kit/checks.py": """
        import torch


        def checked(x: torch.Tensor):
            if (x < 0).any():  # queue:much
                raise ValueError


        def scaled(x: torch.Tensor):
            return x / x.sum().item()  # queue:little


        class Counted(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                return x / x.max().item()  # queue:little
        """,
    "train.py": """
        import torch

        from kit.checks import Counted, checked, scaled


        def main(model, optimizer, loader):
            counted = Counted()
            for x in loader:
                x = x.cuda(non_blocking=True)
                y = model(x)
                checked(y)
                y = scaled(y)
                counted(y).sum().backward()
                optimizer.step()


        if __name__ == "__main__":
            main(torch.load("m"), torch.load("o"), torch.utils.data.DataLoader([]))
        """,
}


def test_callers_in_other_modules_count(tmp_path: Path) -> None:
    for name, text in CALLED_ELSEWHERE.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text))
    checks = tmp_path / "kit" / "checks.py"
    _assert_queues(checks.read_text(), str(checks))


def test_a_wait_behind_little_work_names_its_leader() -> None:
    text = program(PROGRAMS["a wait straight behind another, and behind a few operations"])
    found = [(one.line, one.site.leader_line) for one in lint(text, "model.py", HOT)]
    first = min(line for line, _ in found)
    assert found == [
        (first, 0),
        (first + 1, first),
        (first + 1, first + 1),
        (first + 2, first + 1),
    ]


def test_a_wait_shows_that_another_follows_at_once() -> None:
    text = program(PROGRAMS["a wait straight behind another, and behind a few operations"])
    found = [
        "queue:wait-behind" in features(one.site, one.code) for one in lint(text, "model.py", HOT)
    ]
    assert found == [True, True, True, False]


def test_without_little_work_there_is_no_leader() -> None:
    for name in ("a model lies between", "a loop's rounds follow each other"):
        found = lint(program(PROGRAMS[name]), "model.py", HOT)
        assert [one.site.leader_line for one in found] == [0] * len(found)


def test_nested_loops_take_no_time_each() -> None:
    heads = "".join(f"{'    ' * depth}for i{depth} in range(3):\n" for depth in range(1, 60))
    body = f"{'    ' * 60}print(x.sum().item())\n"
    source = f"import torch\n\n\ndef step(x: torch.Tensor):\n{heads}{body}"
    assert lint(source, "model.py", HOT)


FOLLOWERS = """
    class Net(nn.Module):
        def forward(self, x: Tensor, y: Tensor):
            if x.isnan().any():
                raise ValueError
            y = y[y > 0]
            z = y[y > 1]
            return (x * 2 + x / 3 - x * 4 + x - y.sum()).max().item()
    """


def test_a_wait_that_is_worth_little_is_named_by_the_one_before_it() -> None:
    text = program(FOLLOWERS)
    once = {"queue:behind-once": -4.0}
    with weighed(once, threshold=0.4):
        joined = lint(text, "model.py", Options())
    with weighed({**once, "queue:start": -4.0}, threshold=0.4):
        leader_is_left_out = lint(text, "model.py", Options())
    everything = lint(text, "model.py", HOT)
    start = everything[0].line
    first = joined[0].row
    assert [one.line - start for one in everything] == [0, 2, 3, 4]
    assert [one.line - start for one in joined if one.row == first] == [0, 2, 3]
    assert "and 2 more waits to line" in leading(joined[0].lead, [7, 8])
    # What stands behind more work is told alone.
    assert [one.line - start for one in joined if one.row != first] == [4]
    assert not {0, 2, 3} & {one.line - start for one in leader_is_left_out}
