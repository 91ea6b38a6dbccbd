"""Every mistake in a rule page ends in one line that names the file, the line and what to do."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from linting import ALL

from flake8_torchperf.findings import catalogue as catalogue_module
from flake8_torchperf.findings import vocabulary
from flake8_torchperf.findings.catalogue import (
    CatalogueError,
    PageError,
    load_catalogue,
    pages_folder,
)
from flake8_torchperf.findings.documentation import expected_findings
from flake8_torchperf.findings.page import PageText, read_text
from flake8_torchperf.findings.vocabulary import check_words
from flake8_torchperf.judgement.judged_site import Judged
from flake8_torchperf.linter import lint
from flake8_torchperf.values.site import SiteKind

PAGE = """\
+++
code = "TPF701"
name = "house-rule"
family = "house rules"
scope = "hot"
priority = 50
message = "{expression} is slow {where}: {instead}"
hot = ["execute_model", "Engine.*"]

[instead]
default = "use the cache"
"item|float" = "keep {operand}"

[[match]]
kind = "HostRead"
operations = ["item"]

[[match]]
functions = ["mylib.io.fetch"]
heat = "loop"

[evidence]
counter = "host_reads"
law = "call"

[example]
call = "f"
inputs = { x = "torch.randn(n)" }
+++
# house-rule (TPF701)

## What it does

Reports fetches.

## Bad

```python
# a comment that is no heading
f(x)  # TPF701
```

## Good

```python
g(x)
```
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def load(folder: Path, page: str, name: str = "TPF701-house-rule.md") -> str:
    """The text of the error that loading this page raises."""
    (folder / name).write_text(page, encoding="utf-8")
    with pytest.raises(PageError) as caught:
        load_catalogue((folder,))
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{folder / name}:")


def test_a_page_of_a_repository_adds_a_rule(folder: Path) -> None:
    (folder / "TPF701-house-rule.md").write_text(PAGE, encoding="utf-8")
    (folder / "README.md").write_text("Our rules.", encoding="utf-8")
    catalogue = load_catalogue((folder,))
    rule = catalogue.rule("TPF701")
    assert rule is not None
    assert not rule.own
    assert catalogue.called_functions == {"mylib.io.fetch"}
    assert catalogue.hot == ("execute_model", "Engine.*")
    assert rule.matches[1].kind is SiteKind.CALL
    assert rule.advice("float") == "keep {operand}"
    assert rule.advice("int") == "use the cache"


def test_loading_twice_reads_once(folder: Path) -> None:
    (folder / "TPF701-house-rule.md").write_text(PAGE, encoding="utf-8")
    assert load_catalogue((folder,)) is load_catalogue((folder,))


def test_a_rule_that_only_declares_hot_functions(folder: Path) -> None:
    head, tail = PAGE.split("[[match]]", 1)[0], PAGE[PAGE.index("[evidence]") :]
    (folder / "TPF701-house-rule.md").write_text(head + tail, encoding="utf-8")
    assert load_catalogue((folder,)).hot == ("execute_model", "Engine.*")


