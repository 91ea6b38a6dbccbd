"""`torchperf why FILE:LINE` says what decided that a line is reported, or that it is not."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from weighing import weighed

from flake8_torchperf.cli.main import main
from flake8_torchperf.cli.why.account import Account, account_of
from flake8_torchperf.cli.why.silence import Silence
from flake8_torchperf.findings.chosen import Chosen
from flake8_torchperf.options import Options

PROGRAM = """\
import time

import torch
from torch import nn


def train(net: nn.Module, loader, optimizer, steps: int):
    total = 0.0
    for batch in loader:
        loss = net(batch).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if steps % 100 == 0:
            print(loss.item())
    return total


def save_image(image: torch.Tensor, path: str):
    image.cpu().numpy().tofile(path)
    print(f"saved {image.sum()}")


def timed(net: nn.Module, x: torch.Tensor):
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        net(x)
    return start


def scale(x, factor):
    return x * factor


def table(n: int) -> torch.Tensor:
    weights = torch.arange(n)
    return weights / weights.sum().item()
"""
LINES = {text.strip(): number for number, text in enumerate(PROGRAM.splitlines(), start=1)}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def account(capsys: pytest.CaptureFixture[str], text: str, *options: str) -> dict[str, Any]:
    """Return what `why --format json` prints of the line that holds a text."""
    assert main(["why", f"model.py:{LINES[text]}", "--format", "json", *options]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_a_reported_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = account(capsys, "total += loss.item()")
    (found,) = [one for one in told["findings"] if one["reported"]]
    assert found["code"] == "TPF206"
    assert (found["row"], found["frequency"]) == ("loop", "per step, loop at line 9")
    assert found["sure"] == "inferred"
    assert found["tensor"] == "output of a module, asked for `.mean`, line 10"
    assert found["changes"][0].startswith("`# noqa: TPF206`")


@pytest.mark.parametrize(
    ("text", "row", "wanted", "change"),
    [
        ("print(loss.item())", "some-steps", False, "a profile of `torchperf run`"),
        ("image.cpu().numpy().tofile(path)", "convention", False, "a profile of `torchperf run`"),
        ('print(f"saved {image.sum()}")', "convention", False, '`--hot "save_image"`'),
        ("torch.cuda.synchronize()", "measuring", True, "`--scope all`"),
    ],
)
def test_a_line_that_is_left_out(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    row: str,
    wanted: bool,
    change: str,
) -> None:
    found = account(capsys, text)["findings"]
    assert found, "nothing is found there even with everything reported"
    assert {(one["reported"], one["row"], one["wanted"]) for one in found} == {(False, row, wanted)}
    assert any(one.startswith(change) for one in found[0]["changes"])


def test_the_settings_decide(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = account(capsys, "total += loss.item()", "--confidence", "stated")
    (found,) = [one for one in told["findings"] if one["code"] == "TPF206"]
    assert (found["reported"], found["row"]) == (False, "confidence")
    assert found["decided"] == "left out: that it is a tensor is only inferred"
    told = account(capsys, "total += loss.item()", "--cold", "train")
    (found,) = told["findings"]
    assert (found["reported"], found["row"]) == (False, "named-cold")


def test_values_of_a_line_without_a_finding(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = account(capsys, "weights = torch.arange(n)")
    assert told["findings"] == []
    values = {one["expression"]: one for one in told["values"]}
    made = values["torch.arange(n)"]
    assert (made["kind"], made["residence"]) == ("a tensor of int", "on the host")
    assert made["reason"].startswith("`torch.arange` returns it")
    assert values["n"]["kind"] == "int on the host"
    unknown = account(capsys, "return x * factor")["values"]
    assert {one["kind"] for one in unknown} == {"nothing is known of it"}


def test_in_words(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", f"model.py:{LINES['total += loss.item()']}"]) == 0
    told = capsys.readouterr().out
    assert "model.py:13: total += loss.item()\nin train: the line runs per step, loop at" in told
    assert "\nreported: TPF206 " in told
    assert "  reported: it runs per step, loop at line 9 [loop]\n" in told
    assert "\nvalues\n" in told
    assert main(["why", f"model.py:{LINES['total = 0.0']}"]) == 0
    assert "nothing is found here, even with --scope all" in capsys.readouterr().out


def test_the_evidence_is_weighed_in_words(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = {"cost:per-step": 1.25, "kind:Format": -0.5, "left-out:convention": -2.0}
    saved = LINES['print(f"saved {image.sum()}")']
    with weighed(table, intercept=-0.25):
        assert main(["why", f"model.py:{saved}"]) == 0
        told = capsys.readouterr().out
        assert main(["why", f"model.py:{LINES['total += loss.item()']}"]) == 0
        best = capsys.readouterr().out
    start = "    -0.25 any finding\n"
    head = "the share of such findings that are worth telling\n"
    row = "a row of the table of conventions tells from a name how often the code runs"
    reason = f"what leaves it to scope all: {row}"
    assert f"  its worth: 0.06, {head}{start}    -2.00 {reason} [left-out:convention]\n" in told
    behind = "  the wait in line 20 leads it, with hardly any work between the two\n"
    piece = f"    -0.50 a tensor becomes text [kind:Format]\n{behind}"
    assert f"{piece}  what would raise it:\n" in told
    advice = '`--hot "save_image"`, where the function runs often'
    assert f"    {advice} (without -2.00 [left-out:convention])\n" in told
    assert "-0.50 [kind:Format])" not in told
    piece = "    +1.25 the cost arises in each step [cost:per-step]\n\nvalues"
    assert f"  its worth: 0.73, {head}{start}{piece}" in best


def test_too_little_worth_leaves_a_line_out(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with weighed({}):
        (found,) = account(capsys, "total += loss.item()", "--min-worth=0.75")["findings"]
    assert (found["reported"], found["row"]) == (False, "worth")
    assert found["decided"] == "left out: only findings of a worth of 0.75 are reported"
    assert found["changes"][0] == "`--min-worth 0.5`"
    assert found["worth"]["worth"] == 0.5


def test_a_wait_behind_one_that_stays_names_its_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "import torch\nfrom torch import Tensor, nn\n\n\n"
        "def matched(x: Tensor):\n    return sorted(x.cpu())\n\n\n"
        "class Loss(nn.Module):\n    def forward(self, x: Tensor):\n"
        "        found = matched(x)\n        return found, x.sum().item()\n",
        encoding="utf-8",
    )
    with weighed({}):
        assert main(["why", "model.py:12", "--format", "json", "--min-worth=0.25"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["findings"]
        assert main(["check", "--min-worth=0", "--select=TPF101", "model.py"]) == 1
    assert (found["reported"], found["row"]) == (False, "behind")
    assert found["decided"] == "left out: line 11 has waited straight before it, and stays"
    assert found["changes"][0] == "`--min-worth 0`"
    assert "model.py:12:" in capsys.readouterr().out


def test_a_method_is_told_by_its_callers(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(
        "import torch\n\n\ndef inner(x: torch.Tensor):\n    return x.sum().item()\n\n\n"
        "def train(loader):\n    for x in loader:\n        inner(x)\n",
        encoding="utf-8",
    )
    assert main(["why", "model.py:5", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["reported"]
    assert any("train" in one for one in found["calls"])


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("model.py", "model.py names no line: write model.py:12"),
        ("model.py:999", "model.py has 38 lines: there is no line 999"),
        ("gone.py:3", "there is no file or folder gone.py:3"),
        (".:3", ". is a folder, which has no line 3: name a file"),
        ("model.py:x", "'x' is not a line number: write model.py:12"),
        ("broken.py:1", "broken.py:1: '(' was never closed"),
    ],
)
def test_a_mistake_is_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], place: str, problem: str
) -> None:
    file.with_name("broken.py").write_text("f(\n", encoding="utf-8")
    assert main(["why", place]) == 2
    assert capsys.readouterr().err == f"torchperf: why: {problem}\n"


def test_a_declared_integer_that_callers_give_a_tensor(tmp_path: Path) -> None:
    """The values of a line say what the finding in it says."""
    source = textwrap.dedent(
        """
        import torch


        class Scheduler:
            def __init__(self):
                self.alphas = torch.linspace(0.9, 0.99, 1000)

            def step(self, x: torch.Tensor, t: int):
                return x * self.alphas[t]


        @torch.no_grad()
        def sample(model: torch.nn.Module, x: torch.Tensor, device):
            scheduler = Scheduler()
            for t in torch.arange(1000).to(device):
                x = scheduler.step(model(x, t), t)
            return x
        """
    )
    file = tmp_path / "sample.py"
    file.write_text(source, encoding="utf-8")
    account = account_of(source, str(file), 10, Options())
    assert [one.code for one in account.findings if one.reported] == ["TPF107"]
    (value,) = [one for one in account.values if one.expression == "t"]
    assert value.kind.startswith("a tensor")


def told_of(file: Path, source: str, text: str, **settings: Any) -> Account:
    """Return the account of the line in which a text stands, in a module of this source."""
    file.write_text(source, encoding="utf-8")
    (number,) = [i for i, line in enumerate(source.splitlines(), 1) if text in line]
    return account_of(source, str(file), number, Options(**settings))


SILENT = """\
import torch
from torch import nn


