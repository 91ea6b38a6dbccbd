"""What is remembered: when it counts, when it does not, and that it never changes a finding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import fork_server
import pytest
from check_run import COMMAND, check, torchperf
from flake8_run import Run, flake8
from hangs import HANG

from flake8_torchperf.cache import key as key_module
from flake8_torchperf.cache.folder import cache_folder
from flake8_torchperf.cache.key import conditions
from flake8_torchperf.digest import digest
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options
from flake8_torchperf.plugin import TorchPerfPlugin

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "rules" / "TPF205-tensor-grown-in-a-loop.md"
HELPER = """\
import torch


def make(n) -> torch.Tensor:
    return torch.ones(n, device="cuda")
"""
HOST_HELPER = "def make(n) -> float:\n    return float(n)\n"
USER = """\
import torch
from pkg.helper import make


def sizes(batches: list[int]) -> list[float]:
    return [float(make(batch)) for batch in batches]
"""


CALLING = """\
import torch
from pkg.helper import largest


def sizes(batches: list[torch.Tensor]) -> list[float]:
    return [largest(batch) for batch in batches]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return written(tmp_path / "project")


def written(folder: Path) -> Path:
    """A package whose one finding depends on another module of it."""
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("")
    (folder / "pkg" / "helper.py").write_text(HELPER)
    (folder / "pkg" / "user.py").write_text(USER)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def analysed(project: Path, cache: Path, *options: str) -> list[str]:
    """Run a check; which files it analysed. Its findings must be those of a run without a cache."""
    found, names = analysed_and_printed(project, cache, *options)
    assert found == check("-j1", *options, cwd=project).output
    return names


def analysed_and_printed(project: Path, cache: Path, *options: str) -> tuple[str, list[str]]:
    program = (
        "import sys\n"
        "import flake8_torchperf.linter as pipeline\n"
        "lint_tree = pipeline.lint_tree\n"
        "def shown(tree, lines, filename, *more, **named):\n"
        "    print(filename, file=sys.stderr)\n"
        "    return lint_tree(tree, lines, filename, *more, **named)\n"
        "pipeline.lint_tree = shown\n"
        "from flake8_torchperf.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    run = torchperf(
        "check",
        "--isolated",
        "-j1",
        *options,
        cwd=project,
        cache=cache,
        program=(sys.executable, "-c", program),
        forked=True,
    )
    assert "Traceback" not in run.errors, run.errors
    return run.output, sorted(run.errors.split())


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.glob("entries/*/*") if path.is_file()]


def test_a_file_is_analysed_once(project: Path, cache: Path) -> None:
    assert analysed(project, cache) == ["./pkg/helper.py", "./pkg/user.py"]
    assert "TPF101" in check(cwd=project, cache=cache).output
    assert analysed(project, cache) == []


def edit(project: Path, name: str, text: str) -> None:
    (project / name).write_text(text)


def package(folder: Path, texts: dict[str, str]) -> Path:
    """Write a package of modules, by their names, below a folder; returns the folder."""
    (folder / "pkg").mkdir(parents=True)
    for name, text in {"__init__": "", **texts}.items():
        edit(folder, f"pkg/{name}.py", text)
    return folder


