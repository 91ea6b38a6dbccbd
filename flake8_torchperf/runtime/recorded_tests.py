"""pytest's option `--torchperf-profile-save`: records the waits of tests, and writes a profile.

With pytest-xdist each worker records its own tests, and the process that started the workers merges
the records. pytest loads this module in every run, so large imports wait until the option is given.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flake8_torchperf.history.profile import Profile

SAVE = "--torchperf-profile-save"
HELP = (
    "write how often each statement ran and waited while the tests did, for "
    "torchperf check --profile"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the option that asks for a profile."""
    parser.getgroup("torchperf").addoption(SAVE, metavar="FILE", default="", help=HELP)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, None]:
    """Record a profile of all tests, if one is requested."""
    name = session.config.getoption(SAVE)
    if not name:
        yield
        return
    with _recording(session.config, name):
        yield


@contextmanager
def _recording(config: pytest.Config, name: str) -> Iterator[None]:
    """Record while open, then write. Raises UsageError before the tests where that can't be."""
    from flake8_torchperf.history.profile import merge

    path = Path(config.invocation_params.dir, name.replace("{rank}", os.environ.get("RANK", "0")))
    worker: str = getattr(config, "workerinput", {}).get("workerid", "")
    if not worker:
        _check(path)
    if not worker and getattr(config.option, "dist", "no") != "no":
        for left in _parts(path):
            left.unlink()  # left by a run that was killed
        yield
        _save(path, merge(map(_taken, _parts(path))))
        return
    from flake8_torchperf.runtime.workload.child_session import Session
    from flake8_torchperf.runtime.workload.exchange import Plan
    from flake8_torchperf.runtime.workload.profiling import profile_of

    folder = str(config.invocation_params.dir)
    session = Session(Plan("pytest", (), True, (), (folder,), "reads", "", profile=True))
    try:
        with session.watching():
            yield
    finally:
        # Ctrl-C ends the tests, but their profile is still written.
        target = path.with_name(f".{path.name}.{worker}.part") if worker else path
        _save(target, profile_of(session.observed(""), folder))


def _parts(path: Path) -> list[Path]:
    """Return the files that the workers have written so far."""
    return sorted(path.parent.glob(f".{path.name}.*.part"))


def _check(path: Path) -> None:
    """Raise UsageError where no profile can be written, or another file exists."""
    from flake8_torchperf.history.profile import ProfileError, parse

    if not path.parent.is_dir():
        raise pytest.UsageError(f"{SAVE}: there is no folder {path.parent}")
    try:
        if path.exists() and path.read_text(encoding="utf-8").strip():
            parse(path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError, ProfileError) as error:
        problem = f"{path} holds something else, and is left as it is"
        raise pytest.UsageError(f"{SAVE}: {problem}") from error


def _save(path: Path, profile: Profile) -> None:
    from flake8_torchperf.history.profile import write

    try:
        write(path, profile)
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror}"
        raise pytest.UsageError(f"{SAVE}: {problem}") from error


def _taken(path: Path) -> Profile:
    """Return a worker's profile, and delete its file."""
    from flake8_torchperf.history.profile import read

    profile = read(path)
    path.unlink()
    return profile