MISTAKES = [
    ('code = "TPF701"', 'code = "ABC701"', "2: 'ABC701' is no code; write TPF and three digits"),
    ('code = "TPF701"', 'code = "TPF7"', "2: 'TPF7' is no code; write TPF and three digits"),
    (
        'code = "TPF701"',
        'code = "TPF101"',
        "2: TPF101 is kept for the plugin's own rules; take TPF700-TPF899 or TPF902-TPF999",
    ),
    ('code = "TPF701"', 'code = "TPF900"', "2: TPF900 is reserved for files that cannot be"),
    ('code = "TPF701"', "code = 701", "2: 'code' must be text in quotes"),
    ('code = "TPF701"', 'code = "TPF702"', "1: rename the file to TPF702-house-rule.md"),
    ('name = "house-rule"', 'name = "House Rule"', "3: 'House Rule' is no name; write lower-case"),
    ('name = "house-rule"', 'nmae = "house-rule"', "3: unknown key 'nmae'; did you mean 'name'?"),
    ('name = "house-rule"\n', "", "1: 'name' is missing; add it to the front matter"),
    ('scope = "hot"', 'scope = "hott"', "5: unknown scope 'hott'; did you mean 'hot'?"),
    ("priority = 50", 'priority = "high"', "6: 'priority' must be a whole number from 0 to 100"),
    ("priority = 50", "priority = 101", "6: 'priority' must be a whole number from 0 to 100"),
    ("priority = 50", "priority = true", "6: 'priority' must be a whole number from 0 to 100"),
    ("priority = 50", "priority = ", "6: not valid TOML: "),
    ("{where}", "{were}", "7: unknown placeholder {were} in 'message'; did you mean 'where'?"),
    ("{where}", "{where!r}", "7: placeholder {where} in 'message' takes no format; write it alone"),
    ("{where}", "{where", "7: 'message': "),
    ("{where}", "{expression.node}", "7: unknown placeholder {expression.node} in 'message'"),
    ('hot = ["execute_model", "Engine.*"]', 'hot = "f"', "8: 'hot' must be a list of texts, such"),
    ('"Engine.*"]', '"a b("]', "8: 'a b(' is not a function name or glob; write for example"),
    ('"Engine.*"]', '"Engine.["]', "8: 'Engine.[' is not a function name or glob; write for"),
    (
        'operations = ["item"]',
        'traits = ["to-devise"]',
        "16: unknown trait 'to-devise'; did you mean 'to-device'?",
    ),
    ('operations = ["item"]', 'not_traits = ["zzz"]', "16: unknown trait 'zzz'; known are "),
    ('heat = "loop"', 'traits = ["zzz"]', "20: unknown trait 'zzz'; known are "),
    ('default = "use the cache"\n', "", "10: [instead] needs the key 'default'"),
    ("keep {operand}", "keep {instead}", "12: unknown placeholder {instead} in 'item|float'"),
    ('kind = "HostRead"', 'kind = "HostReads"', "15: unknown kind 'HostReads'; did you mean 'Hos"),
    ('kind = "HostRead"', 'kind = "Call"', "15: kind \"Call\" needs 'functions': the qualified"),
    ('kind = "HostRead"\n', "", "14: [[match]] needs a 'kind' or 'functions'"),
    ('operations = ["item"]', 'operations = "item"', "16: 'operations' must be a list of texts"),
    ('operations = ["item"]', 'operation = ["item"]', "16: unknown key 'operation' in [match]; di"),
    ('operations = ["item"]', 'dtype = "mask"', "16: unknown dtype 'mask'; known are bool, int, "),
    ('["mylib.io.fetch"]', '["fetch"]', "19: 'fetch' is no qualified name; write it as 'package."),
    ('["mylib.io.fetch"]', '["a.b"]\noperations = ["c"]', "19: 'functions' stands for kind"),
    ('heat = "loop"', 'heat = "loops"', "20: unknown heat 'loops'; did you mean 'loop'?"),
    ('counter = "host_reads"', 'counter = "reads"', "23: unknown counter 'reads'; did you mean '"),
    ('law = "call"', 'law = "cal"', "24: unknown law 'cal'; did you mean 'call'?"),
    ('law = "call"', 'laws = "call"', "24: unknown key 'laws' in [evidence]; did you mean 'law'?"),
    ('law = "call"', 'law = "call"\nat_least = "1"', "25: 'at_least' must be a number, 0 or more"),
    ('call = "f"', 'calls = "f"', "27: unknown key 'calls' in [example]; did you mean 'call'?"),
    ('{ x = "torch.randn(n)" }', '"x"', "28: 'inputs' must be a table, such as inputs ="),
    ("[example]", "[exmaple]", "26: unknown key 'exmaple'; did you mean 'example'?"),
    ("[[match]]\nkind", "[match]\nkind", "18: not valid TOML: Cannot overwrite a value; correct"),
    ("# house-rule (TPF701)\n", "", "30: no title; write '# house-rule (TPF701)'"),
    ("# house-rule (TPF701)", "# house rule", "30: heading '# house rule'; write '# house-rule "),
    ("## Good", "### Good", "43: heading '### Good'; write "),
    ("## What it does", "## What", "30: section '## What it does' is missing or empty; write it"),
    ("Reports fetches.", "", "33: section '## What it does' is missing or empty; write it"),
    ("```python\ng(x)\n```", "g(x)", "44: section '## Good' has no finished ```python block; "),
    ("g(x)\n```\n", "g(x)\n```\n\n```python\nh(x)\n```\n", "44: section '## Good' holds several"),
]


