"""The HTML page of `torchperf run`: what cost most first, then the functions concerned."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hangs import HANG

pytest.importorskip("torch")
pytest.importorskip("jinja2")

from flake8_torchperf.cli.run_page import SHOWN, page
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow
from flake8_torchperf.runtime.workload.matching import match_findings
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun, merge
from flake8_torchperf.runtime.workload.summary import as_data

EVERYTHING = Options(scope=Level.COLD)

SOURCE = f"""\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.unconcerned = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.unconcerned(x)


def train(model: Net, xs: torch.Tensor):
    for x in xs.split(1):
        loss = model(x).sum()
        print(loss.item(), "<b>bold</b>")


def hidden(value, name):
    return getattr(value, name)()


def an_unusually_long_name({"a" * 300}):
    return hidden({" + ".join(["a" * 300] * 3)}, "item")


LIMIT = 3
"""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def observed(path: Path, rank: int | None = None) -> Observed:
    spent = {"loss.item()": (4, 0.002), "getattr": (1, 0.5), "loss = ": (0, 0.03)}
    return Observed(
        torch="2.13.0", device="cpu", level="full", seconds=1.0,
        totals={"dispatches": 9, "host_reads": 5, "transfers": 0},
        lines=tuple(
            {
                "path": str(path), "line": line_of(text),
                "counts": {"host_reads": reads, "dispatches": 3, "seconds": seconds * (2 if rank else 1)},
            }
            for text, (reads, seconds) in spent.items()
        ),
        executed={str(path): frozenset(range(1, len(SOURCE.splitlines())))},
        syncs=(SyncRow(str(path), line_of("getattr"), "sync", "item", "item", 1, 1),),
        metrics="", ended="returned", rank=rank,
    )  # fmt: skip


def written(path: Path, run: MergedRun) -> str:
    path.write_text(SOURCE)
    files = match_findings(run, EVERYTHING)
    return page(as_data(["s.py"], 0, run, files), files)


@pytest.fixture
def alone(tmp_path: Path) -> str:
    path = tmp_path / "a file.py"
    path.write_text(SOURCE)
    return written(path, MergedRun(observed(path)))


class Seen(HTMLParser):
    """The page's texts, anchors and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.shown = "".join(self.texts)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = {name: value or "" for name, value in attrs}
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []


def places(text: str) -> list[int]:
    """The lines of the table, in its order."""
    table = text[text.index('class="dearest"') : text.index("<details")]
    return [int(one) for one in re.findall(r"a file\.py:(\d+)</a>", table)]


def test_the_dearest_lines_come_first(alone: str) -> None:
    assert places(alone) == [line_of("getattr"), line_of("loss = "), line_of("loss.item()")]
    assert "Most expensive lines (3 of 3 statements)" in alone


def test_only_the_functions_concerned_are_shown(alone: str) -> None:
    seen = Seen(alone)
    for text in ("for x in xs.split(1):", "def hidden(value, name):", "print(loss.item()"):
        assert text in seen.shown
    for text in ("unconcerned", "an_unusually_long_name", "LIMIT"):
        assert text not in seen.shown


def test_each_finding_has_an_anchor_and_each_link_a_target(alone: str) -> None:
    seen = Seen(alone)
    assert any(one.endswith(f":{line_of('loss.item()')}:15:TPF101") for one in seen.ids)
    assert any(one.endswith(f":{line_of('getattr')}:missed") for one in seen.ids)
    assert len(seen.ids) == len(set(seen.ids))
    assert {unquote(one.removeprefix("#")) for one in seen.links} <= set(seen.ids)


def test_the_page_stands_alone_and_escapes_what_it_shows(alone: str) -> None:
    seen = Seen(alone)
    assert not {"link", "img", "b"} & seen.tags
    assert 'print(loss.item(), "<b>bold</b>")' in seen.shown
    assert "confirmed: TPF101" in seen.shown
    assert "src=" not in alone


def test_with_ranks_the_table_says_which_is_slowest(tmp_path: Path) -> None:
    path = tmp_path / "a file.py"
    ranks = {rank: observed(path, rank) for rank in (0, 1)}
    text = written(path, MergedRun(merge(list(ranks.values())), ranks))
    row = text[text.index('class="dearest"') :].partition("</tr>")[2].partition("</tr>")[0]
    assert '<td class="n" data-value="1" data-label="slowest rank">1</td>' in row
    assert 'data-label="spread">500 ms</td>' in row


def test_the_table_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a file.py"
    source = "def f(x):\n" + "".join(f"    x += {n}\n" for n in range(2 * SHOWN))
    lines = [
        {"path": str(path), "line": n, "counts": {"dispatches": n, "seconds": n / 1000}}
        for n in range(2, 2 * SHOWN)
    ]
    path.write_text(source)
    seen = Observed(**{**vars(observed(path)), "lines": lines, "syncs": ()})
    files = match_findings(MergedRun(seen), EVERYTHING)
    text = page(as_data(["s.py"], 0, MergedRun(seen), files), files)
    assert places(text) == list(range(2 * SHOWN - 1, SHOWN - 1, -1))


def measured(folder: Path, text: str, width: int, script: str) -> str:
    """What a script says of the page's document in a frame of this width.

    A browser's own window is never as narrow as a telephone's.
    """
    path = folder / "outer.html"
    path.write_text(
        f"<iframe width={width} height=900 style='border: 0' srcdoc='{escape(text)}'></iframe>"
        "<script>const frame = document.querySelector('iframe');"
        "frame.onload = () => { const page = frame.contentDocument;"
        f"document.title = String(({script})) }}</script>"
    )
    command: list[Any] = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    return re.findall(r"<title>(.*?)</title>", done.stdout)[0]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no browser here")
class TestInABrowser:
    @pytest.mark.parametrize("width", [420, 1100])
    def test_nothing_needs_scrolling_sideways(self, tmp_path: Path, width: int) -> None:
        path = tmp_path / "a file.py"
        path.write_text(SOURCE)
        long = {**vars(observed(path)), "syncs": ()}
        line = {"path": str(path), "line": line_of("return hidden"), "counts": {"host_reads": 9}}
        run = MergedRun(Observed(**{**long, "lines": (*long["lines"], line)}))
        text = written(path, run)
        assert "an_unusually_long_name" in Seen(text).shown
        script = "page.documentElement.scrollWidth - page.documentElement.clientWidth"
        assert measured(tmp_path, text, width, script) == "0"

    def test_a_click_on_a_heading_sorts(self, tmp_path: Path, alone: str) -> None:
        script = """(() => {
            const buttons = [...page.querySelectorAll(".dearest button")];
            const lines = () => [...page.querySelectorAll(".dearest tbody tr")].map(
                row => row.cells[0].dataset.value.split(":").pop());
            const click = name => {
                buttons.find(one => one.textContent === name).click(); return lines() };
            return [click("line"), click("host reads"), click("host reads")].join(";");
        })()"""
        reads = [line_of("loss.item()"), line_of("getattr"), line_of("loss = ")]
        orders = [sorted(reads), reads, reads[::-1]]
        shown = ";".join(",".join(map(str, one)) for one in orders)
        assert measured(tmp_path, alone, 1100, script) == shown
