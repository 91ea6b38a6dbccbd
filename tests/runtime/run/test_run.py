"""`torchperf run`: a workload's own behaviour is untouched, and its report says what it did."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import fork_server
import pytest
from check_run import without_devices
from hangs import HANG, limited_by_processor_time
from signals import hear_ctrl_c

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.runtime.workload import launch
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow
from flake8_torchperf.runtime.workload.matching import match_findings
from flake8_torchperf.runtime.workload.ownership import OwnerError, owner_of, owner_paths
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.watching.executed_lines import ExecutedLines
from flake8_torchperf.syntax.statement_lines import Statements

pytest.importorskip("torch")

# Without an optimizer: torch's own import torch._dynamo, which takes longer than all else here.
TRAINING = """\
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.out = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.hidden(images)))


def train(model, images, labels):
    total = 0.0
    for start in range(0, 256, 32):
        batch = slice(start, start + 32)
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        model.zero_grad()
        loss.backward()
        total += loss.item()
    return total


def check(loss: torch.Tensor, strict: bool = False) -> None:
    if strict and loss.isnan():
        raise ValueError(f"the loss is {loss.item()}")


def hidden(value, name):
    return getattr(value, name)()


images = torch.randn(256, 64)
labels = torch.randint(0, 10, (256,))
model = Net()
train(model, images, labels)
check(torch.zeros(()))
hidden(model(images).argmax(1).eq(labels).sum(), "item")
print("read", sys.stdin.readline().strip(), sys.argv[1:])
print("to stderr", file=sys.stderr)
"""


def torchperf(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it; ``forked`` says that nothing depends on how the child was started."""
    command = [sys.executable, "-m", "flake8_torchperf.cli.main", "run", *arguments]
    if options.pop("forked", False):
        given = options.pop("input", "").encode()
        shared = {**os.environ, **without_devices(), "PYTHONHASHSEED": "0"}
        done = fork_server.run(command, cwd=folder, env=shared, stdin=given, **options)
        told = [stream.decode("utf-8") for stream in (done.stdout, done.stderr)]
        return subprocess.CompletedProcess(command, done.returncode, *told)
    return subprocess.run(
        command,
        cwd=folder,
        env=options.pop("env", None) or environment(),
        capture_output=True,
        text=True,
        timeout=HANG,
        preexec_fn=options.pop("preexec_fn", limited_by_processor_time),
        **options,
    )


def environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])
    # The workloads compute on the host, which stands in for a device only where there is none.
    return {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("training")
    (folder / "train.py").write_text(TRAINING)
    options = ["--json", "run.json"]
    done = torchperf(folder, *options, "train.py", "--epochs", "1", input="a line\n", forked=True)
    assert done.returncode == 0, done.stderr
    return done, json.loads((folder / "run.json").read_text()), folder


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(TRAINING.splitlines(), 1) if text in line)


