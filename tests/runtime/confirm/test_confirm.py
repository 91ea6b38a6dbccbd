"""`torchperf confirm` on code whose answer is known: the laws, the projection, the reports."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from flake8_torchperf.cli.main import main

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

FIXTURES = Path(__file__).parents[3] / "fixtures"
SCALER = FIXTURES / "issue82206_sharded_grad_scaler"
UNSCALE = "ShardedGradScaler._foreach_non_finite_check_and_unscale_cpu_"
CLIP = FIXTURES / "clip_grad_norm"

MANY = """
import contextlib
from dataclasses import dataclass

import torch


def by_rows(rows: torch.Tensor) -> list[float]:
    found = []
    for row in rows:  # per element
        found.append(row.sum())
    return found


def guarded(x: torch.Tensor, strict: bool) -> torch.Tensor:
    if strict and x.sum() > 0:  # only where the search turns strict on
        return x * 2
    return x


def on_the_host(x: torch.Tensor) -> float:
    y = x.sum()
    if x.dim() > 9:
        return y.item()  # never
    return 0.0


class Model(torch.nn.Module):
    def __init__(self, width: int, scale: float):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)
        self.scale = scale

    def forward(self, x):
        y = self.layer(x) * self.scale
        if y.sum() > 0:  # method
            return y
        return -y


class Unbuildable:
    def __init__(self, plan):
        raise RuntimeError("not today")

    def step(self, loss: torch.Tensor):
        return loss.sum().item() * self.scale_factor  # without init


@contextlib.contextmanager
def watched(x: torch.Tensor):
    yield x.sum().item()  # context


async def later(x: torch.Tensor):
    return x.sum().item()  # coroutine


def outer(x: torch.Tensor):
    def inner(y: torch.Tensor):
        return y.sum().item()  # nested

    return inner
"""


COUNTERS = ("dispatches", "host_reads", "dynamic_shapes", "transfers")


def per_element(**counts):
    """The counters of a report, 0 where not given."""
    return dict.fromkeys(COUNTERS, 0) | counts


def confirm(capsys, *arguments):
    """The exit status and the JSON report."""
    status = main(["confirm", *map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "many.py"
    path.write_text(MANY)
    return path


@pytest.fixture(scope="module")
def verdicts(many, request):
    """The verdict on each flagged line of MANY, by the line's comment: one child judges all."""
    from flake8_torchperf.cli.confirm_command import DEFAULT_SIZES
    from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, Request, plan
    from flake8_torchperf.runtime.confirm.sandbox import Sandbox
    from flake8_torchperf.runtime.confirm.verdict import verdict_of_call

    lines = MANY.splitlines()
    found = {}
    with Sandbox(20, 1024) as sandbox:
        for group in plan([Request(many)], ConfirmSettings(DEFAULT_SIZES, "cpu"), print):
            answer = sandbox.run(group.job)
            for target in group.targets:
                comment = lines[target.finding.line - 1].rpartition("# ")[2]
                found[comment] = verdict_of_call(group, target, answer, 1000, "cpu")
    return found


def test_the_scaler_is_confirmed_with_its_law_and_projection(capsys):
    status, report = confirm(capsys, SCALER / "before.py", "--project", 320008)
    assert status == 0
    by_code = {one["code"]: one for one in report["findings"]}
    assert set(by_code) == {"TPF201", "TPF203", "TPF101"}
    for one in report["findings"]:
        assert one["verdict"] == "confirmed"
        assert one["per_element"] == per_element(dispatches=9.0, host_reads=3.0)
        assert one["projected"]["dispatches"] == pytest.approx(2_880_073, rel=1e-3)
        assert one["snippet"]["function"] == UNSCALE
        assert [probe["size"] for probe in one["probes"]] == [16, 64, 256]
    reason = by_code["TPF203"]["reason"]
    assert "9.00 dispatches and 3.00 host reads per element" in reason
    assert "2,880,073 dispatches at 320,008 elements" in reason