def read(x: torch.Tensor):
    return x.sum().item()


def fit(net: nn.Module, loader, optimizer, x: torch.Tensor, given):
    # a comment
    unsure = given.thing
    later = unsure + 1
    y = x * 2
    z = read(y)
    pinned = torch.ones(3).pin_memory().to("cuda", non_blocking=True)
    for row in x:
        y = row + 1
    for _ in range(3):
        z = y.sum().item()
    return y
    print(z)
"""


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        ("# a comment", "nothing", "nothing is computed in the line"),
        (
            "unsure = given",
            "unknown",
            "`given` is unknown: no annotation, default, use or call of the parameter says what it is",
        ),
        ("later =", "unknown", "`unsure` is unknown: see line 11, which gives it its value"),
        ("y = x * 2", "known", "nothing that the line itself does with them waits for a device"),
        ("z = read(y)", "elsewhere", "the line calls `read`, which has TPF101 in line 6"),
        ("pinned =", "copy", "copies from pinned memory, without waiting"),
        (
            "y = row + 1",
            "elsewhere",
            "the loop around the line is told as a whole: TPF201 in line 16",
        ),
        ("for _ in range(3)", "elsewhere", "the line is the loop of TPF101 in line 19"),
        ("print(z)", "unreached", "no way through the function that leads to the line"),
    ],
)
def test_a_line_without_a_finding_says_why(tmp_path: Path, line: str, kind: str, text: str) -> None:
    account = told_of(tmp_path / "fit.py", SILENT, line)
    assert account.findings == ()
    assert [one.kind for one in account.silent] == [kind]
    assert text in account.silent[0].text


def test_a_file_without_torch_says_so(tmp_path: Path) -> None:
    account = told_of(tmp_path / "plain.py", "def f(x):\n    return x.item()\n", "x.item()")
    assert [one.kind for one in account.silent] == ["no-torch"]
    assert account.values == ()


def test_what_the_settings_leave_out_is_named(tmp_path: Path) -> None:
    file = tmp_path / "fit.py"
    account = told_of(file, SILENT, "return x.sum().item()", chosen=Chosen(ignore=("TPF1",)))
    assert account.silent == (
        Silence("settings", "the settings leave out TPF101, which stands here"),
    )
    account = told_of(file, SILENT, "y = x * 2", chosen=Chosen(exclude=("fit.py",)))
    assert account.silent == (Silence("settings", "the settings exclude the file"),)


def test_the_limits_of_the_analysis_are_named(tmp_path: Path) -> None:
    deep = f"import torch\n\n\ndef f(x):\n    return {'(' * 60}x{'+ 1)' * 60} + x{'.T' * 120}\n"
    account = told_of(tmp_path / "deep.py", deep, "return")
    assert [one.kind for one in account.silent] == ["limit"]
    assert "nests more than 110 expressions" in account.silent[0].text
    loops = "".join(f"{'    ' * i}for i{i} in range(x):\n" for i in range(1, 9))
    long = f"import torch\n\n\ndef f(x):\n{loops}"
    long += f"{'    ' * 9}y = [{'x, ' * 100}]\n" * 450
    account = told_of(tmp_path / "long.py", f"{long}    return y\n", "return y")
    assert "takes more steps to analyse" in account.silent[0].text


def test_a_long_function_that_is_called_ends_what_is_known(tmp_path: Path) -> None:
    body = "".join(f"    y = x + {i}\n" for i in range(260))
    source = (
        f"import torch\n\n\ndef long(x):\n{body}    return y\n\n\ndef f(x: int):\n    z = long(x)\n"
    )
    account = told_of(tmp_path / "long.py", source, "z = long(x)")
    assert [one.kind for one in account.silent] == ["unknown"]
    assert "functions of more than 250 are not followed" in account.silent[0].text


def test_a_read_in_a_row_names_the_line_that_tells_it(tmp_path: Path) -> None:
    source = (
        "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n"
        "    a = x.item()\n    b = y.item()\n    return a + b\n"
    )
    account = told_of(tmp_path / "row.py", source, "b = y.item()")
    (found,) = account.findings
    assert (found.reported, found.leader) == (True, 5)
    assert found.decided.startswith("reported in line 5, whose wait it directly follows: it runs")
    (first,) = told_of(tmp_path / "row.py", source, "a = x.item()").findings
    assert first.leader == 0


STEPS = """\
import torch
from torch import nn