class TestReport:
    def test_a_finding_that_the_run_bears_out_is_confirmed_with_its_count(self, training):
        confirmed = training[1]["confirmed"]
        (total,) = [one for one in confirmed if one["line"] == line_of("total += loss.item()")]
        assert (total["code"], total["counter"], total["count"]) == ("TPF206", "host_reads", 8)
        assert total["seconds"] > 0

    def test_a_finding_in_a_line_that_ran_without_it_is_not_in_this_run(self, training):
        assert line_of("if strict and") in [one["line"] for one in training[1]["not_in_this_run"]]

    def test_a_finding_in_a_line_that_did_not_run_is_not_reached(self, training):
        assert [one["line"] for one in training[1]["not_reached"]] == [line_of("raise ValueError")]

    def test_a_line_that_synced_without_a_finding_is_missed(self, training):
        (missed,) = training[1]["missed"]
        assert missed["line"] == line_of("return getattr")
        assert missed["kinds"] == {"item": 1}

    def test_the_text_names_each_group_and_ends_with_the_sum(self, training):
        report = training[0].stderr
        for title in ("confirmed:", "not in this run:", "not reached:", "missed on the device:"):
            assert title in report
        assert (
            "torchperf run: 1 confirmed, 0 refuted, 1 not in this run, 1 not reached"
            in report.splitlines()[-1]
        )

    @pytest.mark.thorough
    def test_where_only_reads_are_counted_no_time_is_told(self, tmp_path):
        (tmp_path / "train.py").write_text(TRAINING)
        told = torchperf(
            tmp_path, "--level", "reads", "train.py", input="a line\n", forked=True
        ).stderr
        assert "[8 host reads]" in told
        assert "ms in operations" not in told

    @pytest.mark.parametrize(
        "words", [["broken.py"], pytest.param(["-m", "no_such_module"], marks=pytest.mark.slow)]
    )
    def test_a_program_that_never_started_has_no_report(self, tmp_path, words):
        (tmp_path / "broken.py").write_text("def f(:\n")
        done = torchperf(tmp_path, "--json", "run.json", *words, forked=True)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"torchperf: {words[-1]} never started: there is no report"
        )
        assert not (tmp_path / "run.json").exists()

    def test_lines_that_wait_on_the_host_are_told_apart_from_those_on_the_device(self, tmp_path):
        (tmp_path / "s.py").write_text(
            "import torch\n\n\ndef hidden(value, name):\n    return getattr(value, name)()\n\n\n"
            "def mine(name):\n    return getattr(torch.tensor(3.0), name)()\n\n\n"
            "hidden(torch.nn.Linear(1, 1).weight.sum(), 'item')\nmine('item')\n"
        )
        done = torchperf(tmp_path, "--json", "run.json", "s.py", forked=True)
        data = json.loads((tmp_path / "run.json").read_text())
        assert [one["line"] for one in data["missed"]] == [5]
        assert [one["line"] for one in data["missed_on_host"]] == [9]
        assert "missed on the host: " in done.stderr
        assert "1 missed, 1 missed on the host" in done.stderr.splitlines()[-1]

    def test_json_has_every_field(self, training):
        data = training[1]
        assert set(data) == {
            "torchperf-run", "version", "torch", "device", "level", "command", "exit_status", "ended", "seconds",
            "totals", "ranks", "data_workers", "notes", "confirmed", "refuted", "not_reached", "not_in_this_run",
            "undecided", "missed", "missed_on_host", "inside_calls", "looks_asynchronous", "allowed",
            "steps", "files", "metrics",
        }  # fmt: skip
        assert data["command"] == ["train.py", "--epochs", "1"]
        assert data["totals"]["host_reads"] == 9
        (file,) = data["files"]
        assert file["path"] == "train.py"
        assert file["lines"][str(line_of("loss.backward()"))]["dispatches"] > 8
        fields = {"path", "line", "column", "code", "message", "statement", "counter", "count"}
        assert set(data["confirmed"][0]) == fields | {
            "seconds",
            "waited",
            "reason",
            "ranks",
            "callers",
        }


