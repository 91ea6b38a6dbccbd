"""The work that is queued on the device in front of each wait, as evidence of what it costs."""

from __future__ import annotations

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
                print(x.sum().item())  # queue:start
                return self.model(x)
        """,
    "a function may call itself": """
        class Net(nn.Module):
            def training_step(self, x: Tensor, depth: int):
                self.training_step(x, depth - 1)
                return x.max().item()  # queue:little
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
    text = program(code)
    found: dict[int, list[str]] = {}
    for one in lint(text, "model.py", HOT):
        shown = features(one.site, one.code) - {BEHIND_ONCE}
        queue = sorted(one for one in shown if one.startswith("queue:"))
        found.setdefault(one.line, []).extend(queue)
    expected = {
        number: line.partition("# ")[2].split()
        for number, line in enumerate(text.splitlines(), 1)
        if "# queue:" in line
    }
    assert found == expected


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