def total(x: torch.Tensor):
    return x.sum().item()


def train(net: nn.Module, loader, optimizer, debug=False):
    best = torch.ones(3)
    for batch in loader:
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
        extra = loss * 2
        if debug:
            total(loss)
"""


def test_the_header_speaks_of_the_line(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    file = tmp_path / "steps.py"
    assert told_of(file, STEPS, "best =").frequency == "per call, outside the steps"
    assert told_of(file, STEPS, "extra =").frequency == "per step, loop at line 11"
    assert told_of(file, STEPS, "total(loss)").frequency == "per call, option off by default"


def test_a_call_that_an_option_switches_off_is_not_said_to_be_before_the_steps(
    tmp_path: Path,
) -> None:
    (tmp_path / "requirements.txt").touch()
    (found,) = told_of(tmp_path / "steps.py", STEPS, "x.sum().item()").findings
    assert (found.row, found.reported) == ("switched-off", False)
    (found,) = told_of(
        tmp_path / "steps.py", STEPS.replace("debug:", "loss.numel() % 9 == 0:"), "x.sum().item()"
    ).findings
    assert found.row == "seldom-calls"


def test_a_copy_in_a_step_is_not_said_to_be_outside_steps(tmp_path: Path) -> None:
    source = STEPS.replace("extra = loss * 2", "extra = (batch * 2).cpu().numpy()")
    source = source.replace("def train(", "def fit(").replace("    for batch in loader:\n", "")
    source = source[: source.index("        if debug")].replace("        ", "    ")
    source = source.replace("net: nn.Module, loader", "net: nn.Module, batch: torch.Tensor")
    found = told_of(tmp_path / "step.py", source, "extra =").findings
    (copy,) = [one for one in found if one.code == "TPF102"]
    assert copy.frequency == "per step, in a training step"
    assert "no step repeats" not in copy.rule


SHOWN = """\
from helper import total


