"""The plugin as flake8 and people meet it: input, options, suppression, errors."""

from __future__ import annotations

import argparse
import ast
import configparser
import datetime
import subprocess
import sys
from pathlib import Path

import pytest
from flake8.options.config import parse_config
from flake8.options.manager import OptionManager
from flake8_run import flake8

from flake8_torchperf.options import OptionError, add_options, from_namespace
from flake8_torchperf.plugin import TorchPerfPlugin

READS_IN_A_LOOP = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    out = []
    for value in values:
        out.append(value.item())
    return out
"""
READ_LINE = 7

READS_COLD = """\
import torch


class Model(torch.nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.first = weight.sum().item()
"""

PAGE = Path(__file__).parents[2] / "rules" / "TPF205-tensor-grown-in-a-loop.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(READS_IN_A_LOOP, encoding="utf-8")
    return path


def test_a_read_in_a_loop_is_reported(file: Path) -> None:
    (result,) = flake8("--select=TPF", file).results
    assert (result.line, result.column, result.code) == (READ_LINE, 20, "TPF101")
    assert "value.item()" in result.text
    assert "line 6" in result.text


def test_standard_input_is_linted(tmp_path: Path) -> None:
    run = flake8(
        "--select=TPF",
        "--stdin-display-name=not/saved.py",
        "-",
        cwd=tmp_path,
        stdin=READS_IN_A_LOOP,
    )
    assert [(r.path, r.line, r.code) for r in run.results] == [("not/saved.py", 7, "TPF101")]


def test_several_processes_find_what_one_finds(file: Path) -> None:
    for number in range(4):
        (file.parent / f"copy{number}.py").write_text(READS_COLD, encoding="utf-8")
    options = ("--select=TPF", "--torchperf-scope=all", file.parent)
    alone = flake8("-j1", *options)
    assert sorted(flake8("-j2", *options).results, key=repr) == sorted(alone.results, key=repr)
    assert len(alone.results) == 5


TELLING = """
def masked(x: "Tensor", lengths):
    mask = x > 0
    x = x.masked_fill(~mask, 0.0)
    return x[mask]
"""


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ("import paddle", False),
        ("from jax import numpy as jnp", False),
        ("import tensorflow as tf", False),
        ("import paddle, torch\nfrom torch import Tensor", True),
        ("from torch import Tensor", True),
    ],
)
def test_tensors_of_another_library(file: Path, imports: str, found: bool) -> None:
    """They have the same methods; who never says torch has none of its tensors."""
    file.write_text(f"{imports}\n{TELLING}")
    assert ("TPF402" in flake8("--torchperf-scope=all", file).codes) is found


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: TPF101", "# noqa: TPF"])
def test_noqa_silences(file: Path, comment: str) -> None:
    noisy = READS_IN_A_LOOP.replace("value.item())", f"value.item())  {comment}")
    file.write_text(noisy, encoding="utf-8")
    assert flake8("--select=TPF", file).codes == []


def test_per_file_ignores(file: Path) -> None:
    assert flake8("--select=TPF", "--per-file-ignores=model.py:TPF101", file).codes == []


def test_a_plain_flake8_run_reports_too(file: Path) -> None:
    assert flake8(file).codes == ["TPF101"]


def test_scope(file: Path) -> None:
    file.write_text(READS_COLD, encoding="utf-8")
    assert flake8("--select=TPF", file).codes == []
    assert flake8("--select=TPF", "--torchperf-scope=loop", file).codes == []
    assert flake8("--select=TPF", "--torchperf-scope=all", file).codes == ["TPF101"]


STATED_INFERRED_ASSUMED = """\
import torch
from torch import nn


def total(values: torch.Tensor):
    return [values.sum().item() for _ in range(3)]


def biggest(values):
    return [values.detach().max().item() for _ in range(3)]


class Model(nn.Module):
    def forward(self, inputs):
        return [float(value) for value in (inputs * 2, inputs + 1)]
"""


@pytest.mark.parametrize(
    ("confidence", "lines"),
    [("stated", [6]), ("inferred", [6, 10]), ("assumed", [6, 10, 15]), (None, [6, 10])],
)
def test_confidence(file: Path, confidence: str | None, lines: list[int]) -> None:
    file.write_text(STATED_INFERRED_ASSUMED, encoding="utf-8")
    asked = [] if confidence is None else [f"--torchperf-confidence={confidence}"]
    run = flake8("--select=TPF", *asked, file)
    assert [(r.line, r.code) for r in run.results] == [(line, "TPF101") for line in lines]


def test_names_the_user_declares_hot_and_cold(file: Path) -> None:
    source = 'import torch\n\nSTATE = torch.zeros((), device="cuda")\n\n\ndef execute_model():\n'
    source += "    return STATE.item()\n"
    file.write_text(source, encoding="utf-8")
    assert flake8("--select=TPF", file).codes == []
    assert flake8("--select=TPF", "--torchperf-hot=execute_*", file).codes == ["TPF101"]
    file.write_text(READS_IN_A_LOOP, encoding="utf-8")
    assert flake8("--select=TPF", "--torchperf-cold=report", file).codes == []


def test_explain_appends_the_reason(file: Path) -> None:
    (plain,) = flake8("--select=TPF", file).results
    (explained,) = flake8("--select=TPF", "--torchperf-explain", file).results
    assert explained.text.startswith(plain.text)
    assert "line 4" in explained.text.removeprefix(plain.text), explained.text


@pytest.mark.parametrize("name", ["setup.cfg", "tox.ini", ".flake8"])
def test_configuration_files(file: Path, name: str) -> None:
    file.write_text(READS_COLD, encoding="utf-8")
    (file.parent / name).write_text(
        "[flake8]\nselect = TPF\ntorchperf-scope = all\ntorchperf-explain = yes\n",
        encoding="utf-8",
    )
    run = flake8("model.py", cwd=file.parent, isolated=False)
    assert run.codes == ["TPF101"]
    assert "weight" in run.output


def test_a_repository_adds_its_own_pages(file: Path) -> None:
    rules = file.parent / "perf-rules"
    rules.mkdir()
    page = PAGE.read_text(encoding="utf-8").replace("TPF205", "TPF955")
    page = page.replace("tensor-grown-in-a-loop", "our-own-growth")
    (rules / "TPF955-our-own-growth.md").write_text(page, encoding="utf-8")
    (file.parent / "setup.cfg").write_text(
        "[flake8]\nselect = TPF\ntorchperf-rules = ./perf-rules\n", encoding="utf-8"
    )
    run = flake8("model.py", cwd=file.parent, isolated=False)
    assert (run.codes, run.errors) == (["TPF101"], "")


BAD_OPTIONS = [
    ("torchperf-scope = hit", "'hit' is not one of loop, hot, all, did you mean 'hot'?"),
    ("torchperf-scope = everything", "'everything' is not one of loop, hot, all"),
    ("torchperf-confidence = sure", "'sure' is not one of stated, inferred, assumed"),
    ("torchperf-confidence = stat", "assumed, did you mean 'stated'?"),
    ("torchperf-hot = step()", "'step()' is not a function name or glob"),
    ("torchperf-cold = step,;", "';' is not a function name or glob"),
    ("torchperf-explain = perhaps", "'perhaps' is neither true nor false"),
    ("torchperf-rules = ./nowhere", "nowhere"),
    ("torchperf-rules = ./model.py", "model.py is a file"),
    ("torchperf-rules = ./empty", "empty"),
    ("torchperf-rules = ./broken", "TPF955-broken.md"),
    ("torchperf-hot = step\ntorchperf-cold = step", "both name 'step'"),
    ("torchperf-hot = 3", "'3' is not a function name or glob"),
    ("torchperf-hot = Engine.[", "'Engine.[' is not a function name or glob"),
    ("torchperf-cold = True", "'True' is not a function name or glob"),
]


@pytest.mark.parametrize(("setting", "message"), BAD_OPTIONS)
def test_a_bad_option_is_one_line(file: Path, setting: str, message: str) -> None:
    (file.parent / "empty").mkdir()
    broken = file.parent / "broken" / "TPF955-broken.md"
    broken.parent.mkdir()
    broken.write_text(PAGE.read_text(encoding="utf-8").replace("message =", "massage ="))
    (file.parent / "setup.cfg").write_text(f"[flake8]\n{setting}\n", encoding="utf-8")

    run = flake8("model.py", cwd=file.parent, isolated=False)

    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith("flake8: error: --torchperf-")
    assert message in run.errors
    assert run.errors.count("\n") == 1


def test_a_bad_option_on_the_command_line_is_one_line(file: Path) -> None:
    run = flake8("--torchperf-scope=al", file)
    assert (run.status, run.output) == (2, "")
    assert run.errors == (
        "flake8: error: --torchperf-scope: 'al' is not one of loop, hot, all, did you mean 'all'?\n"
    )


# What pyproject.toml can hold where a text belongs.
NO_TEXTS: list[tuple[str, object, str]] = [
    ("torchperf-cache", [], "--torchperf-cache: [] is neither true nor false"),
    ("torchperf-explain", ["true"], "--torchperf-explain: ['true'] is neither true nor false"),
    ("torchperf-explain", {}, "--torchperf-explain: {} is neither true nor false"),
    ("torchperf-scope", ["hot"], "is not one of loop, hot, all"),
    ("torchperf-hot", [1], "--torchperf-hot: [1] is no list of texts; write for example ["),
    ("torchperf-hot", {"a": 1}, "--torchperf-hot: {'a': 1} is no list of texts"),
    ("torchperf-cold", datetime.date(2024, 1, 1), "is no list of texts"),
    ("torchperf-rules", [3], '[3] is no list of texts; write for example ["./perf-rules"]'),
    ("torchperf-rules", {"a": 1}, "--torchperf-rules: {'a': 1} is no list of texts"),
    ("torchperf-rules", ["./a\0b"], "can be no path: "),
    ("torchperf-cache-dir", ["x"], "is no path; write for example './remembered'"),
    ("torchperf-cache-dir", {}, "--torchperf-cache-dir: {} is no path"),
    ("torchperf-cache-dir", "./a\0b", "can be no path: "),
    ("torchperf-cache-dir", "./" + "a" * 5000, "can be no path: "),
]


def options_of(setting: str, value: object) -> argparse.Namespace:
    """What flake8 makes of a configuration, set as Flake8-pyproject sets it."""
    manager = OptionManager(version="7", plugin_versions="", parents=[], formatter_names=[])
    add_options(manager)
    config = configparser.RawConfigParser()
    config.read_dict({"flake8": {}})
    config.set("flake8", setting, value)  # type: ignore[arg-type]
    manager.parser.set_defaults(**parse_config(manager, config, "/"))
    return manager.parser.parse_args([])


@pytest.mark.parametrize(
    ("setting", "value", "message"), NO_TEXTS, ids=[f"{s} {v!r}"[:40] for s, v, _ in NO_TEXTS]
)
def test_a_value_of_another_type_is_one_line(setting: str, value: object, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        from_namespace(options_of(setting, value))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("glob", ["*", "execute_*", "Engine.[a-c]*", "[!_]?.run", "__call__"])
def test_globs_that_names_can_match(glob: str) -> None:
    assert from_namespace(options_of("torchperf-hot", [glob])).hot == (glob,)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef f(:\n    pass\n",
        "import torch\nx = (\n",
        "import torch\n    x = 1\n",
        "import torch\nx = '\n",
    ],
)
def test_a_syntax_error_stays_flake8s_own(file: Path, source: str) -> None:
    file.write_text(source, encoding="utf-8")
    run = flake8("--select=TPF,E999", file)
    assert run.codes == ["E999"]
    assert "Traceback" not in run.output + run.errors


@pytest.mark.parametrize(
    "source",
    [
        "",
        "# torch",
        "\ufeffimport torch\n",
        "import torch\r\nx = torch.ones(1)\r\n",
        "import torch\x0c\n",
        "import torch\nx = '\\N{BULLET}' 'é'; y = torch.ones(1)",
        "import torch\n" + "x = " + "-" * 90 + "1\n",
        "import torch\nx = " + "(" * 60 + "1" + ")" * 60 + "\n",
        "import torch\nx = " + "+".join(["torch.ones(1)"] * 250) + "\n",
    ],
    ids=["empty", "comment", "bom", "crlf", "formfeed", "accents", "unary", "nested", "long-sum"],
)
def test_odd_files_end_in_no_traceback(file: Path, source: str) -> None:
    file.write_bytes(source.encode("utf-8"))
    run = flake8("--select=TPF", file)
    assert run.codes == []
    assert run.errors == ""


def run_plugin(source: str) -> list[str]:
    plugin = TorchPerfPlugin(ast.parse(source), source.splitlines(keepends=True), "x.py")
    return [message for _, _, message, _ in plugin.run()]


def test_a_bug_of_ours_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[object]:
        raise KeyError("two\nlines")

    monkeypatch.setattr("flake8_torchperf.linter.lint_tree", broken)
    monkeypatch.delenv("TORCHPERF_DEBUG", raising=False)
    (message,) = run_plugin(READS_IN_A_LOOP)
    assert message.startswith("TPF900 ")
    assert "KeyError" in message
    assert "test_plugin.py:" in message
    assert "\n" not in message

    monkeypatch.setenv("TORCHPERF_DEBUG", "1")
    with pytest.raises(KeyError):
        run_plugin(READS_IN_A_LOOP)


@pytest.mark.parametrize(
    ("source", "absent"),
    [
        ("x = 1\n", ["flake8_torchperf.linter", "flake8_torchperf.findings.rule", "torch"]),
        (
            "import torch\n\n\ndef f(x):\n    return x\n",
            [
                "flake8_torchperf.interpreter.engine",
                "flake8_torchperf.knowledge.methods",
                "flake8_torchperf.values.values",
                "torch",
            ],
        ),
        (READS_IN_A_LOOP, ["libcst", "torch"]),
    ],
    ids=["no-torch", "no-suspects", "suspects"],
)
def test_only_what_a_file_needs_is_imported(source: str, absent: list[str]) -> None:
    program = (
        "import ast, sys; from flake8_torchperf.plugin import TorchPerfPlugin\n"
        f"source = {source!r}\n"
        "list(TorchPerfPlugin(ast.parse(source), source.splitlines(True), 'x.py').run())\n"
        f"print([name for name in {absent!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
