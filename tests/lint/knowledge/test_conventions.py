"""The table of conventions: its form, what each row silences, and a team's own rows.

Each row is tried by programs made of its `applies_to`, `effect` and `example`, so a new row is
tested without a line here. A comment says of a line that it is silent or reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flake8_run import flake8
from linting import PRELUDE, in_package

from flake8_torchperf.cache.key import conditions
from flake8_torchperf.cli.main import main
from flake8_torchperf.findings.heat_text import hidden_by
from flake8_torchperf.judgement.frequency.protocols import CAUSES, PROTOCOLS
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.knowledge.conventions import (
    FIELDS,
    FILE,
    LEAST_EVIDENCE,
    TABLE,
    Convention,
    ConventionError,
    load_conventions,
    problem_with,
    read_conventions,
)
from flake8_torchperf.linter import lint
from flake8_torchperf.options import OptionError, Options, check_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS = read_conventions(TABLE)
EACH_ROW = pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
# A name that no row speaks of.
PLAIN = "measure"

HELPER = """
def {name}(x: Tensor):
    return x.max().item()  # {outcome}
"""
LOOP = """
def {name}(x: Tensor):
    for _ in range(9):
        print(x.max().item())  # reported
"""
TRAINING = """
def {name}(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]):
    total = 0.0
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()  # reported
    return total
"""
COPY = """
def {name}(x: Tensor):
    return x.cpu()  # {outcome}
"""
IN_A_CLASS = """
class {name}:
    def measure(self, x: Tensor):
        return x.max().item()  # {outcome}

    def run_all(self, model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]):
        for batch in batches:
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            print(loss.item())  # reported
"""
LOOP_OVER = """
def {function}(things):
    for {name} in things():
        print(torch.ones(3, device="cuda").max().item())  # {outcome}
"""
COPY_IN_A_CLASS = """
class {name}:
    def measure(self, x: Tensor):
        return x.cpu()  # {outcome}
"""
IMPORTING = """
from {package} import {module} as imported
"""
DECORATED = """
from keeping import {example}


@{example}
def {name}(x: Tensor):
    return x.max().item()  # {outcome}
"""
BRANCHES = {
    "branch-cold": "if self.cfg.{example}:",
    "warning": "if self.strange:",
}
STEP = """
class Net(nn.Module):
    def forward(self, x: Tensor, y):
        {test}
            {first}
            print(x.max().item())  # {outcome}
        print(x.max().item())  # reported
        return x
"""
VARIABLE = """
class Net(nn.Module):
    def forward(self, {name}: Tensor):
        return {name}.max().item()  # {outcome}
"""


def of_function(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Programs with a function of the row's example, and one of another name."""
    if row.effect == "hot":
        yield "model.py", COPY.format(name=row.example, outcome="reported")
        yield "model.py", COPY.format(name=PLAIN, outcome="silent")
        return
    yield "model.py", HELPER.format(name=row.example, outcome=silent)
    yield "model.py", HELPER.format(name=PLAIN, outcome="reported")
    yield "model.py", TRAINING.format(name=row.example)
    if row.effect == "cold-outside-loops":
        yield "model.py", LOOP.format(name=row.example)


