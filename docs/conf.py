"""Sphinx: README.md, the pages of docs/, and the rule pages, as one site.

    nox -s docs

Sphinx reads the pages where they stand, so the links between them work on the site as they do in
the repository. A rule's page is what `torchperf explain` prints.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from flake8_torchperf import __version__  # noqa: E402
from flake8_torchperf.cli.explain import markdown  # noqa: E402
from flake8_torchperf.findings.catalogue import load_catalogue  # noqa: E402
from flake8_torchperf.findings.documentation import read_documentation  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "flake8-torchperf"
version = release = __version__
author = "the flake8-torchperf authors"
language = "en"

extensions = ["myst_parser"]
# The whole repository is the source folder; these are the documents in it.
root_doc = "README"
include_patterns = [
    "README.md",
    "docs/*.md",
    "rules/*.md",
    "benchmarks/*.md",
    "benchmarks/judged/*.md",
    "benchmarks/results/*.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
exclude_patterns = [".*", "build", "dist", "fixtures", "tests"]
nitpicky = True

# Colon fences, so that nothing but examples stands in code blocks.
myst_enable_extensions = ["colon_fence"]
# Links to headings, by the anchors that GitHub makes of them.
myst_heading_anchors = 3

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False
# What docs/try/build.py makes: the files of the page to try the linter on. Tests make their own.
BUILT = Path(os.environ.get("TORCHPERF_TRY") or ROOT / "build" / "try")
HAS_EDITOR = (BUILT / "try" / "packages.tar.gz").is_file()
html_static_path = ["_static", *([str(BUILT)] if HAS_EDITOR else [])]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_additional_pages = {"index": "to_the_first_page.html"}
html_theme_options = {"navigation_with_keys": True}

# The page to try the linter on, and what stands at the mark in its text.
TRY = "docs/try"
MARK = "<!-- editor -->"
EDITOR = """
:::{raw} html
<link rel="stylesheet" href="../_static/try/page.css">
<div id="torchperf-try">
<noscript>The editor needs JavaScript, which is switched off.</noscript>
</div>
<script type="module" src="../_static/try/page.js"></script>
:::
"""
NO_EDITOR = """
:::{note}
The editor is not part of this copy of the site: where it was built, npm was not at hand.
:::
"""

RULES = {f"rules/{rule.path.stem}": rule for rule in load_catalogue().rules}
# The sidebar: what opens below a page, in groups with captions.
BELOW = {
    "README": {
        "Use": [
            "docs/try",
            "docs/configuration",
            "docs/hotness",
            "docs/contracts",
            "docs/inference-and-confidence",
            "docs/check",
            "docs/fixes",
            "docs/verifying-fixes",
            "docs/confirm-and-run",
            "docs/gate",
            "docs/profile",
            "docs/budgets",
            "docs/editors-and-notebooks",
            "docs/agents",
        ],
        "Rules": ["rules/README", "docs/rule-life"],
        "Adapt": ["docs/own-rules", "docs/conventions"],
        "Judge": [
            "docs/accuracy",
            "docs/performance",
            "SECURITY",
            "benchmarks/README",
            "docs/architecture",
            "CONTRIBUTING",
            "docs/releasing",
            "CHANGELOG",
        ],
    },
    "rules/README": {"": [f"{rule.code} {rule.name} </{page}>" for page, rule in RULES.items()]},
    "benchmarks/README": {"": ["/benchmarks/judged/README", "/benchmarks/results/*"]},
}


def fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    """Give a rule's page its text, one page its editor, and others the pages below them."""
    if name in RULES:
        source[0] = markdown(read_documentation(RULES[name]))
    if name == TRY:
        assert MARK in source[0]
        source[0] = source[0].replace(MARK, EDITOR if HAS_EDITOR else NO_EDITOR)
    for caption, pages in BELOW.get(name, {}).items():
        options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
        source[0] += "\n".join(["\n:::{toctree}", *options, *pages, ":::\n"])


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", fill_in)
