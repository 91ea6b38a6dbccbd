"""Profiles while running: how often statements ran and waited is what a person would count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from check_run import check, python, torchperf

torch = pytest.importorskip("torch")

from flake8_torchperf.history.profile import Profile, ProfileEntry, read  # noqa: E402
from flake8_torchperf.runtime import DispatchCounter  # noqa: E402
from flake8_torchperf.runtime.counting import cuda_syncs  # noqa: E402
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow  # noqa: E402
from flake8_torchperf.runtime.workload.profiling import profile_of  # noqa: E402

PROJECT = Path(__file__).resolve().parents[3] / "docs" / "training_project"
TRUTH = json.loads((PROJECT / "truth.json").read_text())["mistakes"]


def record(folder: Path, *command: str, level: str = "reads") -> Profile:
    """What ``torchperf run`` saves for a command in this folder."""
    path = folder / "profile.json"
    run = torchperf("run", "--level", level, "--save-profile", path, *command, cwd=folder)
    assert run.status == 0, run.errors
    assert f"{path}: " in run.errors
    read.cache_clear()
    return read(path)


# Each statement ends with how often it runs and waits.
COUNTED = """\
import torch  # 1 0
from torch import nn  # 1 0

def over_lines(x, n):  # 1 0
    made = torch.add(  # 3 3
        x,
        n,
    ).sum(
    ).item(
    )
    return (made  # 3 0
            if n > 1
            else -made)

def loops(x):  # 1 0
    total = 0  # 2 0
    for row in x:  # 8 0
        total += row.sum().item()  # 8 8
        if total < 0:  # 8 0
            continue  # 0 0
        try:  # 8 0
            total + ""  # 8 0
        except TypeError:  # 8 0
            total += 1  # 8 0
        finally:
            total -= 1  # 8 0
    while (x > 0).any():  # 4 4
        x = x - 1  # 2 0
    return [value.item() for value in x[0]]  # 2 4

def rows(x):  # 1 0
    for row in x:  # 4 0
        yield row  # 4 0

x = torch.ones(4, 2, device=torch.device("cpu"))  # 1 0
for n in range(3):  # 3 0
    over_lines(x, n)  # 3 0
loops(x); loops(x + 1 - 1)
kept = list(map(lambda row: row.sum().item(), rows(x)))  # 4 4
if torch.is_grad_enabled():  # 1 0
    first = x[x > 0]  # 1 1