def of_class(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Programs with a class of the row's example, and one of another name."""
    text = COPY_IN_A_CLASS if row.effect == "hot" else IN_A_CLASS
    outcomes = ("reported", "silent") if row.effect == "hot" else (silent, "reported")
    for name, outcome in zip((row.example, "Thing"), outcomes, strict=True):
        yield "model.py", text.format(name=name, outcome=outcome)


def of_file(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Programs in a module or package of the row's example, and in one of another name."""
    name = "lib/{}.py" if row.applies_to == "module" else "lib/{}/thing.py"
    if row.effect == "hot":
        yield name.format(row.example), COPY.format(name=PLAIN, outcome="reported")
        yield name.format("other"), COPY.format(name=PLAIN, outcome="silent")
        return
    yield name.format(row.example), HELPER.format(name=PLAIN, outcome=silent)
    yield name.format(row.example), TRAINING.format(name="learn")
    yield name.format("other"), HELPER.format(name=PLAIN, outcome="reported")
    if row.effect == "cold-outside-loops":
        yield name.format(row.example), LOOP.format(name=PLAIN)


def of_loop(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Loops of a function of which nothing is known, with the row's example in the head or not."""
    for name, outcome in ((row.example, "reported"), ("thing", "silent")):
        yield "model.py", LOOP_OVER.format(function=PLAIN, name=name, outcome=outcome)


def of_import(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Programs that import the row's example, and one that does not."""
    package, _, module = row.example.rpartition(".")
    imports = IMPORTING.format(package=package or ".", module=module)
    body = TRAINING.format(name="learn")
    yield "model.py", imports + HELPER.format(name=PLAIN, outcome=silent) + body
    yield "model.py", HELPER.format(name=PLAIN, outcome="reported")


def of_decorator(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Programs with the row's example as decorator, and with another."""
    yield "model.py", DECORATED.format(example=row.example, name=PLAIN, outcome=silent)
    yield "model.py", DECORATED.format(example="counted", name=PLAIN, outcome="reported")


def of_branch(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Steps with a branch that asks the row's example, or calls it first, and another branch."""
    for example, outcome in ((row.example, silent), ("wide", "reported")):
        test = BRANCHES[row.effect].format(example=example)
        first = f'logger.{example}("odd")' if row.effect == "warning" else "y()"
        yield "model.py", STEP.format(test=test, first=first, outcome=outcome)


def of_variable(row: Convention, silent: str) -> Iterator[tuple[str, str]]:
    """Steps that read a variable of the row's example, and of another name."""
    yield "model.py", VARIABLE.format(name=row.example, outcome=silent)
    yield "model.py", VARIABLE.format(name="logits", outcome="reported")


PROGRAMS = {
    "function": of_function,
    "class": of_class,
    "module": of_file,
    "package": of_file,
    "import": of_import,
    "decorator": of_decorator,
    "loop": of_loop,
    "flag": of_branch,
    "call": of_branch,
    "variable": of_variable,
}
# What a finding's heat says of a row, where that is not the row's id.
TOLD = {"warning": "on a warning path", "on-host": "beside a host tensor"}


def outcomes(source: str) -> list[tuple[int, str]]:
    """Line and outcome of each comment."""
    ends = [
        (number, line.rpartition("# ")[2]) for number, line in enumerate(source.splitlines(), 1)
    ]
    return [(number, end) for number, end in ends if end in ("silent", "reported")]


def lines_told(source: str, filename: str, options: Options) -> set[int]:
    """The lines of findings, and of the reads that they name."""
    found = lint(source, filename, options)
    return {one.line for one in found}


def agrees(source: str, filename: str, options: Options) -> None:
    """Assert that the lines of a program are silent or reported as their comments say."""
    compile(source, "case", "exec", dont_inherit=True)
    told = lines_told(source, filename, options)
    got = [(line, "reported" if line in told else "silent") for line, _ in outcomes(source)]
    assert got == outcomes(source), source


@EACH_ROW
def test_a_pattern_says_how_a_name_begins_or_ends(row: Convention) -> None:
    assert problem_with(row.pattern) == ""


@EACH_ROW
def test_a_row_has_two_independent_projects_as_evidence(row: Convention) -> None:
    owners = {one.partition(":")[0].partition("/")[0].lower() for one in row.evidence}
    assert len(owners) >= LEAST_EVIDENCE, row.evidence
    assert all(one.partition(":")[2].strip() for one in row.evidence), "write 'owner/name: where'"


def test_ids_are_unique() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids))


@EACH_ROW
def test_a_row_speaks_of_its_example(row: Convention) -> None:
    """No row above it takes the name."""
    found = load_conventions().row(row.applies_to, row.example)
    assert found is not None
    assert found.id == row.id


@EACH_ROW
def test_what_a_row_silences_and_what_it_leaves(row: Convention, tmp_path: Path) -> None:
    for number, (name, body) in enumerate(PROGRAMS[row.applies_to](row, "silent")):
        source, filename = PRELUDE + body, name
        if "/" in name:
            filename = in_package(tmp_path / f"case{number}", name, source)
            (tmp_path / f"case{number}" / "__init__.py").unlink()
        agrees(source, filename, Options())


@EACH_ROW
def test_scope_all_names_the_row(row: Convention, tmp_path: Path) -> None:
    if row.effect in ("hot", "host-tensors"):
        pytest.skip("a row that makes hot, or reads free, hides nothing")
    name, body = next(iter(PROGRAMS[row.applies_to](row, "silent")))
    source, filename = PRELUDE + body, name
    if "/" in name:
        filename = in_package(tmp_path / "case", name, source)
        (tmp_path / "case" / "__init__.py").unlink()
    (line,) = [number for number, outcome in outcomes(source) if outcome == "silent"]
    found = [one for one in lint(source, filename, Options(scope=Level.COLD)) if one.line == line]
    said = TOLD.get(row.effect, f"convention {row.id}")
    assert [hidden_by(one.site.heat) for one in found] == [said]


def row_text(**changes: object) -> str:
    """A row as a file holds it, with some fields changed; one that is None is left out."""
    fields: dict[str, object] = {
        "id": "our-writers",
        "applies_to": "function",
        "pattern": "^tabulate_",
        "effect": "cold",
        "reason": "A person reads the tables.",
        "evidence": ["ours/one: a.py", "ours/two: b.py"],
        "example": "tabulate_losses",
    }
    fields.update(changes)
    lines = [f"{key} = {_toml(value)}" for key, value in fields.items() if value is not None]
    return "\n".join(["[[convention]]", *lines, ""])


def _toml(value: object) -> str:
    return str(value) if isinstance(value, list) else f"'{value}'"


ROW = "row 'our-writers': "
MISTAKES: dict[str, tuple[str, str]] = {
    **{f"no {name}": (row_text(**{name: None}), f"{ROW}{name} is missing") for name in FIELDS[1:]},
    "no id": (row_text(id=None), "row 1: id is missing"),
    "an empty reason": (row_text(reason=" "), f"{ROW}reason is no text"),
    "an id with blanks": (row_text(id="our writers"), "row 'our writers': id is no words"),
    "an unknown field": (row_text(colour="red"), f"{ROW}'colour' is none of id, applies_to"),
    "an unknown effect": (row_text(effect="icy"), f"{ROW}effect 'icy' is none of cold,"),
    "an unknown subject": (row_text(applies_to="file"), f"{ROW}applies_to 'file' is none of"),
    "an effect of another subject": (
        row_text(effect="branch-cold"),
        f"{ROW}effect 'branch-cold' is of flag",
    ),
    "no anchor": (row_text(pattern="tabulate_"), f"{ROW}pattern 'tabulate_' is not anchored"),
    "one part without anchor": (
        row_text(pattern="^tabulate_|log"),
        f"{ROW}pattern 'log' is not anchored",
    ),
    "a wildcard on both sides": (
        row_text(pattern=r"^\w*tabulate\w*"),
        rf"{ROW}pattern '^\\w*tabulate\\w*' has a wildcard on both sides",
    ),
    "no pattern at all": (row_text(pattern="^(tab"), f"{ROW}pattern '^(tab': missing )"),
    "too large a number": (
        row_text(pattern="^a{99999999999999999999}"),
        f"{ROW}pattern '^a{{99999999999999999999}}': ",
    ),
    "another example": (
        row_text(example="print_losses"),
        f"{ROW}example 'print_losses' does not match the pattern",
    ),
    "one project": (
        row_text(evidence=["ours/one: a.py", "ours/one: b.py"]),
        f"{ROW}evidence names fewer than two projects",
    ),
    "evidence as text": (row_text(evidence="ours/one: a.py"), f"{ROW}evidence is no list of texts"),
    "an id that is taken above": (row_text() + row_text(), f"{ROW}the id is taken above"),
    "an id of our own": (
        row_text(id=ROWS[0].id),
        f"row {ROWS[0].id!r}: the id is taken in {TABLE}; choose another",
    ),
    "no TOML": ("[[convention]\n", "no TOML: "),
    "TOML nested too deeply": ("a = " + "[" * 100_000, "no TOML: "),
    "no rows": ("convention = 1\n", "convention is no list of rows; write [[convention]]"),
    "another table": ("[[conventions]]\n", "'conventions' is no table; write [[convention]] rows"),
}


@pytest.mark.parametrize(("text", "problem"), list(MISTAKES.values()), ids=list(MISTAKES))
def test_a_mistake_is_one_line_of_file_row_and_what_is_wrong(
    text: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / FILE
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConventionError) as caught:
        load_conventions((tmp_path,))
    assert str(caught.value).startswith(f"{file}: {problem}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(row_text().replace("A person", "Ein Mädchen").encode("latin-1"))
    with pytest.raises(ConventionError, match=r"conventions\.toml: not UTF-8 text; save it as"):
        load_conventions((tmp_path,))


def test_a_folder_in_the_file_s_place(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(ConventionError, match=r"conventions\.toml: cannot be read: Is a directory"):
        load_conventions((tmp_path,))


def test_one_id_in_two_folders_names_the_second_file(tmp_path: Path) -> None:
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
        (folder / FILE).write_text(row_text(), encoding="utf-8")
    with pytest.raises(ConventionError) as caught:
        load_conventions(folders)
    first, second = (folder / FILE for folder in folders)
    assert str(caught.value) == f"{second}: {ROW}the id is taken in {first}; choose another"


def test_a_folder_given_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("\ufeff" + row_text(), encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path)
    rows = load_conventions((tmp_path, tmp_path / "link")).rows
    assert [row.id for row in rows[:2]] == ["our-writers", ROWS[0].id]


def test_options_name_the_option_that_gives_the_folder(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(row_text(effect="icy"), encoding="utf-8")
    with pytest.raises(OptionError, match=r"^--rules: .*conventions\.toml: row 'our-writers': "):
        check_rules("--rules", (tmp_path,))


def test_flake8_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(row_text(pattern="log"), encoding="utf-8")
    (tmp_path / "model.py").write_text("import torch\n", encoding="utf-8")
    run = flake8("--torchperf-rules=./", "model.py", cwd=tmp_path)
    assert (run.status, run.output) == (2, "")
    (line,) = run.errors.splitlines()
    assert f"error: --torchperf-rules: {tmp_path / FILE}: {ROW}pattern 'log' is not" in line


def test_confirm_ends_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    (tmp_path / FILE).write_text(row_text(pattern="log"), encoding="utf-8")
    (tmp_path / "model.py").write_text("import torch\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["confirm", str(tmp_path / "model.py"), "--rules", str(tmp_path)])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    told = f"--torchperf-rules: {tmp_path / FILE}: {ROW}pattern 'log' is not"
    assert line.startswith(f"torchperf confirm: error: {told}")


def test_a_row_of_a_team_silences_and_is_named(tmp_path: Path) -> None:
    source = PRELUDE + HELPER.format(name="tabulate_losses", outcome="silent")
    (tmp_path / "model.py").write_text(source, encoding="utf-8")
    folder = tmp_path / "perf-rules"
    folder.mkdir()
    (folder / FILE).write_text(row_text(), encoding="utf-8")
    arguments = ("--select=TPF", "model.py")
    assert flake8(*arguments, cwd=tmp_path).codes == ["TPF101"]
    arguments = ("--torchperf-rules=./perf-rules", *arguments)
    assert flake8(*arguments, cwd=tmp_path).codes == []
    run = flake8("--torchperf-scope=all", "--torchperf-explain", *arguments, cwd=tmp_path)
    (told,) = run.results
    assert "(hidden by default: convention our-writers; reason: annotation of" in told.text


def test_explain_says_nothing_of_what_the_default_scope_reports() -> None:
    source = PRELUDE + HELPER.format(name=PLAIN, outcome="reported")
    (told,) = lint(source, "model.py", Options(scope=Level.COLD, explain=True))
    assert "hidden" not in told.message
    assert "(reason: " in told.message


def test_what_is_remembered_depends_on_the_conventions(tmp_path: Path) -> None:
    options = Options(rules=(tmp_path,))
    none = conditions(options)
    (tmp_path / FILE).write_text(row_text(), encoding="utf-8")
    one = conditions(options)
    (tmp_path / FILE).write_text(row_text(effect="hot"), encoding="utf-8")
    assert len({none, one, conditions(options)}) == 3


def test_protocols_are_well_formed() -> None:
    protocols = tomllib.loads(PROTOCOLS.read_text(encoding="utf-8"))["protocol"]
    ids = [one["id"] for one in protocols]
    assert len(ids) == len(set(ids))
    fields = (*CAUSES, "request")
    for one in protocols:
        assert set(one) <= {"id", "kinds", "bases", "has", "takes", "source", *fields}, one["id"]
        assert "takes" not in one or "request" in one, one["id"]
        assert one["source"].strip(), one["id"]
        methods = [name for field in fields for name in one.get(field, ())]
        assert methods, f"{one['id']} names no method"
        assert len(methods) == len(set(methods)), f"{one['id']} names a method twice"
        lists = [one.get(name, []) for name in ("kinds", "bases", *fields)]
        assert all(isinstance(name, str) and name for names in lists for name in names), one["id"]