@pytest.mark.parametrize(("old", "new", "error"), MISTAKES, ids=[m[2][:60] for m in MISTAKES])
def test_a_mistake_is_one_line(folder: Path, old: str, new: str, error: str) -> None:
    assert old in PAGE
    assert load(folder, PAGE.replace(old, new, 1)).startswith(error)


def test_no_front_matter(folder: Path) -> None:
    assert load(folder, "# house-rule\n") == "1: no front matter; begin the page with a line '+++'"


def test_front_matter_without_end(folder: Path) -> None:
    page = PAGE.replace("+++\n# house", "# house")
    assert load(folder, page).startswith("1: the front matter does not end; close it with")


def test_a_code_that_is_taken(folder: Path) -> None:
    (folder / "TPF701-house-rule.md").write_text(PAGE, encoding="utf-8")
    text = PAGE.replace("house-rule", "other-rule")
    assert load(folder, text, "TPF701-other-rule.md") == (
        "2: code 'TPF701' is taken by TPF701-house-rule.md; choose another"
    )


def test_a_name_that_is_taken(folder: Path) -> None:
    taken = load_catalogue().rules[0]
    text = PAGE.replace("house-rule", taken.name)
    assert load(folder, text, f"TPF701-{taken.name}.md") == (
        f"3: name {taken.name!r} is taken by {taken.path.name}; choose another"
    )


def test_a_folder_given_twice_counts_once(folder: Path) -> None:
    (folder / "TPF701-house-rule.md").write_text(PAGE, encoding="utf-8")
    (folder / "link").symlink_to(folder)
    twice = load_catalogue((folder, folder / "link"))
    assert twice.rules == load_catalogue((folder,)).rules


def test_our_own_pages_use_words_that_there_are() -> None:
    for rule in load_catalogue().rules:
        check_words(PageText(rule.path, read_text(rule.path)), rule)


def traits_in(source: str) -> Iterator[ast.expr]:
    """What the source of a module makes traits of: texts, and names of texts."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="mark"), args=[ast.expr() as value]):
                yield value
            case ast.Call(func=ast.Attribute(attr="add", value=ast.Name("traits")), args=[value]):
                yield value
            case ast.keyword(arg="traits", value=value):
                yield value
            case ast.Assign(targets=[ast.Name("traits")], value=value):
                yield value
            case ast.AugAssign(target=ast.Name("traits"), value=value):
                yield value
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[asked]):
                if ast.unparse(asked).rpartition(".")[2] == "traits":
                    yield node.left
            case ast.Call(func=ast.Name("Mark"), args=[ast.expr() as value, _]):
                yield value


def texts_of(value: ast.AST, named: dict[str, str]) -> Iterator[str]:
    """The texts in an expression, those with names too, but not what it chooses by."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(name) | ast.Attribute(attr=name) if name in named:
            yield named[name]
        case ast.IfExp():
            yield from texts_of(value.body, named)
            yield from texts_of(value.orelse, named)
        case ast.Compare():
            pass
        case _:
            for part in ast.iter_child_nodes(value):
                yield from texts_of(part, named)


