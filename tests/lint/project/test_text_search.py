"""The search for a word in all modules of a package, one by one and by the index of its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.project.texts import text_search
from flake8_torchperf.project.texts.text_search import MOST_MODULES, TextSearch

MODULES = {
    "plain.py": "from package import total\nprint(total)\n",
    "call.py": "total (1)\n",
    "method.py": "self.total(1)\n",
    "longer.py": "totals = sub_total + totalé\n",
    "defined.py": "def total():\n    pass\n",
}


@pytest.fixture(params=["searched", "by words"])
def package(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> TextSearch:
    """The modules above; the words of all are gathered at once, or not at all."""
    monkeypatch.setattr(text_search, "SEARCHES", 0 if request.param == "by words" else 99)
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return TextSearch([str(tmp_path / name) for name in MODULES])


def names(paths: tuple[str, ...] | None) -> list[str]:
    """The names of modules, which must not be too many."""
    assert paths is not None
    return [Path(path).stem for path in paths]


def test_a_longer_word_is_another(package: TextSearch) -> None:
    assert names(package.that_say("total")) == ["plain", "call", "method", "defined"]
    assert names(package.that_say(".total")) == ["method"]
    assert names(package.that_say("def total")) == ["defined"]
    assert names(package.that_say("tota")) == []


@pytest.mark.parametrize(
    ("text", "is_read", "is_named"),
    [
        ("x.total(1)\n", True, False),
        ("(x.  # the sum\n    total(1))\n", True, False),
        ("x. \\\n    total(1)\n", True, False),
        ("x.totals(1)\n", False, False),
        ("getattr(x, 'total')\n", False, True),
        ('getattr(x, r"total")\n', False, True),
        ("getattr(x, 'totals')\n", False, False),
        ("def total(self): ...\n", False, False),
    ],
)
@pytest.mark.parametrize("searches", [0, 99])
def test_reads_of_an_attribute_and_texts_that_name_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    is_read: bool,
    is_named: bool,
    searches: int,
) -> None:
    monkeypatch.setattr(text_search, "SEARCHES", searches)
    path = tmp_path / "one.py"
    path.write_text(text, encoding="utf-8")
    search = TextSearch([str(path)])
    assert bool(search.that_say(".total")) == is_read
    assert bool(search.that_say('"total"')) == is_named


def test_a_word_of_too_many_modules(package: TextSearch, tmp_path: Path) -> None:
    paths = [tmp_path / f"m{number}.py" for number in range(MOST_MODULES + 1)]
    for path in paths:
        path.write_text("common = total\n", encoding="utf-8")
    many = TextSearch(list(map(str, paths)))
    assert many.that_say("common") is None
    assert len(names(TextSearch(list(map(str, paths[1:]))).that_say("common"))) == MOST_MODULES