class TestPassingThrough:
    def test_stdin_arguments_and_stdout_are_the_workloads_own(self, training):
        assert training[0].stdout == "read a line ['--epochs', '1']\n"
        assert training[0].stderr.startswith("to stderr\n")

    @pytest.mark.parametrize(
        ("ending", "status", "forked"),
        [("sys.exit(3)", 3, False), ("sys.exit('said')", 1, True), ("1 / 0", 1, True)],
    )
    def test_exit_status(self, tmp_path, ending, status, forked):
        (tmp_path / "leave.py").write_text(f"import sys\n{ending}\n")
        done = torchperf(tmp_path, "--json", "run.json", "leave.py", forked=forked)
        assert done.returncode == status
        assert json.loads((tmp_path / "run.json").read_text())["exit_status"] == status

    def test_a_traceback_begins_at_the_workload(self, tmp_path):
        (tmp_path / "raise.py").write_text("def f():\n    raise ValueError('mine')\nf()\n")
        report = torchperf(tmp_path, "raise.py", forked=True).stderr
        assert report.splitlines()[1].endswith('raise.py", line 3, in <module>')
        assert "ValueError: mine" in report
        assert "workload" not in report

    @pytest.mark.parametrize(
        "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
    )
    def test_a_signal_ends_the_workload_and_the_report_is_written(self, tmp_path, number):
        script = """\
            import time, torch
            torch.nn.Parameter(torch.ones(3)).sum().item()
            print("ready", flush=True)
            time.sleep(9000)
        """
        (tmp_path / "wait.py").write_text(dedent(script))
        command = [sys.executable, "-m", "flake8_torchperf.cli.main", "run"]
        command += ["--json", "run.json", "wait.py"]
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(),
            stdout=-1,
            stderr=-1,
            text=True,
            preexec_fn=hear_ctrl_c,
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            child.send_signal(number)
            _, errors = child.communicate(timeout=HANG)
        assert child.returncode == -number, errors
        data = json.loads((tmp_path / "run.json").read_text())
        assert data["ended"] == {2: "KeyboardInterrupt", 15: "SIGTERM"}[number]
        assert data["totals"]["host_reads"] == 1

    def test_the_script_is_main_with_its_folder_on_the_path(self, tmp_path):
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "helper.py").write_text("def f():\n    return 'helped'\n")
        script = (
            "import helper, sys\nprint(__name__, helper.f(), sys.modules['__main__'].__file__)\n"
        )
        (tmp_path / "sub" / "s.py").write_text(script)
        done = torchperf(tmp_path, "--json", "run.json", "sub/s.py", forked=True)
        assert done.stdout == "__main__ helped sub/s.py\n"
        files = json.loads((tmp_path / "run.json").read_text())["files"]
        # The script itself only imported: nothing in it was called and nothing dispatched.
        assert [one["path"] for one in files] == ["sub/helper.py"]

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH came with Python 3.11")
    @pytest.mark.parametrize(
        "workload", [["s.py"], pytest.param(["-m", "module"], marks=pytest.mark.slow)]
    )
    def test_imports_are_looked_for_where_python_would_under_safe_path(self, tmp_path, workload):
        (tmp_path / "first").mkdir()
        (tmp_path / "lib").mkdir()
        for name in ("s.py", "lib/module.py"):
            (tmp_path / name).write_text("import sys\nprint(sys.path)\n")
        folders = [str(tmp_path / "first"), str(tmp_path / "lib"), environment()["PYTHONPATH"]]
        safe = {**environment(), "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(folders)}
        alone = subprocess.run(
            [sys.executable, *workload], cwd=tmp_path, env=safe, capture_output=True, text=True
        )
        assert torchperf(tmp_path, *workload, env=safe).stdout == alone.stdout != ""


class TestPytest:
    def test_a_test_file_is_a_workload(self, tmp_path):
        (tmp_path / "library.py").write_text(
            "import torch\n\n\ndef positive(x: torch.Tensor):\n    return x[x > 0]\n"
        )
        (tmp_path / "test_library.py").write_text(
            "import torch\nfrom library import positive\n\n\n"
            "def test_positive():\n    assert positive(torch.ones(3)).shape == (3,)\n\n\n"
            "def test_fails():\n    assert False\n"
        )
        options = ["--owner", "library.py", "--json", "run.json", "-m", "pytest", "-q"]
        options += ["-p", "no:asyncio", "-p", "no:lsp"]  # each warns of a setting of its own
        done = torchperf(tmp_path, *options, "-W", "error", "test_library.py", forked=True)
        assert done.returncode == 1
        assert "1 failed, 1 passed" in done.stdout
        data = json.loads((tmp_path / "run.json").read_text())
        assert [one["path"] for one in data["files"]] == ["library.py"]
        assert data["totals"]["dynamic_shapes"] == 1
        found = [*data["missed"], *data["confirmed"]]
        assert [one["line"] for one in found] == [5]


class TestMistakes:
    @pytest.mark.slow
    def test_a_report_that_cannot_be_written_costs_none_of_the_others(self, tmp_path):
        """The workload itself puts a folder where a report was to go."""
        (tmp_path / "s.py").write_text("import os\nfor one in 'ah':\n    os.mkdir(one)\n")
        options = ["--json", "r.json", "--html", "h", "--output", "a"]
        done = torchperf(tmp_path, *options, "s.py", forked=True)
        assert done.returncode == 2
        html, output, *report = done.stderr.splitlines()
        assert html == "torchperf: run: --html: h cannot be written: Is a directory"
        assert output == "torchperf: run: --output: a cannot be written: Is a directory"
        assert report[-1].startswith("torchperf run: 0 confirmed, ")
        assert json.loads((tmp_path / "r.json").read_text())["exit_status"] == 0

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a path is UTF-8")
    @pytest.mark.slow
    def test_a_path_that_is_not_utf_8_is_escaped_in_every_report(self, tmp_path):
        script = os.fsdecode(b"caf\xe9.py")
        (tmp_path / script).write_text(
            "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.sum().item()\n\n\n"
            "f(torch.ones(3))\n"
        )
        done = torchperf(tmp_path, "--html", "run.html", "--output", "run.txt", script, forked=True)
        assert (done.returncode, done.stderr) == (0, "")
        for report in ("run.html", "run.txt"):
            assert "caf\\udce9.py" in (tmp_path / report).read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["nowhere.py"], "there is no script nowhere.py"),
            (["."], "is a folder"),
            ([], "name a script, or a module after -m"),
            (["--owner", "no_such_package", "s.py"], "no file, folder or installed package"),
            (["--json", "no/where/r.json", "s.py"], "--json: there is no folder"),
            (["--html", ".", "s.py"], "--html: . is a folder; name a file"),
        ],
    )
    def test_one_line_and_exit_status_2(self, tmp_path, arguments, problem):
        (tmp_path / "s.py").write_text("")
        done = torchperf(tmp_path, *arguments, forked=True)
        assert done.returncode == 2
        assert problem in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_without_torch_one_line_says_what_to_install(self, tmp_path):
        (tmp_path / "s.py").write_text("")
        hide = "import sys; sys.modules['torch'] = None; sys.path.insert(0, '.');"
        code = (
            "import importlib.util as u; real = u.find_spec\n"
            "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)\n"
            "from flake8_torchperf.cli.main import main\n"
            "raise SystemExit(main(['run', 's.py']))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", hide.split(";")[0] + "\n" + code],
            cwd=tmp_path, env=environment(), capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "pip install flake8-torchperf[confirm]" in done.stderr