def shown(x):
    return f"{total(x):.3f}"
"""
READING = """\
import torch


def total(x: torch.Tensor):
    return x.sum().item()
"""
TRAINING = """\
import torch
from shown import shown


def report(net: torch.nn.Module):
    print(shown(net.weight))


def train(net: torch.nn.Module, loader, optimizer):
    for batch in loader:
        net(batch).sum().backward()
        optimizer.step()
{}report(net)


if __name__ == "__main__":
    train(torch.nn.Linear(9, 9), [], None)
"""


@pytest.mark.parametrize(
    ("indent", "row", "reported"), [(8, "called", True), (4, "unreached", False)]
)
def test_the_whole_way_from_a_step_through_other_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int, row: str, reported: bool
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINING.format(" " * indent))
    (tmp_path / "shown.py").write_text(SHOWN)
    (found,) = told_of(tmp_path / "helper.py", READING, "x.sum().item()").findings
    assert (found.row, found.reported) == (row, reported)
    assert found.calls == ("shown at shown.py:5", "report at train.py:6", "train at train.py:13")


DOUBLING = """\
import torch


def total(x: torch.Tensor, watch=False):
    if watch:
        twice = x * 2
        print(x.sum().item())
    once = x + 1
    return x.sum().item() + once
"""
NOT_SAID = "nothing says where: as if on an accelerator"
CHOSEN = "on the device that the program chooses"
CALLING = """\
import torch
from helper import total