# What happens between two runs -> the files that are analysed again.
CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda p: None, []),
    "touched": (lambda p: os.utime(p / "pkg" / "user.py", (1, 1)), []),
    "its text": (
        lambda p: edit(p, "pkg/user.py", USER.replace("in batches", "in batches[1:]")),
        ["./pkg/user.py"],
    ),
    "its text, with size and time as before": (
        lambda p: (
            edit(p, "pkg/user.py", USER.replace("def sizes", "def space")),
            os.utime(p / "pkg" / "user.py", (1, 1)),
        ),
        ["./pkg/user.py"],
    ),
    "a module it imports": (
        lambda p: edit(p, "pkg/helper.py", HOST_HELPER + "# torch\n"),
        ["./pkg/helper.py", "./pkg/user.py"],
    ),
    "a module it imports goes": (lambda p: (p / "pkg/helper.py").unlink(), ["./pkg/user.py"]),
    "a module that was missing": (
        lambda p: (
            (p / "pkg/helper.py").rename(p / "pkg/aside.py"),
            (p / "pkg/helper").mkdir(),
            edit(p, "pkg/helper/__init__.py", HOST_HELPER),
        ),
        ["./pkg/aside.py", "./pkg/helper/__init__.py", "./pkg/user.py"],
    ),
    "a name that it does not import": (
        lambda p: edit(
            p, "pkg/helper.py", f"{HELPER}\n\ndef other(n):\n    return make(n).item()\n"
        ),
        ["./pkg/helper.py"],
    ),
    "a comment and blank lines": (
        lambda p: edit(p, "pkg/helper.py", HELPER.replace("\n\n\n", "\n\n# Makes.\n\n\n")),
        ["./pkg/helper.py"],
    ),
    "a constant beside what it imports": (
        lambda p: edit(p, "pkg/helper.py", f"SIZE = 3\n{HELPER}"),
        ["./pkg/helper.py"],
    ),
    "what it imports, replaced further down": (
        lambda p: edit(p, "pkg/helper.py", f"{HELPER}\n\n{HOST_HELPER}"),
        ["./pkg/helper.py", "./pkg/user.py"],
    ),
    "a text in a long string": (
        lambda p: edit(p, "pkg/helper.py", f'"""Makes.\n\n# tensors\n"""\n{HELPER}'),
        ["./pkg/helper.py"],
    ),
    "its package goes": (
        lambda p: (p / "pkg/__init__.py").unlink(),
        ["./pkg/helper.py", "./pkg/user.py"],
    ),
    "a package around it": (
        lambda p: edit(p, "__init__.py", ""),
        ["./pkg/helper.py", "./pkg/user.py"],
    ),
    "a module it does not import": (
        lambda p: edit(p, "pkg/other.py", HELPER),
        ["./pkg/other.py"],
    ),
    "a module that calls a function of its name": (
        lambda p: edit(p, "pkg/other.py", "import torch\nfrom pkg.user import sizes\nsizes([1])\n"),
        ["./pkg/other.py", "./pkg/user.py"],
    ),
}


@pytest.mark.parametrize(("change", "again"), CHANGES.values(), ids=list(CHANGES))
def test_what_makes_it_look_again(
    project: Path, cache: Path, change: Callable[[Path], object], again: list[str]
) -> None:
    check("-j1", cwd=project, cache=cache)
    change(project)
    assert analysed(project, cache) == again


@pytest.mark.parametrize(
    "change",
    [
        lambda p: edit(p, "pkg/user.py", CALLING.replace("in batches", "in batches[1:]")),
        lambda p: edit(p, "pkg/user.py", USER),
        lambda p: edit(p, "pkg/other.py", CALLING),
    ],
    ids=["the text of what calls it", "a call that goes", "a new module that may call it"],
)
def test_a_helper_that_waits_is_looked_at_again(
    project: Path, cache: Path, change: Callable[[Path], object]
) -> None:
    """How hot it is, its callers tell."""
    waiting = HELPER + "\n\ndef largest(x: torch.Tensor):\n    return x.max().item()\n"
    edit(project, "pkg/helper.py", waiting)
    edit(project, "pkg/user.py", CALLING)
    check("-j1", cwd=project, cache=cache)
    change(project)
    assert "./pkg/helper.py" in analysed(project, cache)


def test_a_module_that_was_looked_for_in_vain(project: Path, cache: Path) -> None:
    helper = project / "pkg" / "helper.py"
    helper.unlink()
    assert check(cwd=project, cache=cache).output == ""
    helper.write_text(HELPER)
    assert "TPF101" in check(cwd=project, cache=cache).output
    helper.unlink()
    (project / "pkg" / "helper").mkdir()
    (project / "pkg" / "helper" / "__init__.py").write_text(HELPER)
    assert "./pkg/user.py" in analysed(project, cache)


def test_a_module_two_imports_away(project: Path, cache: Path) -> None:
    edit(project, "pkg/helper.py", "from pkg.deeper import make\n")
    edit(project, "pkg/deeper.py", HELPER)
    assert "TPF101" in check(cwd=project, cache=cache).output
    edit(project, "pkg/deeper.py", HOST_HELPER)
    # It no longer says torch, but reads what a module that does may pass.
    assert analysed(project, cache) == ["./pkg/deeper.py", "./pkg/user.py"]