def test_no_trait_that_the_interpreter_gives_is_missing() -> None:
    package = Path(vocabulary.__file__).parents[1]
    folders = (
        "contracts",
        "idioms",
        "interpreter",
        "judgement",
        "suspects",
        "syntax",
        "torch_compile",
        "values",
    )
    sources = [
        path.read_text("utf-8") for name in folders for path in (package / name).rglob("*.py")
    ]
    named = {
        target.id: node.value.value
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    given = {
        text
        for source in sources
        for value in traits_in(source)
        for text in texts_of(value, named)
        if not text.endswith("-")  # "from-" is continued
    }
    assert {"to-device", "compiled", "opaque-body", "in-helper", "over-compiled"} <= given
    assert given <= vocabulary.TRAITS


def test_no_trait_that_a_site_has_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some traits come from functions, which the test above does not follow."""
    found: set[str] = set()

    def is_objected_to(result: Judged, *_others: object) -> bool:
        found.update(trait for site in result.sites for trait in site.traits)
        return False

    monkeypatch.setattr("flake8_torchperf.findings.report.is_objected_to", is_objected_to)
    for rule in load_catalogue().rules:
        lint(PageText(rule.path, read_text(rule.path)).body.split("```")[1][6:], "a.py", ALL)
    for path in Path(__file__).parents[3].glob("fixtures/*/before.py"):
        lint(path.read_text(encoding="utf-8"), "a.py", ALL)
    lint(
        "import torch\n\n\ndef step(x: torch.Tensor):\n    return x.to('cpu', non_blocking=True)\n",
        "a.py",
        ALL,
    )
    assert {"compiled", "from-python", "non-blocking", "to-host"} <= found
    assert found <= vocabulary.TRAITS


def test_not_utf8(folder: Path) -> None:
    (folder / "TPF701-house-rule.md").write_bytes(b'+++\ncode = "\xff"\n+++\n')
    with pytest.raises(PageError, match=r"TPF701-house-rule\.md:1: not UTF-8 text; save the page"):
        load_catalogue((folder,))


def test_a_page_that_is_a_folder(folder: Path) -> None:
    (folder / "TPF701-house-rule.md").mkdir()
    with pytest.raises(PageError, match="cannot be read"):
        load_catalogue((folder,))


def test_no_such_folder(folder: Path) -> None:
    with pytest.raises(CatalogueError, match="name a folder of rule pages"):
        load_catalogue((folder / "missing",))


def test_a_folder_without_pages(folder: Path) -> None:
    with pytest.raises(CatalogueError, match="no rule pages; put pages named TPF7xx"):
        load_catalogue((folder,))


def test_a_strangers_rules_folder_beside_the_package_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """site-packages may hold somebody else's package named rules."""
    home = folder / "flake8_torchperf" / "findings"
    home.mkdir(parents=True)
    monkeypatch.setattr(catalogue_module, "__file__", str(home / "catalogue.py"))
    (folder / "rules").mkdir()
    with pytest.raises(
        CatalogueError, match="the rule pages are missing; install flake8-torchperf"
    ):
        pages_folder()
    (folder / "setup.cfg").write_text("[metadata]\nname = somebody-elses\n")
    with pytest.raises(CatalogueError, match="the rule pages are missing"):
        pages_folder()
    (folder / "setup.cfg").write_text("[metadata]\nname = flake8-torchperf\n")
    assert pages_folder() == folder / "rules"
    shutil.copytree(folder / "rules", folder / "flake8_torchperf" / "rules")
    assert pages_folder() == folder / "flake8_torchperf" / "rules"


def test_markers() -> None:
    code = "a\nb  # TPF101\nc = '# TPF102'\nd  # why  # TPF103, TPF104\n"
    assert expected_findings(code) == [(2, "TPF101"), (4, "TPF103"), (4, "TPF104")]


def test_error_names_file_and_line(folder: Path) -> None:
    path = folder / "TPF701-house-rule.md"
    path.write_text(PAGE.replace('scope = "hot"', 'scope = "x"'), encoding="utf-8")
    with pytest.raises(PageError, match=re.escape(f"{path}:5: unknown scope")):
        load_catalogue((folder,))