def train(net: torch.nn.Module, loader, optimizer):
    kept = torch.zeros(3)
    for batch in loader:
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
{}total({})


if __name__ == "__main__":
    train(torch.nn.Linear(9, 9).cuda(), [], None)
"""


@pytest.mark.parametrize(
    ("indent", "given", "line", "frequency", "residence"),
    [
        (8, "loss", "once =", "per step, called by `train` at line 11", CHOSEN),
        (8, "loss", "twice =", "per call, option off by default", CHOSEN),
        (4, "loss", "once =", "at the end, called by `train` at line 11", NOT_SAID),
        (8, "kept", "once =", "per step, called by `train` at line 11", "on the host"),
    ],
)
def test_a_line_without_a_finding_asks_the_callers_as_one_with_a_finding_does(
    tmp_path: Path, indent: int, given: str, line: str, frequency: str, residence: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(CALLING.format(" " * indent, given))
    found = told_of(tmp_path / "helper.py", DOUBLING, line)
    assert (found.findings, found.frequency) == ((), frequency)
    (tensor,) = [one for one in found.values if one.expression == "x"]
    assert tensor.residence == residence
    beside = "print(" if line == "twice =" else "return"
    (read,) = told_of(tmp_path / "helper.py", DOUBLING, beside).findings
    assert read.frequency == frequency
    assert read.row == "arguments" if residence == "on the host" else read.residence == residence


class TestNotebooks:
    """With nbformat."""

    @pytest.fixture(autouse=True)
    def _in_folder(self, notebooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("nbformat")
        monkeypatch.chdir(notebooks)

    @pytest.mark.parametrize("place", ["training.ipynb:cell_2:7", "training.ipynb:cell_2:7:9"])
    def test_a_place_as_check_prints_it(
        self, capsys: pytest.CaptureFixture[str], place: str
    ) -> None:
        assert main(["why", place, "--format", "json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["path"], told["line"]) == ("training.ipynb:cell_2", 7)
        assert told["source"] == "total += batch.sum().item()"
        assert told["frequency"] == "per step, loop at line 6"
        assert [one["code"] for one in told["findings"]] == ["TPF206"]

    @pytest.mark.parametrize(
        ("place", "problem"),
        [
            (
                "training.ipynb:3",
                "training.ipynb is a notebook: name a cell and a line of it, training.ipynb:cell_2:6",
            ),
            (
                "training.ipynb",
                "training.ipynb is a notebook: name a cell and a line of it, training.ipynb:cell_2:6",
            ),
            ("training.ipynb:cell_9:1", "training.ipynb has 4 cells of code: there is no cell_9"),
            (
                "training.ipynb:cell_2:99",
                "cell_2 of training.ipynb has 8 lines: there is no line 99",
            ),
            ("gone.ipynb:cell_1:1", "there is no file gone.ipynb"),
        ],
    )
    def test_a_mistake_is_one_line(
        self, capsys: pytest.CaptureFixture[str], place: str, problem: str
    ) -> None:
        assert main(["why", place]) == 2
        assert capsys.readouterr().err == f"torchperf: why: {problem}\n"