# What a user imports -> what later makes it concern torch, with syntax errors selected as well.
COMES_TO_CONCERN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the module": ("pkg.helper", lambda p: edit(p, "pkg/helper.py", HELPER)),
    "a module of a package": ("pkg", lambda p: edit(p, "pkg/helper.py", HELPER)),
    "a missing module": ("pkg.missing", lambda p: edit(p, "pkg/missing.py", HELPER)),
    "a module elsewhere": ("tools", lambda p: edit(p, "tools.py", HELPER)),
    "a module that calls it": (
        "pkg.helper",
        lambda p: edit(p, "train.py", "import torch\nfrom pkg.user import sizes\n"),
    ),
}


@pytest.mark.parametrize(
    ("module", "change"), COMES_TO_CONCERN.values(), ids=list(COMES_TO_CONCERN)
)
def test_a_file_that_comes_to_concern_torch(
    project: Path, cache: Path, module: str, change: Callable[[Path], object]
) -> None:
    (project / "requirements.txt").touch()
    edit(project, "pkg/__init__.py", "from pkg.helper import make\n")
    edit(project, "pkg/helper.py", HOST_HELPER)
    edit(project, "pkg/user.py", USER.replace("import torch\n", "").replace("pkg.helper", module))
    options = ("--extend-select=E9",)
    before = len(entries(cache))
    assert analysed(project, cache, *options) == []
    assert len(entries(cache)) == before + 3
    assert analysed(project, cache, *options) == []
    change(project)
    assert "./pkg/user.py" in analysed(project, cache, *options)


@pytest.mark.parametrize(
    "options",
    [
        ("--torchperf-scope=all",),
        ("--torchperf-hot=sizes",),
        ("--torchperf-cold=sizes",),
        ("--torchperf-explain",),
        ("--disable-noqa",),
        ("--show-source",),
        ("--extend-select=E9",),
        ("pkg",),
    ],
)
def test_options_that_change_what_is_found(
    project: Path, cache: Path, options: tuple[str, ...]
) -> None:
    check("-j1", cwd=project, cache=cache)
    assert len(analysed(project, cache, *options)) == 2
    assert analysed(project, cache, *options) == []


@pytest.mark.parametrize(
    "options",
    [("--format=pylint",), ("--select=TPF2",), ("--per-file-ignores=pkg/*:TPF",), ("--count",)],
)
def test_options_that_change_only_the_report(
    project: Path, cache: Path, options: tuple[str, ...]
) -> None:
    check("-j1", cwd=project, cache=cache)
    assert analysed(project, cache, *options) == []


def test_rule_pages_of_ones_own(project: Path, cache: Path) -> None:
    page = PAGE.read_text(encoding="utf-8").replace("TPF205", "TPF955")
    page = page.replace("tensor-grown-in-a-loop", "our-own-growth")
    path = project / "perf-rules" / "TPF955-our-own-growth.md"
    path.parent.mkdir()
    path.write_text(page, encoding="utf-8")
    option = "--torchperf-rules=./perf-rules"
    assert len(analysed(project, cache, option)) == 2
    assert analysed(project, cache, option) == []
    path.write_text(page + "\nAnd more.\n", encoding="utf-8")
    assert len(analysed(project, cache, option)) == 2


def test_conditions_hold_what_every_finding_depends_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def now(options: Options) -> str:
        key_module._linter.cache_clear()
        return conditions(options)

    plain = now(Options())
    assert now(Options()) == plain
    assert now(Options(cache=True, cache_folder=tmp_path)) == plain
    assert now(Options(scope=Level.COLD)) != plain
    assert now(Options(hot=("a", "b"))) != now(Options(hot=("ab",)))
    monkeypatch.setattr(key_module, "__version__", "99")
    assert now(Options()) != plain
    monkeypatch.undo()
    monkeypatch.setattr(sys, "version", "4.0")
    assert now(Options()) != plain
    monkeypatch.undo()
    assert now(Options()) == plain