"""


def test_statements_are_counted_as_a_person_would(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(COUNTED)
    entries = {entry.line: entry for entry in record(tmp_path, "work.py").files["work.py"]}
    wanted, got = {}, {}
    for number, line in enumerate(COUNTED.splitlines(), 1):
        times, _, waits = line.rpartition("# ")[2].partition(" ")
        if times.isdigit():
            wanted[number] = (int(times), int(waits))
            entry = entries.get(number)
            got[number] = (0, 0) if entry is None else (entry.times, entry.waits)
    assert got == wanted


def test_the_training_project_costs_what_was_worked_out_by_hand(trained: Profile) -> None:
    entries = {
        (name, entry.line): entry for name, listed in trained.files.items() for entry in listed
    }
    got, wanted = {}, {}
    for mistake in TRUTH:
        if mistake["ran"] is not None:
            place = (mistake["file"], mistake["line"])
            entry = entries.get(place)
            got[place] = (0, 0) if entry is None else (entry.times, entry.waits)
            wanted[place] = (mistake["ran"], mistake["waits"])
    assert got == wanted
    assert trained.devices == ("cpu",)
    assert all(entry.seconds is entry.operations is None for entry in entries.values())


@pytest.fixture(scope="module")
def project(trained_project: Path) -> Path:
    read.cache_clear()
    return trained_project


@pytest.fixture(scope="module")
def profiled(project: Path) -> list[tuple[str, int]]:
    """What is reported with the profile of the run."""
    return places(check("--profile", "profile.json", ".", cwd=project).results)


@pytest.fixture
def trained(project: Path) -> Profile:
    return read(project / "profile.json")


def test_truth_names_the_lines_that_there_are() -> None:
    for mistake in TRUTH:
        line = (PROJECT / mistake["file"]).read_text().splitlines()[mistake["line"] - 1]
        assert line.strip() == mistake["text"]
    assert len(TRUTH) >= 50
    assert len(list(PROJECT.glob("*.py"))) == 8


def places(rows: Any) -> list[tuple[str, int]]:
    """Files and lines in the order of the report, each once."""
    return list(dict.fromkeys((Path(row.path).name, row.line) for row in rows))


def test_the_dearest_lines_of_the_project_are_told_first(profiled: list[tuple[str, int]]) -> None:
    reported = profiled
    counted = [one for one in TRUTH if one["waits"]]
    dearest = sorted(counted, key=lambda one: -one["waits"])
    assert dearest[9]["waits"] > dearest[10]["waits"], "the ten dearest lines are no ten"
    assert set(reported[:10]) == {(one["file"], one["line"]) for one in dearest[:10]}
    by_place = {(one["file"], one["line"]): one["waits"] for one in TRUTH}
    waits = [by_place[place] for place in reported[:10]]
    assert waits == sorted(waits, reverse=True)


def test_a_profile_settles_what_runs_once_and_what_runs_often(
    project: Path, profiled: list[tuple[str, int]]
) -> None:
    before = set(places(check(".", cwd=project).results))
    after = set(profiled)
    everything = set(places(check("--torchperf-scope=all", ".", cwd=project).results))
    truth = {(one["file"], one["line"]): one for one in TRUTH}
    assert everything == set(truth)
    for place, one in truth.items():
        if one["ran"] is None:
            continue  # how often it runs depends on the losses
        if not one["ran"] or "only a device shows" in one["why"]:
            assert (place in after) == (place in before), place
        elif one["waits"] == 0 and one["text"].startswith("for "):
            assert place in after  # a loop over elements, which is no wait
    gone, come = before - after, after - before
    assert gone == {place for place in before if truth[place]["ran"] == 1 or
                    (truth[place]["ran"] in (5, 48) and truth[place]["waits"] == 0
                     and not truth[place]["text"].startswith("for ")
                     and "only a device shows" not in truth[place]["why"])}  # fmt: skip
    assert gone
    assert come
    assert all(truth[place]["waits"] is None or truth[place]["waits"] > 1 for place in come)


# On CUDA, as a run on one observed it.


def test_what_cuda_reported_is_taken_with_its_time(tmp_path: Path) -> None:
    path = tmp_path / "step.py"
    path.write_text(
        "import torch\n\n\ndef step(x, ids):\n    x[ids] = 1.0\n"
        "    rows = torch.unique(x, dim=0)\n    return x.sum().item()\n"
    )

    def line(number: int, **counts: float) -> dict[str, Any]:
        return {"path": str(path), "line": number, "counts": counts, "events": {}}

    observed = Observed(
        torch="2.13.0", device="cuda:0", level="full", seconds=1.0,
        totals={"host_reads": 3, "device_syncs": 3},
        lines=(
            line(5, dispatches=3), line(6, dispatches=3, dynamic_shapes=3),
            line(7, dispatches=6, host_reads=3, device_syncs=3, waited=0.25),
        ),
        executed={str(path): frozenset({5, 6, 7})},
        syncs=(SyncRow(str(path), 5, "copy", "host-index", "__setitem__", 3, 8),
               SyncRow(str(path), 6, "sync", "unique", "unique", 3, 8)),
        metrics="", ended="returned", times={str(path): (((5, 3), (6, 3), (7, 3)),)},
    )  # fmt: skip
    written, unique, read_ = profile_of(observed, str(tmp_path)).files["step.py"]
    told = [(one.times, one.waits, one.seconds, one.operations) for one in (written, unique, read_)]
    # The debug mode does not report torch.unique(dim=...), so nothing of the device's is known.
    assert told == [(3, 0, 0.0, 3), (3, 3, None, 3), (3, 3, 0.25, 6)]


def test_waits_that_cuda_reports_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "the stream")
    modes = [0]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(
        torch.cuda, "set_sync_debug_mode", lambda mode: modes.append(int(mode == "warn" or mode))
    )
    clock = iter(range(0, 10**12, 2_000_000))
    monkeypatch.setattr(cuda_syncs, "perf_counter_ns", lambda: next(clock))
    waited: list[tuple[Any, int]] = []

    class Stream:
        @staticmethod
        def synchronize(stream: Any) -> None:
            waited.append((stream, modes[-1]))

    monkeypatch.setattr(torch._C, "_CudaStreamBase", Stream, raising=False)
    with DispatchCounter("reads", owner=[__file__]) as counter:
        counter.time_waits()
        for _ in range(3):
            warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
    totals = counter.evidence.totals
    assert (totals.device_syncs, totals.waited) == (3, 0.006)
    # The stream was waited for with its own report switched off, and on again.
    assert waited == [("the stream", 0)] * 3
    assert modes[-1] == 0


# pytest.

TESTS = """\
import pytest
import torch


