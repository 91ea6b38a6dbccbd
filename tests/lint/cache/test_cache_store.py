"""The folder of entries and the memory over it: bounded, whole under many writers, never stale."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest
from hangs import HANG

from flake8_torchperf.cache.current import Current
from flake8_torchperf.cache.entries import Store
from flake8_torchperf.cache.memory import Memory
from flake8_torchperf.digest import digest, digest_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cache", limit=20_000)
    made.prepare()
    return made


def numbered(number: int) -> str:
    return digest_of([str(number)])


def test_a_store_gives_back_what_was_put(store: Store) -> None:
    value = {"rows": [["é\ud800", 1, None]], "empty": []}
    store.put(numbered(1), value)
    assert store.get(numbered(1)) == value
    assert store.get(numbered(2)) is None


def test_a_store_is_bounded_and_forgets_what_was_longest_unused(store: Store) -> None:
    for number in range(40):
        store.put(numbered(number), token_hex(900))
        path = Path(store._path(numbered(number)))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    assert store.get(numbered(0)) is not None  # used now, and so the last to go
    store.sweep()
    assert store.usage().bytes <= store.limit
    left = [number for number in range(40) if store.get(numbered(number)) is not None]
    assert left[0] == 0
    assert left[1:] == list(range(40 - len(left) + 1, 40))


def test_a_store_sweeps_no_more_often_than_asked(store: Store) -> None:
    store.sweep()
    for number in range(40):
        store.put(numbered(number), token_hex(900))
    store.sweep(every=3600)
    assert store.usage().entries == 40
    store.sweep()
    assert store.usage().entries < 40


def test_only_a_folder_that_we_made_is_hidden_from_git(tmp_path: Path) -> None:
    made, found = tmp_path / "made", tmp_path / "project"
    found.mkdir()
    for folder in (made, made, found, found):
        Store(folder).prepare()
    assert {path.name for path in made.iterdir()} == {".gitignore", "CACHEDIR.TAG", "entries"}
    assert [path.name for path in found.iterdir()] == ["entries"]
    assert (found / "entries" / ".gitignore").read_text() == "*\n"
    assert not any((made / "entries").iterdir())
    assert Store(found).usage().entries == 0


def test_a_store_leaves_what_another_process_has_open(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows neither replaces nor removes an open file."""
    for number in (1, 2, 3):
        store.put(numbered(number), number)
    held_open = store._path(numbered(2))
    remove, replace = os.remove, os.replace

    def removed(path: str) -> None:
        if path == held_open:
            raise PermissionError(13, "in use", path)
        remove(path)

    def replaced(source: str, target: str) -> None:
        raise PermissionError(13, "in use", target)

    monkeypatch.setattr(os, "remove", removed)
    monkeypatch.setattr(os, "replace", replaced)
    store.put(numbered(2), 2)
    with pytest.raises(PermissionError):
        store.put(numbered(4), 4)
    with pytest.raises(PermissionError, match="in use, or not yours"):
        store.clear()
    monkeypatch.setattr(os, "replace", replace)
    assert store.get(numbered(2)) == 2
    assert store.usage().entries == 1
    assert not list(store.folder.rglob("*.tmp"))


def test_a_store_removes_what_a_dead_process_left_half_written(store: Store) -> None:
    store.put(numbered(1), "x")
    shelf = Path(store._path(numbered(1))).parent
    old, new = shelf / f"{numbered(2)}.17.tmp", shelf / f"{numbered(3)}.18.tmp"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (1_000_000, 1_000_000))
    store.sweep()
    assert (old.exists(), new.exists()) == (False, True)


def test_a_store_under_many_writers(store: Store) -> None:
    """Whoever reads meanwhile gets one of the values whole, or nothing."""
    values = [letter * 50_000 for letter in "abcd"]
    program = (
        "import sys; from pathlib import Path; from flake8_torchperf.cache.entries import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for _ in range(200): store.put(sys.argv[2], sys.argv[3] * 50_000)\n"
    )
    command = [sys.executable, "-c", program, str(store.folder), numbered(1)]
    writers = [subprocess.Popen([*command, letter]) for letter in "abcd"]
    seen = set(reading(store, writers))
    assert seen <= {*values, None}
    assert store.get(numbered(1)) in values
    assert all(writer.returncode == 0 for writer in writers)


def reading(store: Store, writers: list[subprocess.Popen[bytes]]) -> Iterator[object]:
    end = time.monotonic() + HANG
    while any(writer.poll() is None for writer in writers):
        assert time.monotonic() < end
        yield store.get(numbered(1))


def test_a_memory_asks_for_everything_that_was_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    store.prepare()
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("one")
    memory = Memory(store, "conditions")
    key = memory.key("x.py", digest(b"text"))
    memory.keep(
        key,
        [(1, 0, "text")],
        {str(one): Current().content(str(one)), str(two): Current().content(str(two))},
    )
    assert Memory(store, "conditions").recall(key) == [(1, 0, "text")]
    assert Memory(store, "others").key("x.py", digest(b"text")) != key
    two.write_text("here now")
    assert Memory(store, "conditions").recall(key) is None
    two.unlink()
    assert Memory(store, "conditions").recall(key) == [(1, 0, "text")]
    (tmp_path / "__init__.py").write_text("")
    assert Memory(store, "conditions").recall(key) is None
