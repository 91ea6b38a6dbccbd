"""`torchperf compare`: what statements cost in recorded runs, before and after a change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_run import torchperf

from flake8_torchperf.history.run_record import COSTS

NO_COST = dict.fromkeys(COSTS, 0)


def row(text: str, line: int, function: str = "step", nth: int = 0, **costs: Any) -> dict[str, Any]:
    place = {"line": line, "function": function, "digest": f"digest of {text}", "nth": nth}
    return {**place, "text": text, **NO_COST, **costs}


def report(*rows: dict[str, Any], path: str = "train.py", **fields: Any) -> dict[str, Any]:
    return {
        "torchperf-run": 1, "command": ["train.py"], "device": "cpu", "level": "full",
        "torch": "2.13.0", "ended": "returned", "ranks": [],
        "files": [{"path": path, "statements": list(rows)}], **fields,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(*reports: dict[str, Any]) -> list[str]:
    names = []
    for number, one in enumerate(reports):
        names.append(f"{number}.json")
        Path(names[-1]).write_text(json.dumps(one))
    return names


def compare(*words: str, status: int = 0) -> str:
    done = torchperf("compare", *words)
    assert done.status == status, done.errors
    return done.output if status < 2 else done.errors


BEFORE = report(
    row("total += loss.item()", 9, waits=48),
    row("norm.item()", 12, waits=20),
    row("print(x)", 14, waits=4),
    row("print(x)", 15, nth=1, waits=4),
    row("same(x)", 20, waits=7),
    row("names[int(i)]", 22, on_host=6),
    row("x = x.to(d)", 30, waiting_transfers=8),
    row("y.to(d)", 31, waiting_transfers=8, seeming_transfers=2),
)
AFTER = report(
    row("norm.item()", 112, waits=5),
    row("print(x)", 114, waits=4),
    row("print(x)", 115, nth=1, waits=6),
    row("same(x)", 120, waits=7),
    row("if loss.isnan():", 121, function="Net.forward", waits=3),
    row("names[int(i)]", 122, on_host=2),
    row("y.to(d)", 131, waiting_transfers=2, non_blocking_transfers=8),
)
TEXT = """\
waits: gone (1)
  train.py:9 step: 48 -> 0: total += loss.item()
waits: fewer (1)
  train.py:112 step: 20 -> 5: norm.item()
waits: new (1)
  train.py:121 Net.forward: 0 -> 3: if loss.isnan():
waits: more (1)
  train.py:115 step: 4 -> 6: print(x)
reads on the host alone: fewer (1)
  train.py:122 step: 6 -> 2: names[int(i)]
transfers: changed (2)
  train.py:30 step: 8 waiting -> none: x = x.to(d)
  train.py:131 step: 8 waiting, 2 look asynchronous -> 2 waiting, 8 non-blocking: y.to(d)
