"""Profiles while linting: what a recorded run measured decides heat, and nothing a person says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from check_run import check, torchperf
from flake8_run import flake8
from linting import ALL, HOT, LOOP

from flake8_torchperf.history.profile import (
    Profile,
    ProfileEntry,
    as_text,
    keyed,
    merge,
    parse,
    read,
)
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.syntax.statement_lines import Statements

SOURCE = """\
import torch
from torch import Tensor


def helper(x: Tensor) -> float:
    return x.sum().item()


class Engine(torch.nn.Module):
    def __init__(self, x: Tensor, label: str) -> None:
        self.text = f"{label} {x}"


def train(model: torch.nn.Module, loader, optimizer) -> float:
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if total > 10 and loss.isnan():
            break
        print(loss.item())
    return total
"""
READ, TEXT, TOTAL, TEST, PRINT = "x.sum()", 'f"{label}', "total +=", "if total", "print("


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


def line_of(text: str, source: str = SOURCE) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


def profile(told: dict[str, dict[str, Any]], source: str = SOURCE, **more: Any) -> Profile:
    """A profile of one file in which the statements with these texts did this, and no others ran."""
    entries = []
    for statement, (function, digest, nth) in keyed(Statements(source)):
        first = source.splitlines()[statement.span[0] - 1]
        for text, counts in told.items():
            if text in first:
                counted = {"runs": 1, "times": 1, "waits": 0, "text": first.strip(), **counts}
                place = {"line": statement.span[0], "function": function}
                entries.append(ProfileEntry(**place, digest=digest, nth=nth, **counted))
    assert len(entries) >= len(told)
    return Profile(**{"files": {"model.py": tuple(entries)}, **more})


def saved(folder: Path, told: Profile) -> Path:
    path = folder / "profile.json"
    path.write_text(as_text(told))
    read.cache_clear()
    return path


def found(file: Path, told: dict[str, dict[str, Any]], options: Options = HOT) -> list[str]:
    """Findings as "line: code message", with a profile."""
    path = saved(file.parent, profile(told))
    source = file.read_text()
    findings = lint(source, str(file), replace(options, profile=path))
    return [f"{one.line}: {one.code} {one.message}" for one in findings]


def lines(rows: list[str]) -> set[int]:
    return {int(row.partition(":")[0]) for row in rows}


MEASURED = {"times": 4204, "waits": 4204, "seconds": 3.1}
COUNTED = {"times": 4204, "waits": 4204}


def test_what_a_device_measured_is_told(file: Path) -> None:
    row = next(
        row for row in found(file, {TOTAL: MEASURED}) if row.startswith(f"{line_of(TOTAL)}:")
    )
    assert "(ran 4,204 times, waited 3.1 s)" in row
    assert len(row) <= 150


def test_counts_alone_tell_no_time(file: Path) -> None:
    rows = found(file, {TOTAL: COUNTED, READ: {"times": 7, "waits": 21}})
    assert any("(ran 4,204 times);" in row for row in rows)
    assert any("(ran 7 times, 21 waits)" in row for row in rows)


def test_what_ran_often_is_hot_whatever_was_inferred(file: Path) -> None:
    assert line_of(TEXT) not in lines(found(file, {TOTAL: COUNTED}))
    assert line_of(TEXT) in lines(found(file, {TEXT: COUNTED}))


@pytest.mark.parametrize(
    "told",
    [{"times": 1, "waits": 1}, {"times": 90, "waits": 0}, {"runs": 8, "times": 8, "waits": 8}],
)
def test_what_ran_once_or_never_waited_is_left_to_scope_all(
    file: Path, told: dict[str, int]
) -> None:
    before = lines(found(file, {READ: COUNTED}))
    assert line_of(READ) in before
    assert lines(found(file, {READ: told})) == before - {line_of(READ)}
    everything = found(file, {READ: told}, replace(ALL, explain=True))
    row = next(row for row in everything if row.startswith(f"{line_of(READ)}:"))
    assert "profile: " in row


def test_what_a_device_refutes_disappears_in_every_scope(file: Path) -> None:
    refuted = {"times": 90, "waits": 0, "seconds": 0.0}
    for scope in (LOOP, HOT, ALL):
        without = lint(SOURCE, str(file), scope)
        kept = {one.line for one in without} - {line_of(TOTAL)}
        assert lines(found(file, {TOTAL: refuted}, scope)) == kept


def test_a_loop_over_elements_is_no_wait_to_refute(file: Path) -> None:
    source = "import torch\n\n\ndef rows(x: torch.Tensor):\n    for row in x:\n        print(row.shape)\n"
    file.write_text(source)
    loop = {"times": 900, "waits": 0, "seconds": 0.0}
    path = saved(file.parent, profile({"for row": loop}, source))
    assert [one.line for one in lint(source, str(file), replace(HOT, profile=path))] == [5]


def test_what_did_not_run_keeps_its_inferred_heat(file: Path) -> None:
    plain = {one.line: one.message for one in lint(SOURCE, str(file), HOT)}
    with_profile = {
        int(row.partition(":")[0]): row.partition(" ")[2][7:]
        for row in found(file, {TOTAL: COUNTED})
    }
    assert with_profile.keys() == plain.keys()
    assert {line for line in plain if plain[line] != with_profile[line]} == {line_of(TOTAL)}


def test_what_a_person_says_is_stronger(file: Path) -> None:
    cold = replace(HOT, cold=("train",))
    assert line_of(TOTAL) not in lines(found(file, {TOTAL: COUNTED}, cold))
    hot = replace(HOT, hot=("train",))
    assert line_of(TOTAL) in lines(found(file, {TOTAL: {"times": 1, "waits": 1}}, hot))


def test_the_loops_scope_knows_what_stands_in_loops(file: Path) -> None:
    told = {TOTAL: COUNTED, READ: COUNTED}
    assert line_of(TOTAL) in lines(found(file, told, LOOP))
    assert line_of(READ) not in lines(found(file, told, LOOP))


EDITS = {
    "lines above": lambda text: "import os\n\n\n" + text,
    "another function": lambda text: text + "\n\ndef other(x):\n    return x\n",
    "another layout": lambda text: text.replace(
        "total += loss.item()", "total += (\n            loss.item()  # a number\n        )"
    ),
    "a statement above": lambda text: text.replace("        loss.back", "        y = y + 1\n        loss.back"),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_an_entry_survives_edits_elsewhere(file: Path, edit: str) -> None:
    text = EDITS[edit](SOURCE)
    assert text != SOURCE
    file.write_text(text)
    rows = found(file, {TOTAL: MEASURED})
    assert any("waited 3.1 s" in row for row in rows), rows


def test_another_statement_or_function_is_not_told_of(file: Path) -> None:
    for text in (
        SOURCE.replace("total += loss.item()", "total += 2 * loss.item()"),
        SOURCE.replace("def train(", "def fit("),
    ):
        file.write_text(text)
        rows = found(file, {TOTAL: MEASURED})
        assert not any("waited" in row for row in rows), rows


def test_statements_that_look_alike_are_told_apart(file: Path) -> None:
    twice = SOURCE.replace("        print(loss.item())\n", "        print(loss.item())\n" * 2)
    file.write_text(twice)
    (entry,) = profile({PRINT: MEASURED}).files["model.py"]
    second = replace(entry, nth=1, times=7, seconds=0.5)
    path = saved(file.parent, Profile({"model.py": (entry, second)}))
    told = [one.message for one in lint(twice, str(file), replace(ALL, profile=path))]
    assert [("waited 3.1 s" in one, "waited 500 ms" in one) for one in told if "waited" in one] == [
        (True, False),
        (False, True),
    ]


# Commands.


def test_check_sorts_by_cost_and_flake8_does_not(file: Path, tmp_path: Path) -> None:
    told = {
        TOTAL: {**MEASURED, "seconds": 1.0},
        PRINT: MEASURED,
        READ: {**MEASURED, "seconds": 2.0},
    }
    path = saved(tmp_path, profile(told))
    other = tmp_path / "another.py"
    other.write_text("import torch\n\n\ndef read(x: torch.Tensor):\n    return x.item()\n")
    run = check("--profile", path, file, other, cwd=tmp_path)
    places = [(Path(row.path).name, row.line) for row in run.results]
    dear = [("model.py", line_of(text)) for text in (PRINT, READ, TOTAL)]
    assert places[:3] == dear
    rest = places[3:]
    assert rest == sorted(rest)
    assert ("another.py", 5) in rest
    plain = flake8("--select=TPF", f"--torchperf-profile={path}", file, other)
    assert [(Path(row.path).name, row.line) for row in plain.results] == sorted(places)


def test_other_formats_are_sorted_too(file: Path, tmp_path: Path) -> None:
    path = saved(tmp_path, profile({READ: {**MEASURED, "seconds": 9.0}, TOTAL: MEASURED}))
    run = check("--profile", path, "--format=json", file, cwd=tmp_path)
    first, second, *_ = json.loads(run.output)["findings"]
    assert (first["line"], second["line"]) == (line_of(READ), line_of(TOTAL))


def test_another_profile_is_not_answered_from_the_cache(file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for times in (50, 60, 50):
        path = saved(tmp_path, profile({TOTAL: {"times": times, "waits": times}}))
        run = check("--profile", path, file, cwd=tmp_path, cache=cache)
        assert f"(ran {times} times)" in run.output


def test_why_says_what_a_profile_measured(file: Path, tmp_path: Path) -> None:
    place = f"model.py:{line_of(TEXT)}"
    path = saved(tmp_path, profile({TEXT: COUNTED}))
    assert "not reported: TPF104" in torchperf("why", place, cwd=tmp_path).output
    told = torchperf("why", "--profile", path, place, cwd=tmp_path).output
    assert "\nreported: TPF104" in told
    assert "the line runs per call, ran 4,204 times" in told
    (tmp_path / ".flake8").write_text(f"[flake8]\ntorchperf-profile = {path}\n")
    assert torchperf("why", place, cwd=tmp_path).output == told


def test_stale_entries_are_counted(file: Path, tmp_path: Path) -> None:
    path = saved(tmp_path, profile({TOTAL: COUNTED, READ: COUNTED}))
    assert "match" not in check("--profile", path, file, cwd=tmp_path).errors
    file.write_text(SOURCE.replace("x.sum().item()", "x.mean().item()"))
    run = check("--profile", path, file, cwd=tmp_path)
    assert f"{path}: 1 of 2 entries match no statement any more, and are ignored" in run.errors
    assert run.status == 1


def test_lines_that_waited_without_a_finding_are_told(file: Path, tmp_path: Path) -> None:
    """On standard error, so that every format and the exit status stay what they are."""
    hidden = "def hidden(value, name):\n    return getattr(value, name)()\n"
    file.write_text(SOURCE + "\n\n" + hidden + "\n\n" + hidden.replace("hidden", "asked").rstrip())
    source = file.read_text() + "  # noqa: TPF101\n"
    file.write_text(source)
    told = {
        "return getattr": {"times": 9, "waits": 9, "seconds": 0.5}, "loss.backward": MEASURED,
        READ: {"times": 1, "waits": 1, "seconds": 9.0}, TOTAL: MEASURED, "optimizer.step": COUNTED,
        "zero_grad": {"times": 4204, "waits": 0, "seconds": 0.0},
    }  # fmt: skip
    path = saved(tmp_path, profile(told, source))
    alone, run = check(file.name, cwd=tmp_path), check("--profile", path, file.name, cwd=tmp_path)
    assert [line for line in run.errors.splitlines() if "without a finding" in line] == [
        f"torchperf: check: model.py:{line_of(text, source)}: waited {words}, without a finding: {shown}"
        for text, words, shown in (
            ("loss.backward", "4,204 times in the profile, 3.1 s", "loss.backward()"),
            ("return getattr", "9 times in the profile, 500 ms", "return getattr(value, name)()"),
            ("optimizer.step", "4,204 times in the profile", "optimizer.step()"),
        )
    ]
    assert run.status == alone.status == 1
    data = check("--profile", path, "--format", "json", file.name, cwd=tmp_path)
    assert "without a finding" not in data.output
    assert "without a finding" in data.errors


def test_of_many_lines_that_waited_without_a_finding_the_dearest_are_told(
    file: Path, tmp_path: Path
) -> None:
    source = "import torch\n\n\ndef f(x):\n" + "".join(f"    x.a{n}()\n" for n in range(25))
    file.write_text(source)
    told = {f"x.a{n}()": {"times": n + 1, "waits": n + 1} for n in range(25)}
    path = saved(tmp_path, profile(told, source))
    run = check("--profile", path, file.name, cwd=tmp_path)
    rows = [line for line in run.errors.splitlines() if ": waited " in line]
    assert len(rows) == 20
    assert rows[0].endswith("waited 25 times in the profile, without a finding: x.a24()")
    assert f"5 more such lines: torchperf profile show {path}" in run.errors
    assert run.status == 0


def test_a_profile_of_other_files_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path, profile({TOTAL: COUNTED}))
    (tmp_path / "sub").mkdir()
    other = tmp_path / "sub" / "model.py"
    other.write_text(SOURCE)
    run = check("--profile", path, other, cwd=tmp_path)
    assert "tells of none of these files" in run.errors
    assert "ran 4,204 times" not in run.output


def test_a_file_is_found_from_the_profile_or_from_the_current_folder(
    file: Path, tmp_path: Path
) -> None:
    path = saved(tmp_path, profile({TOTAL: COUNTED}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "ran 4,204" in check("--profile", path, file, cwd=elsewhere).output
    moved = elsewhere / "profile.json"
    path.rename(moved)
    assert "ran 4,204" in check("--profile", moved, file, cwd=tmp_path).output
    assert "ran 4,204" not in check("--profile", moved, file, cwd=elsewhere).output


ENTRY = {"line": 1, "function": "f", "digest": "0", "nth": 0, "text": "", "runs": 1, "times": 1, "waits": 0}  # fmt: skip
MISTAKES = {
    "no JSON": ("import torch\n", "line 1: Expecting value"),
    "a list": ("[]", 'no "torchperf-profile" version'),
    "a baseline": ('{"torchperf-baseline": 1}', 'no "torchperf-profile" version'),
    "a newer one": ('{"torchperf-profile": 2, "files": {}, "runs": 1}', "has version 2"),
    "no files": ('{"torchperf-profile": 1, "runs": 1}', '"files" is missing'),
    "no runs": ('{"torchperf-profile": 1, "files": {}, "runs": 0}', '"runs" is no number'),
    "a wrong device": (
        '{"torchperf-profile": 1, "files": {}, "runs": 1, "devices": [1]}', '"devices" is no list'
    ),
    "too deep": ("[" * 100_000, "cannot be parsed"),
    **{
        f"wrong {name}": (
            json.dumps({"torchperf-profile": 1, "runs": 1, "files": {"a.py": [{**ENTRY, name: value}]}}),
            "the entries of 'a.py' are wrong",
        )
        for name, value in {
            "times": -1, "waits": "1", "runs": 0, "function": 1, "line": True,
            "seconds": float("inf"), "operations": 1.5,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_profile_that_cannot_be_used_is_one_line(file: Path, mistake: str) -> None:
    text, problem = MISTAKES[mistake]
    path = file.parent / "profile.json"
    path.write_text(text)
    for run in (check("--profile", path, file), flake8(f"--torchperf-profile={path}", file)):
        assert run.status == 2
        assert problem in run.errors
        assert len(run.errors.splitlines()) == 1, run.errors
        assert not run.output


def test_a_missing_profile_and_one_that_is_too_large_are_one_line(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = check("--profile", file.parent / "none.json", file)
    assert (missing.status, "there is no file" in missing.errors) == (2, True)
    large = file.parent / "profile.json"
    with open(large, "wb") as holes:
        holes.truncate(2**40)
    run = check("--profile", large, file)
    assert (run.status, "is too large to be a profile" in run.errors) == (2, True)


# Merging and showing.


def test_runs_add_up_in_any_order(tmp_path: Path) -> None:
    one = profile({TOTAL: MEASURED, READ: COUNTED})
    other = profile({TOTAL: {**MEASURED, "operations": 5}, PRINT: COUNTED}, devices=("cuda:0",))
    both = merge([one, other])
    assert as_text(both) == as_text(merge([other, one]))
    assert (both.runs, both.devices) == (2, ("cuda:0",))
    by_text = {entry.text[:7]: entry for entry in both.files["model.py"]}
    total = by_text[TOTAL[:7]]
    assert (total.runs, total.times, total.waits, total.seconds) == (2, 8408, 8408, 6.2)
    assert total.operations is None  # one of the runs did not count them
    assert by_text["print(l"].runs == 1
    assert as_text(merge([merge([one, other]), one])) == as_text(merge([one, merge([one, other])]))
    assert as_text(parse(as_text(both), tmp_path / "p.json")) == as_text(both)


def test_what_a_device_told_outweighs_what_was_counted_without_one() -> None:
    measured, counted = profile({TOTAL: MEASURED}), profile({TOTAL: {"times": 9, "waits": 0}})
    for merged in (merge([measured, counted]), merge([counted, measured, counted])):
        (entry,) = merged.files["model.py"]
        assert (entry.times, entry.seconds) == (4204, 3.1)


def test_merge_and_show(tmp_path: Path) -> None:
    for name, told in (("a", {TOTAL: MEASURED}), ("b", {TOTAL: MEASURED, READ: MEASURED})):
        (tmp_path / f"{name}.json").write_text(as_text(profile(told)))
    run = torchperf("profile", "merge", "sum.json", "a.json", "b.json", cwd=tmp_path)
    assert (run.status, run.output) == (0, "")
    assert "2 statements in 1 file" in run.errors
    shown = torchperf("profile", "show", "sum.json", "--limit", "1", cwd=tmp_path)
    head, row, last = shown.output.splitlines()
    assert head.split() == ["ran", "waits", "seconds", "operations", "place", "statement"]
    assert row.split()[:5] == ["8,408", "8,408", "6.200", "-", f"model.py:{line_of(TOTAL)}"]
    assert row.endswith("total += loss.item()")
    assert last == "2 runs, waits reported by the device; 1 statement not shown"


def test_merge_never_overwrites_something_else(file: Path) -> None:
    (file.parent / "a.json").write_text(as_text(profile({TOTAL: MEASURED})))
    run = torchperf("profile", "merge", file, "a.json", cwd=file.parent)
    assert run.status == 2
    assert file.read_text() == SOURCE
    for arguments in (("merge", "out.json", file), ("show", file), ("show", "none.json"), ()):
        run = torchperf("profile", *arguments, cwd=file.parent)
        assert (run.status, len(run.errors.splitlines())) == (2, 1), run.errors
    assert not (file.parent / "out.json").exists()
