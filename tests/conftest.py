"""What several test modules need once: the package as it is published, installed elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from environments import call, copy_checkout, environment, pythons

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

# The programs that users meet the plugin through, each in the newest version there is.
CLIENTS = (
    "Flake8-pyproject",
    "ipython",
    "nbqa",
    "pre-commit",
    "python-lsp-server",
)


# Files that start what `torchperf confirm` starts: some of them look at all processes that there are
# for what is left of it. And files that need the installed package, which is built once.
ONE_AFTER_THE_OTHER = (
    "test_confirm", "test_readme", "test_executes_nothing", "test_clients", "test_package",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Under `-n auto`, give each worker whole files, and one of them all those above."""
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path: str = super()._split_scope(nodeid)
            return "" if Path(path).name.startswith(ONE_AFTER_THE_OTHER) else path

    return Files(config, log)


@pytest.fixture(scope="session", autouse=True)
def _a_cache_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees or changes what the person running them has in the platform's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHPERF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from that sdist."""
    source = copy_checkout(tmp_path_factory.mktemp("source"))
    built = tmp_path_factory.mktemp("distributions")
    call(sys.executable, "-m", "build", "--outdir", built, source)
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
