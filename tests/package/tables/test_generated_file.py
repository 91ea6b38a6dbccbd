"""tools/generated_file.py writes what a generator makes, or compares it with the committed file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from documents import ROOT

sys.path[:0] = [str(ROOT / "tools")]

import generated_file  # noqa: E402


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> int:
    """Run a generator with an option of its own, `--carry`; returns its exit status."""
    monkeypatch.setattr(generated_file, "ROOT", folder)
    monkeypatch.setattr(sys, "argv", ["tools/generate_it.py", *words])
    file = folder / "table.json"
    carry = generated_file.Instead("carry it", lambda: (file, "carried\n"))
    return generated_file.main("Makes it.", lambda: (file, "made\n"), {"--carry": carry})


@pytest.mark.parametrize(("words", "text"), [((), "made\n"), (("--carry",), "carried\n")])
def test_an_option_makes_the_text_in_another_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    assert run(monkeypatch, tmp_path, *words) == 0
    assert (tmp_path / "table.json").read_text(encoding="utf-8") == text
    assert run(monkeypatch, tmp_path, *words, "--check") == 0


def test_a_committed_file_that_differs_is_shown_and_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, tmp_path)
    capsys.readouterr()
    assert run(monkeypatch, tmp_path, "--check", "--carry") == 1
    said = ["- made", "+ carried", "table.json differs: run tools/generate_it.py"]
    assert capsys.readouterr().out.splitlines() == said
    assert (tmp_path / "table.json").read_text(encoding="utf-8") == "made\n"


def test_another_option_ends_with_the_usage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, tmp_path, "--cary-on")
    assert "[--carry]" in capsys.readouterr().err
    assert not (tmp_path / "table.json").exists()
