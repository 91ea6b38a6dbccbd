"""Parameters of which a function says nothing: what calls in other modules give them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import ALL, HOT, expected

from flake8_torchperf.linter import lint

METERS = """
    import torch

    class AverageMeter:
        def __init__(self):
            self.reset()

        def reset(self):
            self.sum = 0

        def update(self, val, n=1):
            self.sum += float(val) * n{}


    class Other:
        def update(self, val):
            self.sum = val
    """
TRAIN = """
    from torch import nn
    from .meters import AverageMeter, Other

    class Trainer:
        def __init__(self, model: nn.Module, loader, opt):
            self.model = model
            self.loader = loader
            self.opt = opt
            self.meter = AverageMeter()
            self.other = Other()

        def train(self):
            for batch in self.loader:
                loss = self.model(batch)
                loss.backward()
                self.opt.step()
                {}
    """
WAITS = "  # TPF101"
CALLS = {
    "self.meter.update(loss)": WAITS,
    "self.meter.update(loss.detach(), 2)": WAITS,
    "self.meter.update(val=loss)": WAITS,
    "AverageMeter().update(loss)": WAITS,
    "self.meter.update(3.0)": "",
    "self.meter.update(loss.shape[0])": "",
    "self.meter.update(loss.cpu())": "",
    "self.other.update(loss)": "",
    "self.meter.update(batch)": "",
    "self.meter.update(n=loss)": "",
}


def written(folder: Path, texts: dict[str, str]) -> dict[str, str]:
    """The texts of a package, each written to its file."""
    folder.mkdir()
    (folder / "__init__.py").touch()
    found = {name: textwrap.dedent(text) for name, text in texts.items()}
    for name, text in found.items():
        (folder / name).write_text(text)
    return found


@pytest.mark.parametrize(("call", "told"), list(CALLS.items()))
def test_meters(call: str, told: str, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    texts = written(folder, {"meters.py": METERS.format(told), "train.py": TRAIN.format(call)})
    text = texts["meters.py"]
    found = lint(text, str(folder / "meters.py"), HOT)
    assert [(f.line, f.code) for f in found] == expected(text)


FUNCTIONS = """
    import torch

    def log_value(name, value):
        print(name, float(value))  # TPF101

    def never_called(value):
        print(float(value))

    def given_numbers(value):
        print(float(value))

    def at_the_end(value):
        print(float(value))
    """
CALLING = """
    import torch
    from . import helpers
    from .helpers import log_value, given_numbers

    def train(model: torch.nn.Module, loader, opt):
        for batch in loader:
            loss = model(batch)
            loss.backward()
            opt.step()
            log_value("loss", loss)
            given_numbers(3.5)
        helpers.at_the_end(loss)
    """


def test_functions(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    texts = written(folder, {"helpers.py": FUNCTIONS, "train.py": CALLING})
    text = texts["helpers.py"]
    found = lint(text, str(folder / "helpers.py"), HOT)
    assert [(f.line, f.code) for f in found] == expected(text)
    assert "called by `train` at line 11" in found[0].message


READS = {
    'return f"{value:.4f}"': ("loss", "TPF104"),
    'return "loss: %.4f" % value': ("loss", "TPF104"),
    'return "loss: {:.3f}".format(value)': ("loss", "TPF104"),
    'log.info("loss: %.3f", value)': ("loss", "TPF104"),
    'return f"{value}"': ("loss", ""),
    "return math.isnan(value)": ("loss", "TPF101"),
    "return min(value, 3.0)": ("loss", "TPF103"),
    "return [one for one in value]": ("loss", ""),
    "return torch.ones(9)[:value]": ("index", "TPF107"),
    "return torch.ones(9)[: value[0]]": ("index", "TPF107"),
    "return torch.ones(9, 9)[: len(value)]": ("index", ""),
    "return torch.arange(value)": ("index", "TPF107"),
    "return torch.arange(value, value + 2)": ("step", ""),
}


@pytest.mark.parametrize("read", READS)
def test_what_is_written_tested_or_taken_for_a_bound(read: str, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    given, code = READS[read]
    helper = (
        f"import logging, math, torch\nlog = logging.getLogger()\ndef use(value):\n    {read}\n"
    )
    program = f"""
        import torch
        from .helper import use

        def train(model: torch.nn.Module, loader, opt):
            index = torch.ones(1, dtype=torch.long, device="cuda")
            for step, batch in enumerate(loader):
                loss = model(batch).sum()
                loss.backward()
                opt.step()
                use({given})
        """
    texts = written(folder, {"helper.py": helper, "train.py": program})
    found = lint(texts["helper.py"], str(folder / "helper.py"), HOT)
    assert [one.code for one in found] == ([code] if code else [])


def test_host_data_that_a_helper_puts_on_a_device(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    buffer = """
        import numpy
        import torch

        class Buffer:
            def __init__(self, size, device):
                self.seen = numpy.zeros((size, 3))
                self.device = device

            def sample(self, count):
                chosen = {"seen": self.seen[:count]}
                return {k: torch.as_tensor(v, device=self.device) for k, v in chosen.items()}  # TPF502
        """
    program = """
        import torch
        from .buffer import Buffer

        def train(model: torch.nn.Module, opt):
            buffer = Buffer(10, torch.device("cuda"))
            for step in range(1000):
                model(buffer.sample(256)["seen"]).sum().backward()
                opt.step()
        """
    texts = written(folder, {"buffer.py": buffer, "train.py": program})
    text = texts["buffer.py"]
    found = lint(text, str(folder / "buffer.py"), HOT)
    assert [(f.line, f.code) for f in found] == expected(text)


def test_methods_of_several_classes_that_one_call_may_run(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    callbacks = """
        class Seldom:
            def after(self, state):
                if state["step"] % 50 == 0:
                    print(state["loss"].item())

        class Shown:
            def after(self, state):
                state["bar"].set_postfix(loss=state["loss"].item())  # TPF101

        class Kept:
            def __init__(self):
                self.seen = []

            def after(self, state):
                self.seen.append(float(state["loss"]))  # TPF101
        """
    program = """
        import torch
        from .callbacks import Kept, Seldom, Shown

        def train(model: torch.nn.Module, loader, opt, bar):
            callbacks = [Seldom(), Shown(), Kept()]
            for step, batch in enumerate(loader):
                loss = model(batch).sum()
                loss.backward()
                opt.step()
                state = {"step": step, "loss": loss, "bar": bar}
                for one in callbacks:
                    one.after(state)
        """
    texts = written(folder, {"callbacks.py": callbacks, "train.py": program})
    text = texts["callbacks.py"]
    found = lint(text, str(folder / "callbacks.py"), HOT)
    assert [(f.line, f.code) for f in found] == expected(text)


HELPERS = """
    import torch

    def item(x):
        return x.item()

    def number(x):
        \"\"\"A number of a tensor.\"\"\"
        return float(x)

    def to_number(x):
        if isinstance(x, torch.Tensor):
            return x.detach().cpu().item()
        return x

    def synchronise():
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def shape(x):
        return x.size(0)

    def logged(x):
        print(x.shape)
        return x.item()

    def on_device(x):
        return x.sum()
    """
STEPS = """
    import torch
    from . import helpers
    from .helpers import number, to_number, synchronise, shape, logged, on_device

    def train(model: torch.nn.Module, loader, opt):
        for batch in loader:
            loss = model(batch)
            loss.backward()
            opt.step()
            helpers.item(loss)  # TPF101
            number(x=loss)  # TPF101
            to_number(loss)  # TPF101
            synchronise()  # TPF106
            number(3.5)
            shape(loss)
            logged(loss)
            on_device(loss)
        number(loss)
        synchronise()
    """


def test_a_helper_that_only_waits_is_told_where_it_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    texts = written(folder, {"helpers.py": HELPERS, "train.py": STEPS})
    text = texts["train.py"]
    path = str(folder / "train.py")
    found = lint(text, path, HOT)
    told = [(f.line, f.code) for f in found]
    assert sorted(told) == expected(text)
    assert not [f for f in found if f.edits]
    # Who asks for everything is told of the helpers themselves.
    assert not lint(text, path, ALL)
    inside = lint(texts["helpers.py"], str(folder / "helpers.py"), ALL)
    assert {f.line for f in inside} >= {5, 9, 13, 18}
