"""What a compiled build writes out does, as Python, what the module does that it was written from."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import compiling
import pytest
from native import CHANGED, LEFT_OUT, NotPlainError, is_left_out, native

from flake8_torchperf.values import record

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "flake8_torchperf"
COMPILED = [
    file
    for folder in re.findall(r'^    "(\w+)",$', (ROOT / "setup.py").read_text(), re.MULTILINE)
    for file in sorted((PACKAGE / folder).rglob("*.py"))
    if not is_left_out(file.relative_to(PACKAGE).as_posix())
]
RECORDS = '''\
from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from functools import cached_property

from flake8_torchperf.values.record import record

BESIDE = ("host", "device")
KINDS = (ast.Name, ast.Call)


@record
class Tensor:
    """A tensor."""

    reason: str = field(compare=False)
    device: str = "unknown"
    chain: tuple[str, ...] = ()

    def moved(self, device: str) -> Tensor:
        """The same elsewhere."""
        return replace(self, device=device)


@dataclass(frozen=True, eq=False)
class Table:
    """Names to what they stand for.

    Of one module.
    """

    module: str
    names: dict[str, int] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """Made once."""
        self.names["asked"] = self.names.get("asked", 0) + 1
        return f"{self.module}:{len(self.names)}"


@dataclass(slots=True)
class Budget:
    """What is left."""

    steps: int = 3


def is_known(node: ast.AST, device: str) -> bool:
    """Is it of a kind, or of a device, that has a name?"""
    match node:
        case ast.Attribute(attr="T"):
            return True
    return isinstance(node, KINDS) or isinstance(node, ast.Await) or device in BESIDE


def fails() -> None:
    """Raise an error."""
    raise ValueError("no number")
'''


def module(text: str) -> Any:
    made = ModuleType("written_out")
    sys.modules[made.__name__] = made  # where dataclasses look for what annotations name
    exec(compile(text, "written_out.py", "exec"), made.__dict__)
    return made


@pytest.fixture(params=["python", "native"])
def records(request: pytest.FixtureRequest) -> Any:
    return module(RECORDS if request.param == "python" else native(RECORDS))


def test_records_are_equal_by_the_fields_that_are_compared(records: Any) -> None:
    one, other = records.Tensor("a"), records.Tensor("b", chain=())
    assert one == other
    assert hash(one) == hash(other)
    assert one != records.Tensor("a", "host")
    assert one != "a"
    assert len({one, other, records.Tensor("a", "host")}) == 2
    nan = float("nan")
    assert records.Tensor("a", nan) == records.Tensor("a", nan)


def test_a_copy_changes_only_what_is_named(records: Any) -> None:
    moved = records.Tensor("a", chain=("add",)).moved("host")
    assert (moved.reason, moved.device, moved.chain) == ("a", "host", ("add",))


def test_what_is_not_compared_is_itself_alone(records: Any) -> None:
    assert records.Table("m") != records.Table("m")
    assert records.Table("m").names is not records.Table("m").names


def test_a_property_is_found_once(records: Any) -> None:
    table = records.Table("m")
    assert (table.key, table.key, table.names) == ("m:1", "m:1", {"asked": 1})


def test_what_may_change_can_be_changed(records: Any) -> None:
    budget = records.Budget()
    budget.steps -= 1
    assert budget == records.Budget(2)
    with pytest.raises(TypeError):
        hash(module(RECORDS).Budget())


def test_names_stand_for_the_same(records: Any) -> None:
    name, attribute, other = (ast.parse(t, mode="eval").body for t in ("x", "x.T", "x.y"))
    assert records.is_known(name, "")
    assert records.is_known(attribute, "")
    assert records.is_known(other, "host")
    assert not records.is_known(other, "")


def test_errors_name_the_same_line(records: Any) -> None:
    with pytest.raises(ValueError, match="no number") as caught:
        records.fails()
    assert RECORDS.splitlines()[caught.traceback[-1].lineno] == '    raise ValueError("no number")'


def test_records_are_no_dataclasses_any_more() -> None:
    written = module(native(RECORDS))
    with pytest.raises(TypeError):
        replace(written.Tensor("a"), device="host")
    assert record.changed(written.Tensor("a"), device="host").device == "host"


@pytest.mark.parametrize(
    "body",
    ["    x: int = field(repr=False)", "    x = 1", "    x: int = field(default=1, kw_only=True)"],
)
def test_what_it_does_not_know_it_refuses(body: str) -> None:
    text = f'from dataclasses import dataclass, field\n\n\n@dataclass\nclass A:\n    """A."""\n\n{body}\n'
    with pytest.raises(NotPlainError):
        native(text)


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_no_line_of_code_moves(file: Path) -> None:
    """Tracebacks of compiled code name the lines that people read."""
    text = file.read_text(encoding="utf-8")
    assert last_lines(native(text)) == last_lines(text)


def last_lines(text: str) -> list[tuple[str, int]]:
    """Each function that takes more than a line, with the line of its last statement."""
    return sorted(
        (node.name.removeprefix("_find_"), node.body[-1].lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and node.lineno < node.body[-1].lineno
        and node.name != CHANGED
    )


def test_a_wish_for_a_compiled_build_that_nobody_understands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"0": "NO", "": "NO", "1": "YES"}
    for value, wish in known.items():
        monkeypatch.setenv(compiling.ASKED, value)
        assert compiling.wish().name == wish
    monkeypatch.setenv(compiling.ASKED, "false")
    with pytest.raises(
        SystemExit, match="is 'false': write 1 or auto to compile, 0 for plain Python"
    ):
        compiling.wish()


def test_what_stays_python_is_there() -> None:
    assert all((PACKAGE / module).is_file() for module in LEFT_OUT)
    assert {"transfer", "models", "syntax"} <= {file.parent.name for file in COMPILED}