def test_the_report_has_the_documented_keys_and_no_others(capsys):
    _, report = confirm(capsys, f"{SCALER / 'before.py'}:33")
    assert set(report) == {"version", "torch", "device", "findings"}
    (finding,) = report["findings"]
    assert set(finding) == {
        "path", "line", "column", "code", "message", "verdict", "reason", "snippet", "probes",
        "per_call", "per_element", "projected",
    }  # fmt: skip
    assert set(finding["snippet"]) == {"function", "first_line", "last_line"}
    assert set(finding["per_call"]) == set(finding["per_element"]) == set(COUNTERS)
    assert set(finding["probes"][0]) == {"size", "seconds", "lines", *COUNTERS}
    assert finding["projected"]["size"] == 256_000


def test_one_read_per_parameter_is_confirmed(capsys):
    _, report = confirm(capsys, f"{CLIP / 'before.py'}:27")
    (finding,) = report["findings"]
    assert finding["verdict"] == "confirmed"
    assert finding["per_element"]["host_reads"] == 1.0


@pytest.mark.parametrize("folder", [SCALER, CLIP], ids=lambda folder: folder.name)
def test_there_is_nothing_to_confirm_after_the_fix(capsys, folder):
    assert main(["confirm", str(folder / "after.py"), "--fail-on", "confirmed"]) == 0
    assert capsys.readouterr().out == "nothing to confirm\n"