class TestParts:
    def test_lines_that_ran_are_seen_once_known_and_in_functions(self, tmp_path):
        path = tmp_path / "ran.py"
        path.write_text("def f(x):\n    if x:\n        return 1\n    return 2\n\n\nf(0)\nf(0)\n")
        lines = ExecutedLines(lambda name: name == str(path))
        before = sys.gettrace()
        code = compile(path.read_text(), str(path), "exec")
        lines.start()
        exec(code, {})
        lines.stop()
        sys.settrace(before)
        assert lines.by_file == {str(path): {1, 2, 4, 7, 8}}

    def test_a_line_belongs_to_its_statement_or_header(self):
        source = dedent(
            """\
            @decorator(
                1)
            def f(a,
                  b=2):
                x = call(
                    a,
                )
                if (x and
                        b):
                    return x
            """
        )
        statements = Statements(source)
        spans = {line: statements.span(line) for line in range(1, 11)}
        assert spans == {
            1: (1, 2), 2: (1, 2), 3: (3, 4), 4: (3, 4), 5: (5, 7), 6: (5, 7), 7: (5, 7),
            8: (8, 9), 9: (8, 9), 10: (10, 10),
        }  # fmt: skip
        assert statements.conditional(9, 12)
        assert not statements.conditional(8, 8)

    def test_a_file_that_never_says_torch_is_linted_as_flake8_lints_it(self, tmp_path):
        (tmp_path / "library.py").write_text(
            "import torch\n\n\ndef loss(x: torch.Tensor) -> torch.Tensor:\n    return x.sum()\n"
        )
        script = tmp_path / "s.py"
        script.write_text(
            "from library import loss\n\n\ndef step(xs):\n    return [loss(x).item() for x in xs]\n"
        )
        (file,) = match_findings(MergedRun(
            Observed(
                torch="", device="cpu", level="full", seconds=0.0, totals={}, lines=(),
                executed={str(script): frozenset({1, 4, 5})}, syncs=(), metrics="", ended="",
            )
        ), Options(scope=Level.COLD))  # fmt: skip
        assert [(one.finding.code, one.verdict) for one in file.judged] == [
            ("TPF101", "not in this run")
        ]

    def test_a_read_behind_another_is_judged_and_not_missed(self, tmp_path):
        """flake8 reports a row of reads at its first; the run has a verdict on each of them."""
        script = tmp_path / "s.py"
        script.write_text(
            "import torch\n\n\ndef train_step(x: torch.Tensor):\n"
            "    a = x.item()\n    b = x.item()\n    return a, b\n"
        )
        assert len({f.row for f in lint(script.read_text(), str(script), Options())}) == 1
        path = str(script)
        (file,) = match_findings(MergedRun(
            Observed(
                torch="", device="cpu", level="full", seconds=0.0, totals={},
                lines=[
                    {"path": path, "line": n, "counts": {"host_reads": 1, "transfers": n - 5}}
                    for n in (5, 6)
                ],
                executed={path: frozenset({1, 4, 5, 6, 7})},
                syncs=[SyncRow(path, n, "sync", "item", "item", 1, 1) for n in (5, 6)],
                metrics="", ended="",
            )
        ), Options(scope=Level.COLD))  # fmt: skip
        assert [(one.finding.line, one.verdict) for one in file.judged] == [
            (5, "confirmed"), (6, "confirmed"),
        ]  # fmt: skip
        assert file.missed == ()

    @pytest.mark.parametrize(("system", "sent"), [("posix", [signal.SIGINT]), ("nt", [])])
    def test_ctrl_c_is_left_to_the_console_of_windows(self, monkeypatch, system, sent):
        signals = []

        class Child:
            def __init__(self, command: list[str]) -> None:
                self.send_signal = signals.append

            def wait(self) -> int:
                signal.raise_signal(signal.SIGINT)
                return 0

        monkeypatch.setattr(launch, "subprocess", SimpleNamespace(Popen=Child))
        monkeypatch.setattr(launch, "os", SimpleNamespace(name=system))
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        assert launch._wait_with_handlers(["python"]) == 0
        assert signals == sent

    def test_owners_are_paths_or_packages_and_installed_ones_do_not_count_by_default(
        self, tmp_path
    ):
        (tmp_path / "venv" / "site-packages").mkdir(parents=True)
        mine, theirs = tmp_path / "a.py", tmp_path / "venv" / "site-packages" / "b.py"
        owns = owner_of((), [str(tmp_path)])
        assert owns(str(mine))
        assert not owns(str(theirs))
        assert owner_of([str(tmp_path)], ())(str(theirs))
        (folder,) = owner_paths("pytest")
        assert folder.name == "pytest"
        with pytest.raises(OwnerError, match="no file, folder or installed package"):
            owner_paths("no_such_package")
