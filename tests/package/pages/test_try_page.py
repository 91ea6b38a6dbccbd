"""The page to try the linter on, as a reader meets it: built, served, and driven in a browser."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from environments import ROOT, call, clean_environment

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
WORK = ROOT / "build" / "try-work"
NARROW = 390  # pixels, as drive.mjs has it

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(find_spec("sphinx") is None, reason="the extra `docs` is not installed"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
    pytest.mark.skipif(not BROWSER, reason="Chromium is not installed"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with the editor, built without a warning."""
    built, folder = tmp_path_factory.mktemp("try"), tmp_path_factory.mktemp("site")
    call(sys.executable, "docs/try/build.py", built / "static", cwd=ROOT)
    env = {**clean_environment(), "TORCHPERF_TRY": str(built / "static")}
    options = ("-q", "-W", "--keep-going", "-n", "-c", "docs", "-b", "html")
    call(sys.executable, "-m", "sphinx", *options, ".", folder, cwd=ROOT, env=env)
    return folder


@pytest.fixture(scope="module")
def origin(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def seen(origin: str) -> dict[str, Any]:
    """What drive.mjs saw of the page."""
    page = f"{origin}docs/try.html"
    told: dict[str, Any] = json.loads(call("node", "drive.mjs", page, BROWSER, cwd=WORK))
    return told


def test_the_example_has_the_findings_of_the_seed_bug(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []
    assert seen["example"] == ["TPF201", "TPF203", "TPF203", "TPF101"]


def test_a_click_shows_the_reason_the_rule_and_the_diff(
    seen: dict[str, Any], site: Path, origin: str
) -> None:
    assert "A loop around the site repeats it." in seen["account"]
    assert "bool((torch.isinf(tensor) | torch.isnan(tensor)).any())" in seen["account"]
    assert (site / seen["rule"].removeprefix(origin)).is_file()


def test_a_link_restores_the_code_and_the_settings(seen: dict[str, Any]) -> None:
    shared = seen["shared"]
    assert "#code=" in seen["link"]
    assert (shared["restored"], shared["scope"]) == (shared["pasted"], "all")
    assert shared["codes"] == ["TPF101"]


def test_no_request_leaves_the_site(seen: dict[str, Any], origin: str) -> None:
    names = {name.removeprefix(f"{origin}_static/try/") for name in seen["requests"]}
    assert {"page.js", "packages.tar.gz", "pyodide/pyodide.asm.wasm"} <= names
    inside = (origin, "data:", f"blob:{origin}")
    assert [name for name in seen["requests"] if not name.startswith(inside)] == []


def test_a_narrow_window_need_not_be_scrolled_sideways(seen: dict[str, Any]) -> None:
    assert seen["narrow"] == NARROW
