"""The documentation, built as `nox -s docs` builds it: no warning, every link leads somewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from environments import ROOT, attempt, clean_environment

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.documentation import SECTIONS, read_documentation
from flake8_torchperf.findings.rule import SITE, Rule

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("sphinx") is None, reason="the extra `docs` is not installed"),
]
RULES = load_catalogue().rules


@dataclass
class Page(HTMLParser):
    """What a page links to, the anchors in it, its headings and its text."""

    text: str = ""
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    headings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.in_heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors.add(known.get("id", ""))
        self.links += [known[name] for name in ("href", "src") if known.get(name)]
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
            self.in_heading = True
        elif tag == "a" and self.in_heading:  # the sign that links to the heading itself
            self.in_heading = False

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h1", "h2", "h3"):
            self.in_heading = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_heading:
            self.headings[-1] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site that was built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    options = ("-q", "-W", "--keep-going", "-n", "-c", "docs", "-b", "html")
    # Modules that are being tested must not be replaced by those of an installed package.
    env = {**clean_environment(), "PYTHONDONTWRITEBYTECODE": "1"}
    # Without the editor, as where npm is not at hand; test_try_page.py builds the site with it.
    env["TORCHPERF_TRY"] = str(tmp_path_factory.mktemp("no_editor"))
    done = attempt(sys.executable, "-m", "sphinx", *options, ".", folder, cwd=ROOT, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    read = {}
    for path in site.rglob("*.html"):
        read[path] = Page()
        read[path].feed(path.read_text(encoding="utf-8"))
    return read


def broken(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """The links of a site that lead to no file of it, or to no place in the file."""
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if target.is_dir():
                target /= "index.html"
            missing = anchor and target in pages and anchor not in pages[target].anchors
            if not target.is_file() or missing:
                yield f"{path.relative_to(site)}: {link}"


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > len(RULES) + 20
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert list(broken(site, pages)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    text = (
        '<h1 id="a">A</h1><a href="#a"></a><a href="#b"></a><a href="c.html"></a><a href="."></a>'
    )
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    page = Page()
    page.feed(text)
    found = list(broken(tmp_path, {tmp_path / "index.html": page}))
    assert found == ["index.html: #b", "index.html: c.html"]


@pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])
def test_a_rule_has_its_page(rule: Rule, site: Path, pages: dict[Path, Page]) -> None:
    """At the address that `explain` names, with all that its page in rules/ holds."""
    page = pages[site / rule.address.removeprefix(SITE)]
    assert page.headings[0] == f"{rule.name} ({rule.code})"
    assert set(SECTIONS) <= set(page.headings)
    assert {name for _, name in rule.fixes} <= set(page.headings)
    known = read_documentation(rule)
    assert known.example is not None
    shown = (known.example.bad, known.example.good, *(fix.after for fix in known.fixes))
    assert all(code in page.text for code in shown)
    assert "+++" not in page.text


def test_the_first_page_shows_what_is_found_and_how_to_start(
    site: Path, pages: dict[Path, Page]
) -> None:
    first = pages[site / "README.html"]
    assert "README.html" in pages[site / "index.html"].links
    assert "30 seconds" in first.text
    assert "26 microseconds" in first.text
    assert "TPF203" in first.text
    assert "pip install flake8-torchperf" in first.text


def test_rules_can_be_searched_for(site: Path) -> None:
    words = (site / "searchindex.js").read_text(encoding="utf-8")
    assert all(rule.code.lower() in words for rule in RULES)


def test_the_page_to_try_it_on_says_that_it_has_no_editor(
    site: Path, pages: dict[Path, Page]
) -> None:
    assert "The editor is not part of this copy" in pages[site / "docs" / "try.html"].text