def step(x: torch.Tensor) -> float:
    total = 0.0
    for row in x:
        total += row.sum().item()
    return total


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_step(n):
    assert step(torch.ones(n, 2)) == 2 * n
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n2",), marks=pytest.mark.thorough)])
def test_a_test_run_is_recorded(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_step.py").write_text(TESTS)
    name = "recorded.json"
    options = ("-q", "-p", "no:cacheprovider", f"--torchperf-profile-save={name}")
    run = python("-m", "pytest", *workers, *options, cwd=tmp_path)
    assert run.status == 0, run.output
    profile = read(tmp_path / name)
    counts = {entry.text: (entry.times, entry.waits) for entry in profile.files["test_step.py"]}
    assert counts["total += row.sum().item()"] == (6, 6)
    assert counts["total = 0.0"] == (4, 0)
    assert profile.runs == max(len(workers) * 2, 1)
    assert [path.name for path in tmp_path.glob("*.json")] == [name]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("test_step.py", "holds something else"),
        pytest.param("no/p.json", "no folder", marks=pytest.mark.thorough),
    ],
)
def test_a_test_run_never_overwrites_something_else(
    tmp_path: Path, name: str, problem: str
) -> None:
    test = tmp_path / "test_step.py"
    test.write_text(TESTS)
    run = python("-m", "pytest", "-q", f"--torchperf-profile-save={name}", cwd=tmp_path)
    assert run.status != 0
    assert problem in run.output + run.errors
    assert test.read_text() == TESTS


def test_run_refuses_a_place_before_it_starts(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("print('started')\n")
    for name, problem in (("work.py", "holds something else"), ("no/p.json", "no folder")):
        run = torchperf("run", "--save-profile", name, "work.py", cwd=tmp_path)
        assert (run.status, run.output) == (2, "")
        assert problem in run.errors


def test_a_rank_writes_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work.py").write_text("x = 1\n")
    monkeypatch.setenv("RANK", "3")
    run = torchperf("run", "--save-profile", "p{rank}.json", "work.py", cwd=tmp_path)
    assert run.status == 0, run.errors
    assert (tmp_path / "p3.json").exists()


def counts_of(profile: Profile, name: str) -> Mapping[str, ProfileEntry]:
    return {entry.text: entry for entry in profile.files[name]}


def test_the_full_level_tells_the_operations(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import torch\nx = torch.ones(3)\nfor _ in range(5):\n    x = x + 1 - 1\n"
    )
    entries = counts_of(record(tmp_path, "work.py", level="full"), "work.py")
    assert entries["x = x + 1 - 1"].operations == 10
