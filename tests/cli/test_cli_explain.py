"""``torchperf explain`` and ``torchperf rules``."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import HOUSE_RULE, ROOT
from hangs import HANG

from flake8_torchperf import __version__
from flake8_torchperf.cli.explain import explain
from flake8_torchperf.cli.main import main
from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.rule import SITE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_explain_shows_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "TPF203"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# nonfinite-check-per-tensor (TPF203)\n")
    assert "- reported: in hot code" in text
    assert "## When to ignore it" in text
    assert "# TPF203" in text
    assert text.endswith(f"\nPage: {SITE}rules/TPF203-nonfinite-check-per-tensor.html\n")


@pytest.mark.parametrize(
    "word", ["tpf203", "nonfinite-check-per-tensor", "Nonfinite-Check-Per-Tensor"]
)
def test_explain_takes_names_and_any_case(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 0
    assert "(TPF203)" in capsys.readouterr().out


def test_explain_several_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "TPF101", "TPF106", "--format", "json"]) == 0
    pages = json.loads(capsys.readouterr().out)
    assert [page["code"] for page in pages] == ["TPF101", "TPF106"]
    assert pages[0]["instead"]["default"]
    assert pages[0]["url"] == f"{SITE}rules/TPF101-read-of-a-tensor-value.html"
    assert pages[1]["evidence"]["needs"] == "cuda"
    assert next(iter(pages[0]["sections"])) == "What it does"


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("TPF222", "torchperf: there is no rule TPF222; did you mean 'TPF20"),
        (
            "nonfinite-check",
            "torchperf: there is no rule nonfinite-check; did you mean 'nonfinite-c",
        ),
        ("E501", "torchperf: there is no rule E501; "),
        ("***", "torchperf: there is no rule ***; torchperf rules lists them"),
    ],
)
def test_unknown_code_is_one_line(
    word: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(error)
    assert err.count("\n") == 1


def test_the_reserved_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "TPF900"]) == 0
    assert "could not be analysed" in capsys.readouterr().out


def test_rules_lists_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["code", "name", "family", "scope", "status", "since"]
    assert [line.split()[0] for line in lines[1:]] == [r.code for r in load_catalogue().rules]
    assert not any(line.endswith(" ") for line in lines)


def test_rules_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert table[0] == {
        "code": "TPF101",
        "name": "read-of-a-tensor-value",
        "family": "host reads",
        "scope": "hot",
        "status": "stable",
        "since": "0.1.0",
    }


def test_pages_of_a_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "TPF701-house-rule.md").write_text(HOUSE_RULE, encoding="utf-8")
    assert main(["explain", "TPF701", "--rules", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Reports fetches." in text
    assert text.endswith(f"\nPage: {(tmp_path / 'TPF701-house-rule.md').as_uri()}\n")
    assert main(["rules", "--rules", str(tmp_path)]) == 0
    assert "house-rule" in capsys.readouterr().out


def test_a_broken_page_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "TPF701-house-rule.md"
    path.write_text(HOUSE_RULE.replace('"hot"', '"warm"'), encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["rules", "--rules", str(tmp_path)])
    out, err = capsys.readouterr()
    assert out == ""
    mistake = f"{path}:5: unknown scope 'warm'; known are loop, hot, all"
    assert err == f"torchperf rules: error: --torchperf-rules: {mistake}\n"


def test_a_terminal_gets_rich_text() -> None:
    pytest.importorskip("rich")
    out = Terminal()
    assert explain(["TPF203"], out=out) == 0
    assert "nonfinite-check-per-tensor (TPF203)" in out.getvalue()
    assert "## What it does" not in out.getvalue()


def test_without_rich_a_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flake8_torchperf.cli.explain.find_spec", lambda name: None)
    out = Terminal()
    assert explain(["TPF203"], out=out) == 0
    assert "## What it does" in out.getvalue()


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--version"], ["--help"], ["explain", "--help"], ["rules", "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"torchperf {__version__}\n")
    assert text.count("example") == 3


def test_a_reader_that_stops_early_sees_no_traceback() -> None:
    script = "import sys; from flake8_torchperf.cli.main import main; sys.exit(main())"
    codes = [rule.code for rule in load_catalogue().rules] * 5
    process = subprocess.Popen(
        [sys.executable, "-c", script, "explain", *codes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=HANG) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_what_a_terminal_has_no_character_for_is_escaped() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flake8_torchperf.cli.main", "explain", "TPF205"],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"n\\xb2" in done.stdout


def test_explaining_needs_neither_torch_nor_the_interpreter() -> None:
    script = (
        "import sys; from flake8_torchperf.cli.main import main; main(['rules']); "
        "interpreter = 'flake8_torchperf.interpreter.'; "
        "loaded = ('torch', interpreter + 'engine', interpreter + 'domain.values'); "
        "sys.exit(any(name in sys.modules for name in loaded))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0


def test_the_verdicts_are_those_of_the_documents(capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` shows the figures of docs/rule-life.md, which come from the judged samples."""
    table = (ROOT / "docs" / "rule-life.md").read_text(encoding="utf-8")
    row = re.compile(r"\| (TPF\d+) \S+ \| (\d+), (\d+), (\d+) \| (\d+) \|")
    rows = {code: list(map(int, counts)) for code, *counts in row.findall(table)}
    assert {*rows} == {rule.code for rule in load_catalogue().rules}
    assert main(["explain", *rows, "--format", "json"]) == 0
    for page in json.loads(capsys.readouterr().out):
        verdicts = page["judged"] or dict.fromkeys(("A", "B", "C", "samples"), 0)
        assert list(verdicts.values()) == rows[page["code"]]


def test_a_page_says_how_its_findings_were_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {
        "TPF101": {"A": 5, "B": 2, "C": 1, "samples": 3},
        "TPF102": {"A": 0, "B": 1, "C": 0, "samples": 1},
    }
    monkeypatch.setattr("flake8_torchperf.cli.explain.judged", lambda: counts)
    explain(["TPF101", "TPF102", "TPF103"])
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("- judged")]
    ends = "worth telling (A), {} true but of little worth (B), {} wrong (C)"
    assert told == [
        f"- judged: 8 findings in 3 samples of applications: 5 {ends.format(2, 1)}",
        f"- judged: 1 finding in 1 sample of applications: 0 {ends.format(1, 0)}",
        "- judged: no finding in the samples of applications",
    ]


def test_pages_of_a_repository_were_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "TPF701-house-rule.md").write_text(HOUSE_RULE, encoding="utf-8")
    assert explain(["TPF701"], rules=(tmp_path,)) == 0
    assert "- judged" not in capsys.readouterr().out
