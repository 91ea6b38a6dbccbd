"""``torchperf.recording`` and ``%%torchperf``: part of a program is recorded as a whole one is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_run import python
from flake8_run import Run

torch = pytest.importorskip("torch")
testing = pytest.importorskip("IPython.testing.globalipapp")

import torchperf  # noqa: E402
from flake8_torchperf.history.profile import read  # noqa: E402

JOB = """\
import torch
import torchperf


def read(x):
    return x.sum().item()


def main(x):
    read(x)
    with torchperf.recording("part.json", json="report.json") as seen:
        total = 0
        for _ in range(3):
            total += read(x)
        if total > 100:
            print("large")
    read(x)
    print(seen.report["totals"]["host_reads"], len(seen.text.splitlines()) > 2)


main(torch.ones(4))
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(JOB)
    done = python("job.py", cwd=folder)
    assert done.status == 0, done.errors
    return folder, done


def test_only_the_region_counts(job: tuple[Path, Run]) -> None:
    folder, done = job
    assert done.output == "3 True\n"
    report = json.loads((folder / "report.json").read_text())
    (read_of_sum,) = report["confirmed"]
    assert read_of_sum["line"] == 6
    assert report["totals"]["host_reads"] == 3


def test_it_tells_what_a_run_tells(job: tuple[Path, Run]) -> None:
    _, done = job
    assert "job.py:6:12: TPF101 `x.sum().item()` waits" in done.errors
    assert "torchperf run: 1 confirmed, 0 refuted" in done.errors
    assert "torchperf: part.json: 6 statements in 1 file, 1 of them waited" in done.errors


def test_a_profile_holds_the_lines_of_the_region(
    job: tuple[Path, Run],
) -> None:
    folder, _ = job
    entries = read(folder / "part.json").files["job.py"]
    ran = {one.line: (one.times, one.waits) for one in entries}
    # The lines of `main` before and after the region, and the branch not taken, are missing.
    assert ran == {6: (3, 3), 11: (1, 0), 12: (1, 0), 13: (3, 0), 14: (3, 0), 15: (1, 0)}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a region owns the code in the current folder, this repository is not it."""
    monkeypatch.chdir(tmp_path)


# Regions stand in files of their own: to lint this one, and what it calls, takes seconds.
RAISES = """\
import torch
import torchperf


def region(report):
    with torchperf.recording(json=report, owners=[__file__], report=False):
        torch.ones(3, device=torch.device("cpu")).sum().item()
        raise ZeroDivisionError
"""
THREADED = """\
import threading
import torch
import torchperf


def work():
    torch.ones(3, device=torch.device("cpu")).sum().item()


def region():
    with torchperf.recording(owners=[__file__], report=False) as seen:
        assert seen.text == ""
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    return seen
"""
LEAVES_NOTHING = """\
import sys
import torchperf


def region():
    trace = sys.gettrace()
    with torchperf.recording(report=False):
        pass
    return sys.gettrace() is trace, sys._getframe().f_trace is None or trace is not None
"""


def region_in(folder: Path, source: str) -> Callable[..., Any]:
    """Return the function of a file that has this text."""
    path = folder / "region.py"
    path.write_text(source)
    names: dict[str, Any] = {"__file__": str(path), "__name__": "region"}
    exec(compile(source, str(path), "exec"), names)
    region: Callable[..., Any] = names["region"]
    return region


def test_a_region_that_raises_is_told_all_the_same(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    region = region_in(tmp_path, RAISES)
    with pytest.raises(ZeroDivisionError):
        region(report)
    data = json.loads(report.read_text())
    assert data["ended"] == "ZeroDivisionError"
    assert data["totals"]["host_reads"] == 1


def test_threads_of_the_region_count(tmp_path: Path) -> None:
    seen = region_in(tmp_path, THREADED)()
    assert seen.report["totals"]["host_reads"] == 1


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    region = region_in(tmp_path, LEAVES_NOTHING)
    trace = sys.gettrace()
    assert region() == (True, True)
    assert sys.gettrace() is trace
    assert sys._getframe().f_trace is None or trace is not None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"profile": "nowhere/part.json"}, "recording: profile: "),
        ({"json": "nowhere/part.json"}, "recording: json: "),
        ({"owners": ["no_such_package"]}, "recording: --owner: no_such_package is no file"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_recorded_is_told_before(given: dict[str, Any], problem: str) -> None:
    with (
        pytest.raises(torchperf.RecordingError, match=problem),
        torchperf.recording(**given, report=False),
    ):
        raise AssertionError("the region must not begin")


def test_regions_do_not_nest() -> None:
    with (
        torchperf.recording(report=False),
        pytest.raises(torchperf.RecordingError, match="another region is being recorded"),
        torchperf.recording(),
    ):
        raise AssertionError("the region must not begin")


# In IPython.

CELL = """\
total = 0.0
for row in x:
    total += row.item()
total
"""


@pytest.fixture(scope="module")
def shell() -> Any:
    shell = testing.start_ipython() or testing.get_ipython()
    shell.run_line_magic("load_ext", "torchperf")
    shell.ex("import torch\nx = torch.ones(4)")
    return shell


def test_a_cell_is_recorded(shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell_magic("torchperf", "cell.json --json report.json", CELL) == 4.0
    assert shell.user_ns["total"] == 4.0
    told = capsys.readouterr().err
    assert "total += row.item()" in told
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["totals"]["host_reads"] == 4
    (path,) = read(tmp_path / "cell.json").files
    assert path.endswith(f"cell_{shell.execution_count}.py")


def test_a_mistake_in_a_cell_is_the_cells_own(shell: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("torchperf", "", "1 / 0\n")
    with pytest.raises(SyntaxError):
        shell.run_cell_magic("torchperf", "", "1 +\n")


def test_unknown_options_of_the_magic_are_one_line(shell: Any) -> None:
    with pytest.raises(torchperf.RecordingError, match="%%torchperf: argument --level: invalid"):
        shell.run_cell_magic("torchperf", "--level some", "1\n")
    with pytest.raises(torchperf.RecordingError, match="unrecognized arguments: --no-such"):
        shell.run_cell_magic("torchperf", "--no-such", "1\n")


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, torchperf; assert 'torch' not in sys.modules; print(torchperf.recording)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "function recording" in done.stdout