@pytest.mark.parametrize(
    "name",
    [
        "interpreter/calls/call_dispatch.py",
        "plugin.py",
        "knowledge/torch_table.json",
        "knowledge/supplement.toml",
        "rules/TPF101-read-of-a-tensor-value.md",
    ],
)
def test_conditions_hold_the_linter_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """A checkout changes while its version stays, and so does its table."""
    package = tmp_path / "flake8_torchperf"
    for part in ("cache/key.py", name):
        (package / part).parent.mkdir(parents=True, exist_ok=True)
        (package / part).write_text("one")
    monkeypatch.setattr(key_module, "__file__", str(package / "cache" / "key.py"))
    key_module._linter.cache_clear()
    before = conditions(Options())
    (package / name).write_text("two")
    key_module._linter.cache_clear()
    after = conditions(Options())
    key_module._linter.cache_clear()
    assert before != after


def corrupt_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))


def signed(path: Path, body: bytes) -> None:
    path.write_bytes(digest(body).encode() + b"\n" + body)


def packed(path: Path, body: bytes) -> None:
    signed(path, zlib.compress(body))


def reshaped(path: Path, **changes: object) -> None:
    entry = json.loads(zlib.decompress(path.read_bytes().partition(b"\n")[2]))
    packed(path, json.dumps({**entry, **changes}).encode())


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda p: p.write_bytes(b""),
    "cut": lambda p: p.write_bytes(p.read_bytes()[:-7]),
    "longer": lambda p: p.write_bytes(p.read_bytes() + b"x"),
    "one bit": corrupt_bytes,
    "binary": lambda p: p.write_bytes(bytes(range(256)) * 40),
    "not compressed": lambda p: signed(p, b"[1, 2]"),
    "not JSON": lambda p: packed(p, b"findings"),
    "deep JSON": lambda p: packed(p, b"[" * 100_000),
    "other JSON": lambda p: packed(p, b"[1, 2]"),
    "no rows": lambda p: reshaped(p, rows=None),
    "rows of another shape": lambda p: reshaped(p, rows=[["TPF101", "x"]]),
    "rows of other types": lambda p: reshaped(p, rows=[["TPF101", "1", 2, "text", None]]),
    "no reads": lambda p: reshaped(p, reads={"a": 1}),
    "a folder": a_folder,
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """A project, and what a check of it finds."""
    folder = written(tmp_path_factory.mktemp("checked") / "project")
    return folder, check(cwd=folder)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_entry_is_a_miss(
    checked: tuple[Path, Run], cache: Path, damage: Callable[[Path], object]
) -> None:
    project, expected = checked
    check("-j1", cwd=project, cache=cache)
    assert entries(cache)
    for path in entries(cache):
        damage(path)
    found = check("-j1", cwd=project, cache=cache)
    assert (found.output, found.status) == (expected.output, expected.status)
    if damage is not a_folder:
        assert found.errors == ""
        assert analysed_and_printed(project, cache) == (expected.output, [])