def test_fail_on(capsys):
    line = f"{SCALER / 'before.py'}:27"
    assert main(["confirm", line, "--fail-on", "confirmed"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{SCALER / 'before.py'}:27:21: TPF203 confirmed: ")
    assert out[-1] == "1 confirmed, 0 refuted, 0 inconclusive"


def test_inputs_and_harness_by_hand(capsys, tmp_path):
    line = f"{SCALER / 'before.py'}:33"
    given = "grads=[torch.randn(n), torch.randn(n)], inv_scale=torch.tensor([0.5])"
    _, report = confirm(capsys, line, "--inputs", given)
    found = report["findings"][0]["per_element"]
    assert found == per_element(dispatches=18.0, host_reads=6.0)
    harness = tmp_path / "harness.py"
    harness.write_text(
        "import torch\n\n\ndef inputs(n):\n"
        "    return dict(grads=[torch.ones(n)], found_inf=torch.zeros(1), inv_scale=torch.ones(1))\n"
    )
    _, report = confirm(capsys, line, "--harness", harness, "--sizes", "4,8,12", "--project", 100)
    assert [probe["size"] for probe in report["findings"][0]["probes"]] == [4, 8, 12]
    projected = report["findings"][0]["projected"]
    assert projected == {"size": 100, **per_element(dispatches=901, host_reads=300)}


METHODS = """\
import torch


class Gate:
    def __init__(self, settings):
        self.on = settings.mode.on

    def step(self, x: torch.Tensor):
        if self.on == 7:
            return x.sum().item()
"""


def test_the_object_of_a_method_by_hand(capsys, tmp_path):
    (tmp_path / "gate.py").write_text(METHODS)
    line = f"{tmp_path / 'gate.py'}:10"
    _, report = confirm(capsys, line)
    (finding,) = report["findings"]
    assert finding["verdict"] == "inconclusive"
    assert finding["reason"].endswith(
        'its object was guessed, give one with --inputs "self=Gate(...)"'
    )
    made = "__import__('types').SimpleNamespace(mode=__import__('types').SimpleNamespace(on=7))"
    given = f"self=Gate({made}), x=torch.from_numpy(np.ones(n) + numpy.zeros(n))"
    _, report = confirm(capsys, line, "--inputs", given)
    (finding,) = report["findings"]
    assert finding["verdict"] == "confirmed", finding["reason"]
    # What a person gave is not called guessed.
    _, report = confirm(capsys, line, "--inputs", "self=Gate.__new__(Gate)")
    (finding,) = report["findings"]
    assert finding["verdict"] == "inconclusive"
    assert "AttributeError" in finding["reason"]
    assert "guessed" not in finding["reason"]


def test_inputs_that_raise_are_named(capsys):
    line = f"{SCALER / 'before.py'}:33"
    _, report = confirm(capsys, line, "--inputs", "grads=[torch.randm(n)]")
    (finding,) = report["findings"]
    assert finding["verdict"] == "inconclusive"
    assert "inputs could not be made" in finding["reason"]
    assert "torch.randm" in finding["reason"]
    assert finding["probes"] == []


def test_a_harness_that_raises_is_named(capsys, tmp_path):
    harness = tmp_path / "harness.py"
    harness.write_text("def inputs():\n    return {}\n")
    _, report = confirm(capsys, f"{SCALER / 'before.py'}:33", "--harness", harness)
    (finding,) = report["findings"]
    assert finding["verdict"] == "inconclusive"
    assert f"in {harness} raised TypeError: inputs() takes 0 positional" in finding["reason"]


def test_a_loop_over_rows_grows_with_them(verdicts):
    found = verdicts["per element"]
    assert found.status == "confirmed"
    assert found.laws["dispatches"].per_element == 1


def test_an_expression_behind_a_switch_is_reached(verdicts):
    assert verdicts["only where the search turns strict on"].status == "confirmed"


def test_a_line_that_never_runs_is_inconclusive(verdicts):
    found = verdicts["never"]
    assert (found.status, found.reason[:11]) == ("inconclusive", "not reached")


@pytest.mark.parametrize("comment", ["method", "without init", "context", "coroutine", "nested"])
def test_methods_contexts_coroutines_and_closures_are_run(verdicts, comment):
    found = verdicts[comment]
    assert found.status == "confirmed", found.reason


# What cannot be run, or not in full.
READ = "    return x.sum().item()\n"


def test_a_module_that_raises_on_import_is_said_and_the_function_cut_out(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "cut.py").write_text(
        "import torch\n\nLIMIT = 2.0\nraise RuntimeError('no accelerator here')\n\n\n"
        f"def f(x: torch.Tensor) -> float:\n    x = x * LIMIT\n{READ}"
    )
    (tmp_path / "lost.py").write_text(
        "import torch\n\nraise RuntimeError('no accelerator here')\n\n\n"
        f"@missing\ndef f(x: torch.Tensor) -> float:\n{READ}"
    )
    monkeypatch.chdir(tmp_path)
    main(["confirm", "cut.py", "lost.py", "--json"])
    cut, lost = json.loads(capsys.readouterr().out)["findings"]
    assert cut["verdict"] == "confirmed"
    assert "RuntimeError: no accelerator here" in cut["reason"]
    assert lost["verdict"] == "inconclusive"
    assert lost["reason"].startswith("import failed: RuntimeError: no accelerator here; f alone: ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cut.py", "lost.py"]


def test_a_parameter_that_cannot_be_made_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "odd.py").write_text(
        "import torch\n\n\ndef f(x: torch.Tensor, plan) -> float:\n"
        f'    plan["a"].steps[3].run(x, mode=plan.mode)\n{READ}'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["confirm", "odd.py"]) == 0
    told = capsys.readouterr().out
    assert "inconclusive: inputs could not be made: `plan`" in told
    assert '--inputs "plan=..."' in told


def test_a_file_that_cannot_be_linted_costs_none_of_its_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "one.py").write_text(f"import torch\n\n\ndef f(x: torch.Tensor) -> float:\n{READ}")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "codec.py").write_text("# -*- coding: klingon -*-\n")
    monkeypatch.chdir(tmp_path)
    assert main(["confirm", ".", "one.py", "./one.py"]) == 0
    captured = capsys.readouterr()
    assert captured.out.endswith("1 confirmed, 0 refuted, 0 inconclusive\n")
    broken, codec, *_ = captured.err.splitlines()
    assert broken == "torchperf: passed over: broken.py:1 cannot be parsed: invalid syntax"
    assert codec.startswith("torchperf: passed over: codec.py cannot be read: unknown encoding")
