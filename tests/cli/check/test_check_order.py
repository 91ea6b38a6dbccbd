"""In which order `torchperf check` gives files to its processes."""

from __future__ import annotations

from pathlib import Path

from flake8_torchperf.cli.check_files import _large_first


def test_large_files_come_first_and_the_rest_in_order(tmp_path: Path) -> None:
    names = []
    for name, size in (("a.py", 10), ("b.py", 5000), ("c.py", 10), ("d.py", 9000), ("e.py", 20)):
        (tmp_path / name).write_text("#" * size)
        names.append(str(tmp_path / name))
    first = [Path(name).name for name in _large_first(names, 2)]
    assert first == ["d.py", "b.py", "a.py", "c.py", "e.py"]


def test_a_file_that_cannot_be_read_keeps_its_place(tmp_path: Path) -> None:
    names = ["-", str(tmp_path / "none.py")]
    assert _large_first(names, 2) == names
