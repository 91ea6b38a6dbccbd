"""What several test modules need once: the package as it is published, installed elsewhere."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from environments import call, copy_checkout, environment, pythons
from weighing import without_threshold

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

# The tests start some hundred processes that import the package. Where PYTHONDONTWRITEBYTECODE is set,
# each of them would compile it anew, and each worker the tests: more than half of the time of a linter's
# process. What Python keeps, `.gitignore` names.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# On a machine whose cores other workers use, the threads of torch wait for one another for longer than
# they compute: a step of a small model takes a hundred milliseconds with two of them, and three with one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The twelve thousand tests that a worker collects live as long as it does. To look through them for garbage
# again and again takes a third of the time of collecting them.
gc.set_threshold(50_000, 20, 50)

# The programs that users meet the plugin through, each in the newest version there is.
CLIENTS = (
    "Flake8-pyproject",
    "ipython",
    "nbqa",
    "pre-commit",
    "python-lsp-server",
)


without_threshold()

# Files that one worker has to run, one after the other. Those of the first start what `torchperf
# confirm` starts: some of them look at all processes that there are for what is left of it. Those of
# the second need the installed package, which is built once; those of the third, a run of the training
# project, or a process that has imported torch's tracer, which takes five seconds.
TOGETHER = {
    "confirm": ("test_confirm", "test_fix_verify", "test_executes_nothing", "test_readme.py"),
    "installed": ("test_clients", "test_package", "test_readme_commands"),
    "trained": (
        "test_compare_training",
        "test_profile_recording",
        "test_run_compiled",
        "test_run_verdicts",
    ),
}
# What takes longest comes first, so that no worker is left alone with it at the end.
LONGEST_FIRST = ("test_native_build", *TOGETHER["installed"], *TOGETHER["confirm"])
LONGEST_FIRST += ("test_run_ranks", "test_run.py", "test_graph_breaks")
LONGEST_FIRST += (*TOGETHER["trained"], "test_run_safety", "test_bounds_work", "test_torch_table")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, then those that hold slow tests, and leave the others."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}

    def place(item: pytest.Item) -> int:
        names = (name for name in places if item.path.name.startswith(name))
        named = places.get(max(names, key=len, default=""))
        return len(places) + (item.path not in slow) if named is None else named

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Leave what was collected out of each later search for garbage."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Under `-n auto`, give each worker whole files in this order, and one of them those together."""
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path: str = super()._split_scope(nodeid)
            name = Path(path).name
            groups = (group for group, names in TOGETHER.items() if name.startswith(names))
            return next(groups, path)

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.fixture(scope="session", autouse=True)
def _options_of_this_run_alone() -> Iterator[None]:
    """The pytest that a test starts takes none of the options in the environment of this one.

    Nor does it load plugins that have nothing to do with ours, which takes a second.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_ADDOPTS", "-p no:pytest-lsp -p no:asyncio -p no:hypothesispytest")
        yield


@pytest.fixture(scope="session", autouse=True)
def _a_cache_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees or changes what the person running them has in the platform's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHPERF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def guards_are_not_timed() -> Iterator[None]:
    """Torch's tracer doesn't time what it made for each graph, which takes a third of the tracing.

    For its log alone, it empties the processor's caches before it measures.
    """
    from torch._dynamo import guards

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guards, "profile_guard_manager", lambda *_: 0.0, raising=False)
        yield


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of the notebooks alone: to lint one here would look through the repository."""
    folder = tmp_path_factory.mktemp("notebooks") / "project"
    shutil.copytree(Path(__file__).parent / "notebooks", folder)
    (folder / "requirements.txt").touch()
    return folder


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from that sdist.

    The setuptools at hand builds them. pre-commit and `pip install .`, which other tests run, build in
    an environment of what the project asks for.
    """
    source = copy_checkout(tmp_path_factory.mktemp("source"))
    built = tmp_path_factory.mktemp("distributions")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", built, source)
    return built


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (path,) = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (path,) = distributions.glob("*.tar.gz")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that holds the wheel and what it requires."""
    return environment(tmp_path_factory.mktemp("installed") / "env", sys.executable, wheel)


@pytest.fixture(scope="session")
def clients(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and the programs it is used through."""
    folder = tmp_path_factory.mktemp("clients") / "env"
    return environment(folder, sys.executable, wheel, *CLIENTS)


@pytest.fixture(scope="session")
def flake8_nb(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own, since flake8-nb holds flake8 back, which in turn holds Python."""
    folder = tmp_path_factory.mktemp("flake8_nb") / "env"
    return environment(folder, min(pythons().items())[1], "flake8-nb==0.5.3", wheel)