def test_a_folder_that_cannot_be_written(project: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    expected = check(cwd=project)
    found = check(cwd=project, cache=blocked / "cache")
    assert (found.output, found.status) == (expected.output, expected.status)
    assert found.errors.startswith("torchperf: check: findings can't be remembered: ")
    assert found.errors.count("\n") == 1


def test_runs_at_once_share_a_cache(project: Path, cache: Path) -> None:
    (project / "requirements.txt").touch()
    for number in range(12):
        edit(project, f"pkg/user{number}.py", USER)
    options = ("--isolated", "--min-worth=0", "-j2", "--cache-dir", str(cache))
    command = [*COMMAND, "check", *options, "."]
    started = [
        subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    outputs = {run.communicate(timeout=HANG) for run in started}
    expected = check(cwd=project)
    assert expected.output.count("TPF101") == 13
    assert outputs == {(expected.output.encode(), b"")}
    assert len(entries(cache)) == len(list(project.rglob("*.py")))
    assert not list(cache.rglob("*.tmp"))


def test_no_cache_writes_nothing(project: Path, cache: Path) -> None:
    check("--no-cache", cwd=project, cache=cache)
    assert not cache.exists()


def test_the_configuration_can_say_no_and_where(project: Path, cache: Path, tmp_path: Path) -> None:
    (project / "setup.cfg").write_text("[flake8]\ntorchperf-cache = no\n")
    check(cwd=project, cache=cache, isolated=False)
    assert not cache.exists()
    (project / "setup.cfg").write_text("[flake8]\ntorchperf-cache-dir = ./remembered\n")
    check("pkg", cwd=project, cache=cache, isolated=False)
    assert entries(project / "remembered")
    assert not cache.exists()
    assert (project / "remembered" / ".gitignore").read_text() == "*\n"
    assert (project / "remembered" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d")


def test_the_cache_command_looks_where_the_configuration_says(project: Path, cache: Path) -> None:
    folder = project / "remembered"
    (project / "setup.cfg").write_text("[flake8]\ntorchperf-cache-dir = ./remembered\n")
    check("pkg", cwd=project, cache=cache, isolated=False)
    for place in (project, project / "pkg"):
        shown = torchperf("cache", cwd=place, cache=cache)
        assert shown.output.startswith(f"{folder}: 2 entries, ")
        assert " KiB, at most 256.0 MiB" in shown.output
    named = torchperf("cache", "--cache-dir", folder, cwd=project.parent, cache=cache)
    assert named.output.startswith(f"{folder}: 2 entries, ")
    cleared = torchperf("cache", "--clear", cwd=project, cache=cache)
    assert cleared.output.startswith(f"{folder}: removed 2 entries, ")
    assert entries(folder) == []


@pytest.mark.parametrize("setting", ["torchperf-cache-dir = ./setup.cfg", "ignore = not-a-code!"])
def test_the_cache_command_with_a_wrong_configuration_is_one_line(
    project: Path, cache: Path, setting: str
) -> None:
    (project / "setup.cfg").write_text(f"[flake8]\n{setting}\n")
    run = torchperf("cache", "--clear", cwd=project, cache=cache)
    assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)


def test_internal_errors_are_not_remembered(project: Path, cache: Path) -> None:
    program = (
        "import sys\n"
        "import flake8_torchperf.linter as pipeline\n"
        "def broken(*_, **__): raise KeyError('broken')\n"
        "pipeline.lint_tree = broken\n"
        "from flake8_torchperf.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    run = torchperf(
        "check",
        "-j1",
        cwd=project,
        cache=cache,
        program=(sys.executable, "-c", program),
        debug=False,
        forked=True,
    )
    assert "TPF900" in run.output
    assert "KeyError" in run.output
    assert entries(cache) == []


def test_a_file_that_changes_while_it_is_linted_is_not_remembered(
    project: Path, cache: Path
) -> None:
    program = (
        "import sys\n"
        "import flake8_torchperf.linter as pipeline\n"
        "lint_tree = pipeline.lint_tree\n"
        "def edited(tree, lines, filename, *more, **named):\n"
        "    open(filename, 'a').write('# saved\\n')\n"
        "    return lint_tree(tree, lines, filename, *more, **named)\n"
        "pipeline.lint_tree = edited\n"
        "from flake8_torchperf.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    command = (sys.executable, "-c", program)
    torchperf("check", "-j1", cwd=project, cache=cache, program=command, forked=True)
    assert (project / "pkg" / "user.py").read_text() == f"{USER}# saved\n"
    assert entries(cache) == []


def test_the_plugin_remembers_where_it_is_told_to(project: Path, cache: Path) -> None:
    options = ("--select=TPF", "--torchperf-cache", f"--torchperf-cache-dir={cache}", "pkg")
    plain = flake8("--select=TPF", "pkg", cwd=project)
    assert flake8("--select=TPF", f"--torchperf-cache-dir={cache}", "pkg", cwd=project) == plain
    assert not cache.exists()
    assert flake8(*options, cwd=project) == plain
    assert len(entries(cache)) == 2
    assert flake8(*options, cwd=project) == plain
    edit(project, "pkg/helper.py", HOST_HELPER)
    assert flake8(*options, cwd=project).output == ""


def test_each_run_in_one_process_looks_again(project: Path, cache: Path) -> None:
    """A server may call flake8 again and again."""
    options = ["--isolated", "-j1", "--select=TPF", "--torchperf-cache", "pkg"]
    options.append(f"--torchperf-cache-dir={cache}")
    program = (
        "from pathlib import Path\n"
        "from flake8.main.cli import main\n"
        f"runs = [main({options!r}), main({options!r})]\n"
        f"Path('pkg/helper.py').write_text({HOST_HELPER!r})\n"
        f"print(*runs, main({options!r}))\n"
    )
    run = fork_server.run([sys.executable, "-c", program], cwd=project)
    assert run.returncode == 0, run.stderr
    assert run.stdout.decode().splitlines()[-1] == "1 1 0"


def test_a_folder_that_becomes_a_package_further_up(tmp_path: Path, cache: Path) -> None:
    """What lies in folders without `__init__.py` belongs to the package above them."""
    module = tmp_path / "pkg" / "profiling" / "sub" / "user.py"
    module.parent.mkdir(parents=True)
    module.write_text("import torch\n\n\ndef step(x: torch.Tensor):\n    return x.item()\n")
    assert len(analysed(tmp_path, cache)) == 1
    assert analysed(tmp_path, cache) == []
    (tmp_path / "pkg" / "__init__.py").write_text("")
    assert len(analysed(tmp_path, cache)) == 1


def test_the_plugin_remembers_an_editors_buffer(project: Path, cache: Path) -> None:
    options = ("--torchperf-cache", f"--torchperf-cache-dir={cache}", "--select=TPF")
    name = "--stdin-display-name=pkg/user.py"
    first = flake8(*options, name, "-", cwd=project, stdin=USER)
    assert first.codes == ["TPF101"]
    assert flake8(*options, name, "-", cwd=project, stdin=USER) == first
    assert len(entries(cache)) == 1
    assert flake8(*options, name, "-", cwd=project, stdin=USER + "\n# torch\n").codes == ["TPF101"]
    assert len(entries(cache)) == 2


def test_the_plugin_interprets_nothing_that_it_remembers(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    import ast

    source = HELPER + "\n\ndef f(ts: list[torch.Tensor]):\n    return [t.item() for t in ts]\n"

    def run() -> list[str]:
        lines = source.splitlines(keepends=True)
        return [text for _, _, text, _ in TorchPerfPlugin(ast.parse(source), lines, "x.py").run()]

    before = TorchPerfPlugin.options()
    TorchPerfPlugin.use(Options(cache=True, cache_folder=cache))
    try:
        (finding,) = run()
        monkeypatch.setattr("flake8_torchperf.linter.lint_tree", None)
        monkeypatch.setenv("TORCHPERF_DEBUG", "1")
        assert run() == [finding]
    finally:
        TorchPerfPlugin.use(before)


def test_the_plugin_lints_where_nothing_can_be_written(project: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    options = ("--select=TPF", "--torchperf-cache", f"--torchperf-cache-dir={blocked}/cache", "pkg")
    assert flake8(*options, cwd=project) == flake8("--select=TPF", "pkg", cwd=project)
    assert "can't be remembered" in flake8("-v", *options, cwd=project).errors


def test_the_cache_command(project: Path, cache: Path) -> None:
    assert torchperf("cache", cache=cache).output.startswith(f"{cache}: 0 entries, 0.0 KiB, ")
    check(cwd=project, cache=cache)
    assert torchperf("cache", cache=cache).output.startswith(f"{cache}: 2 entries, ")
    assert torchperf("cache", "--cache-dir", cache).output.startswith(f"{cache}: 2 entries, ")
    (cache / "mine.txt").write_text("kept")
    (cache / "entries" / "mine.txt").write_text("kept")
    (entries(cache)[0].parent / "mine.txt").write_text("kept")
    assert "removed 2 entries" in torchperf("cache", "--clear", cache=cache).output
    assert sorted(path.name for path in cache.rglob("mine.txt")) == ["mine.txt"] * 3
    assert [path.name for path in entries(cache)] == ["mine.txt"]
    missing = torchperf("cache", "--clear", "--cache-dir", cache / "nowhere")
    assert missing.status == 2
    assert missing.errors.count("\n") == 1


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHPERF_CACHE_DIR", str(tmp_path / "named"))
    assert cache_folder(None) == tmp_path / "named"
    assert cache_folder(tmp_path / "chosen") == tmp_path / "chosen"
    monkeypatch.delenv("TORCHPERF_CACHE_DIR")
    assert cache_folder(None).is_absolute()
    assert cache_folder(None).name == "flake8-torchperf"


NET = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.std().item()
"""
TRAINS = """\
def train(model, optimizer, loader):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
"""


def assert_told_after(line: str, written: tuple[str, str], project: Path, cache: Path) -> None:
    """Assert that nothing is told of a module until another file has this text."""
    path = line.partition(":")[0]
    assert path not in check(cwd=project, cache=cache).output
    edit(project, *written)
    assert f"./{path}" in analysed(project, cache)
    assert line in check(cwd=project, cache=cache).output


@pytest.mark.parametrize(
    ("name", "text"),
    [("pkg/made.py", "from pkg.net import Net\n\nnet = Net()\n"), ("net.yaml", "target: Net\n")],
)
def test_a_class_is_looked_at_again_when_it_is_named(
    name: str, text: str, project: Path, cache: Path
) -> None:
    edit(project, "requirements.txt", "torch\n")
    edit(project, "pkg/net.py", NET)
    edit(project, "pkg/train.py", TRAINS)
    assert_told_after("pkg/net.py:6", (name, text), project, cache)


def test_a_class_is_looked_at_again_when_its_maker_is_called(project: Path, cache: Path) -> None:
    edit(project, "requirements.txt", "torch\n")
    edit(project, "pkg/net.py", NET)
    edit(project, "pkg/train.py", f"{TRAINS}\n\nif __name__ == '__main__':\n    train(1, 2, 3)\n")
    edit(project, "pkg/made.py", "from pkg.net import Net\n\n\ndef build():\n    return Net()\n")
    assert "pkg/net.py" not in check(cwd=project, cache=cache).output
    edit(project, "pkg/main.py", "from pkg.made import build\n\nnet = build()\n")
    assert "./pkg/net.py" in analysed(project, cache)
    assert "pkg/net.py:6" in check(cwd=project, cache=cache).output


NOTEBOOK = """\
{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{
  "cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": null,
  "source": ["from pkg.helper import read\\n", "read(x)\\n"]
}]}
"""
READER = """\
import torch


def read(x: torch.Tensor):
    return x.mean().item()
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("eval.py", "import app\nfrom pkg.helper import read\n\napp.serve(read)\n"),
        ("names.py", 'READERS = ["pkg.helper.read"]\n'),
        ("net.yaml", "reader: pkg.helper.read\n"),
        ("look.ipynb", NOTEBOOK),
        ("setup.cfg", "[options.entry_points]\nmeters =\n    read = pkg.helper:read\n"),
    ],
)
def test_a_function_is_looked_at_again_when_something_runs_it(
    name: str, text: str, project: Path, cache: Path
) -> None:
    edit(project, "requirements.txt", "torch\n")
    edit(project, "pkg/helper.py", READER)
    edit(project, "pkg/train.py", TRAINS + '\n\nif __name__ == "__main__":\n    train()\n')
    assert "pkg/helper.py" not in check(cwd=project, cache=cache).output
    edit(project, name, text)
    assert "./pkg/helper.py" in analysed(project, cache)
    assert "pkg/helper.py:5" in check(cwd=project, cache=cache).output


SECTION = """\
from cfgs import Node

C = Node()
C.LOG = Node()
C.LOG.ENABLE = False
"""
WATCHER = """\
import torch

from pkg.settings import C


def read(x: torch.Tensor):
    if C.LOG.ENABLE:
        print(x.mean().item())


def train(model, optimizer, loader):
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).sum()
        loss.backward()
        optimizer.step()
        read(loss)


if __name__ == "__main__":
    train()
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.yaml", "LOG:\n  ENABLE: True\n"),
        ("README.md", "    python -m pkg.watcher LOG.ENABLE True\n"),
        ("pkg/settings.py", SECTION.replace("False", "True")),
        ("cfgs.py", "class Node:\n    ENABLE = True\n"),
    ],
)
def test_a_branch_is_looked_at_again_when_something_sets_its_section(
    name: str, text: str, project: Path, cache: Path
) -> None:
    edit(project, "requirements.txt", "torch\n")
    edit(project, "pkg/settings.py", SECTION)
    edit(project, "pkg/watcher.py", WATCHER)
    assert_told_after("pkg/watcher.py:8", (name, text), project, cache)