torchperf compare: 83 -> 25 waits; reads on the host alone 6 -> 2; \
transfers 16 waiting, 2 look asynchronous -> 2 waiting, 8 non-blocking
"""


def test_statements_are_matched_by_function_and_text_wherever_they_moved(folder: Path) -> None:
    assert compare(*save(BEFORE, AFTER)) == TEXT


def test_two_equal_runs_differ_in_nothing(folder: Path) -> None:
    text = compare(*save(BEFORE, BEFORE), "--fail-on", "more-waits")
    assert len(text.splitlines()) == 1
    assert text.startswith("torchperf compare: 83 -> 83 waits; ")


def test_the_gate_fails_where_there_are_more_waits_in_all(folder: Path) -> None:
    before, after = save(BEFORE, AFTER)
    assert compare(before, after, "--fail-on", "more-waits") == TEXT
    assert "25 -> 83" in compare(after, before, "--fail-on", "more-waits", status=1)
    assert "25 -> 83" in compare(after, before)
    # Reads on the host and copies are no waits.
    more = report(*BEFORE["files"][0]["statements"], row("z", 1, on_host=9, seeming_transfers=3))
    assert compare(*save(BEFORE, more), "--fail-on", "more-waits")


def test_the_gate_fails_where_a_program_was_cut_short(folder: Path) -> None:
    before, after = save(BEFORE, {**AFTER, "ended": "NameError"})
    assert "cut short (NameError)" in compare(before, after)
    assert "83 -> 25" in compare(before, after, "--fail-on", "more-waits", status=1)


def test_the_same_as_data(folder: Path) -> None:
    data = json.loads(compare(*save(BEFORE, AFTER), "--format", "json"))
    assert (data["unit"], data["notes"]) == ("run", [])
    assert data["totals"]["waits"] == {"before": 83, "after": 25}
    changed = {(one["line"], one["waits"], one["on_host"], one["transfers"]) for one in data["statements"]}  # fmt: skip
    assert changed == {
        (9, "gone", "", False), (112, "fewer", "", False), (121, "new", "", False),
        (115, "more", "", False), (122, "", "fewer", False), (30, "", "", True), (131, "", "", True),
    }  # fmt: skip
    last = data["statements"][-1]
    assert (last["path"], last["function"], last["text"]) == ("train.py", "step", "y.to(d)")
    assert last["after"] == {**NO_COST, "waiting_transfers": 2, "non_blocking_transfers": 8}


def test_markdown_for_a_pull_request_escapes_what_would_end_a_cell(folder: Path) -> None:
    odd = report(row("mask = a.any() | (b == '`x`').item()", 3, "make_all", waits=2))
    text = compare(*save(report(), odd), "--format", "markdown")
    assert text.startswith("### torchperf: 0 → 2 waits\n\n| waits | where | before | after |")
    lines = text.splitlines()
    assert lines[3] == "|---|---|---|---|---|"
    assert lines[4] == (
        "| new | train.py:3 make\\_all | 0 | 2 | `` mask = a.any() \\| (b == '`x`').item() `` |"
    )
    text = compare(*save(BEFORE, AFTER), "--format", "markdown")
    assert "| gone | train.py:9 step | 48 | 0 | `total += loss.item()` |" in text
    assert "| train.py:30 step | 8 waiting | none | `x = x.to(d)` |" in text
    assert text.endswith(
        "Transfers: 16 waiting, 2 look asynchronous → 2 waiting, 8 non-blocking.\n"
    )


def test_several_runs_of_each_side_are_compared_by_their_mean(folder: Path) -> None:
    names = save(*(report(row("x.item()", 3, waits=times)) for times in (4, 6, 9, 9, 9)))
    text = compare("--before", *names[:2], "--after", *names[2:])
    assert text.splitlines()[-1].startswith("torchperf compare per run: 5 -> 9 waits")
    # Where a statement waited in one run of two, the other counts too.
    names = save(report(row("x.item()", 3, waits=1)), report(), report())
    text = compare("--before", *names[:2], "--after", names[2])
    assert "  train.py:3 step: 0.50 -> 0: x.item()" in text


def stepped(waits: int, counted: int, steps: int, warmup: int = 2, **fields: Any) -> dict[str, Any]:
    costs = {**NO_COST, "waits": counted}
    made = report(row("x.item()", 3, waits=waits, counted=costs), **fields)
    return {**made, "steps": {"marker": "optimizer.step", "warmup": warmup, "counted": steps}}


def test_counts_are_per_step_after_the_warm_up_where_both_have_steps(folder: Path) -> None:
    text = compare(*save(stepped(100, 8, 8), stepped(300, 50, 100)))
    assert "  train.py:3 step: 1 -> 0.50: x.item()" in text
    assert text.splitlines()[-1].startswith("torchperf compare per step: 1 -> 0.50 waits")
    rare = compare(*save(stepped(100, 8, 8), stepped(300, 1, 2000)))
    assert "1 -> 0.0005: x.item()" in rare
    assert "note: the warm-up differs: 2 steps before, 5 steps after" in compare(
        *save(stepped(1, 1, 1), stepped(1, 1, 1, warmup=5))
    )


def test_whole_runs_are_compared_where_one_has_no_steps(folder: Path) -> None:
    text = compare(*save(stepped(100, 8, 8), report(row("x.item()", 3, waits=50))))
    assert text.splitlines()[0] == (
        "note: 1.json: no steps were counted, so the numbers are for whole runs"
    )
    assert "100 -> 50: x.item()" in text


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"torch": "2.14.0"}, "torch differs: 2.13.0 before, 2.14.0 after"),
        (
            {"command": ["train.py", "--epochs", "9"]},
            "the command differs: train.py before, train.py --epochs 9 after",
        ),
        ({"ranks": [{}, {}]}, "the number of ranks differs: 1 before, 2 after"),
        ({"ended": "ValueError"}, "1.json: the program was cut short (ValueError)"),
        ({"ended": "SystemExit"}, ""),
    ],
)
def test_what_may_explain_a_change_is_a_note(
    folder: Path, fields: dict[str, Any], note: str
) -> None:
    lines = compare(*save(BEFORE, {**BEFORE, **fields})).splitlines()
    assert lines[:-1] == ([f"note: {note}"] if note else [])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"device": "cuda"}, "0.json has the device cpu, 1.json the device cuda: "),
        ({"level": "reads"}, "0.json has the level full, 1.json the level reads: "),
        ({"files": [{"path": "a.py", "statements": []}]}, "no file of 0.json is in 1.json: "),
    ],
)
def test_what_cannot_be_compared_is_refused(
    folder: Path, fields: dict[str, Any], problem: str
) -> None:
    errors = compare(*save(BEFORE, {**BEFORE, **fields}), status=2)
    assert errors.startswith(f"torchperf: compare: {problem}")
    assert len(errors.splitlines()) == 1
    # The runs of one side must be alike as well.
    names = save(BEFORE, {**BEFORE, **fields}, BEFORE)
    if "files" not in fields:
        assert compare("--before", *names[:2], "--after", names[2], status=2) == errors


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "there is no file 1.json; write it with torchperf run --json FILE"),
        ("", "1.json is no report of a run: line 1: "),
        ("[]", '1.json is no report of a run: it has no "torchperf-run" version; '),
        ('{"torchperf-profile": 1}', '1.json is no report of a run: it has no "torchperf-run"'),
        ('{"torchperf-run": 2}', "1.json has version 2, and this flake8-torchperf reads 1; "),
        ('{"torchperf-run": 1}', "1.json is no report of a run: device, level, torch or ended "),
        (json.dumps({**BEFORE, "files": 3}), "1.json is no report of a run: command, files or "),
        (json.dumps({**BEFORE, "command": [3]}), "1.json is no report of a run: command, files "),
        (
            json.dumps({**BEFORE, "files": [{"path": "a.py"}]}),
            "1.json is no report of a run: the statements of 'a.py' are missing; ",
        ),
        (json.dumps({**BEFORE, "steps": 3}), '1.json is no report of a run: "steps" holds no '),
        (
            json.dumps(report(row("x", 1, waits=-1))),
            "1.json is no report of a run: a statement of 'train.py' is wrong; ",
        ),
        (
            json.dumps(report(row("x", 1, waits=True))),
            "1.json is no report of a run: a statement of 'train.py' is wrong; ",
        ),
        (
            json.dumps(report(row("x", 1, counted={"waits": 1}))),
            "1.json is no report of a run: a statement of 'train.py' is wrong; ",
        ),
        (
            json.dumps(report({**row("x", 1), "digest": 7})),
            "1.json is no report of a run: a statement of 'train.py' is wrong; ",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    folder: Path, text: str | None, problem: str
) -> None:
    save(BEFORE)
    if text is not None:
        Path("1.json").write_text(text)
    errors = compare("0.json", "1.json", status=2)
    assert errors.startswith(f"torchperf: compare: {problem}")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "name the reports before and after"),
        (("0.json",), "name two files, or several after --before and --after"),
        (("0.json", "0.json", "0.json"), "name two files, or several after"),
        (("--before", "0.json"), "name the reports before and after"),
        (("0.json", "0.json", "--after", "0.json"), "name two files, or several after"),
    ],
)
def test_a_command_line_without_two_sides_is_refused(
    folder: Path, words: tuple[str, ...], problem: str
) -> None:
    save(BEFORE)
    assert compare(*words, status=2).startswith(f"torchperf: compare: {problem}")


def test_control_characters_do_not_reach_the_terminal(folder: Path) -> None:
    text = compare(*save(report(), report(row("print('\x1b[31m')", 2, waits=1))))
    assert "\x1b" not in text
    assert "print('\\x1b[31m')" in text
