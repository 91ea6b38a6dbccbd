"""`torchperf check` prints what `flake8 --select TPF` prints, byte for byte, and runs less."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from check_run import check, torchperf
from flake8_run import Run, flake8
from hangs import HANG

ROOT = Path(__file__).parents[3]
READS = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
# A finding in each kind of statement that a comment can silence, and in some that it can't.
SILENCED = '''\
import torch


def report(values: list[torch.Tensor]) -> None:
    for value in values:
        value.item()  # noqa
        value.item()  # noqa: TPF101
        value.item()  # noqa: E501
        print(
            value.item(),
            "long",
        )  # noqa: TPF101
        text = f"""{value.item()}
        """  # noqa: TPF
        value.item(); print(text)
'''
FILES: dict[str, bytes] = {
    "reads.py": READS.encode(),
    "silenced.py": SILENCED.encode(),
    "pkg/__init__.py": b"",
    "pkg/reads.py": READS.encode(),
    "pkg/notes.txt": READS.encode(),
    "tests/test_reads.py": READS.encode(),
    "skipped.py": b"# flake8: noqa\n" + READS.encode(),
    "partly.py": b"# flake8: noqa: TPF101\n" + READS.encode(),
    "quiet.py": b"x = 1\n",
    "empty.py": b"",
    "broken.py": b"import torch\ndef f(:\n    pass\n",
    "broken_without.py": b"def f(:\n    pass\n",
    "unclosed.py": b"import torch\nx = (\n",
    "nulls.py": b"import torch\nx = '\0'\n",
    "mojibake.py": READS.encode() + b"# \xff\xfe\n",
    "latin.py": b"# -*- coding: latin-1 -*-\n# \xe9\n" + READS.encode(),
    "unknown_codec.py": b"# -*- coding: klingon -*-\n" + READS.encode(),
    "seven.py": b"# -*- coding: utf-7 -*-\n" + READS.replace("torch", "+AHQ-orch").encode(),
    "bom.py": b"\xef\xbb\xbf" + READS.encode(),
    "crlf.py": READS.replace("\n", "\r\n").encode(),
    "form_feed.py": READS.replace("\n\n\n", "\n\x0c\n").encode(),
    "continued.py": READS.encode() + b"x = 1 \\\n",
}
if sys.version_info < (3, 11, 4):
    del FILES["nulls.py"]  # flake8 itself ends in a ValueError there


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return folder


def same(
    arguments: Sequence[str | Path],
    cwd: Path,
    cache: Path,
    *,
    stdin: str | None = None,
    isolated: bool = True,
) -> Run:
    """Assert that flake8, a first check and a second one print the same; returns flake8's run."""
    expected = flake8("--select=TPF", *arguments, cwd=cwd, stdin=stdin, isolated=isolated)
    assert "Traceback" not in expected.errors
    for turn in ("first", "second"):
        # Of files that can't be parsed, flake8's exit status says nothing.
        ours = ("--exit-zero-on-errors", *arguments)
        found = check(*ours, cwd=cwd, stdin=stdin, cache=cache, isolated=isolated)
        assert (found.output, found.status) == (expected.output, expected.status), turn
        assert without_notes(found.errors) == expected.errors, turn
    return expected


def without_notes(errors: str) -> str:
    """Standard error without what check says of files that flake8 passes over in silence."""
    lines = errors.splitlines(keepends=True)
    notes = (
        ": not analysed: ",
        ": taken for Latin-1, ",
        ": there is no Python file in it ",
        ": excluded, and so",
    )
    return "".join(line for line in lines if not any(note in line for note in notes))


# What each shows -> the options and paths; True where there is something to print.
CASES: dict[str, tuple[list[str], bool]] = {
    "nothing": ([], True),
    "paths": (["pkg", "reads.py", "./tests"], True),
    "one file twice": (["reads.py", "reads.py"], True),
    "one process": (["-j1"], True),
    "four processes": (["--jobs", "4"], True),
    "pylint": (["--format=pylint"], True),
    "format": (["--format", "%(code)s|%(path)s|%(row)d|%(col)d|%(text)s"], True),
    "colour": (["--color=always"], True),
    "names only": (["-q"], True),
    "status only": (["-qq"], False),
    "count": (["--count"], True),
    "source": (["--show-source"], True),
    "exit zero": (["--exit-zero"], True),
    "all noqa off": (["--disable-noqa"], True),
    "select fewer": (["--select=TPF2"], False),
    "select syntax errors": (["--extend-select=E9"], True),
    "syntax errors alone": (["--select=E999"], True),
    "ignore": (["--ignore=TPF101"], False),
    "extend ignore": (["--extend-ignore", "TPF1"], False),
    "per file": (["--per-file-ignores=pkg/*:TPF101 tests/*:TPF"], True),
    "exclude": (["--exclude=pkg,tests"], True),
    "extend exclude": (["--extend-exclude=*s.py"], True),
    "other files": (["--filename=*.txt"], True),
    "missing file": (["nowhere.py", "reads.py", "--extend-select=E902"], True),
    "an option of another checker": (["--max-complexity=1"], True),
    "our options": (["--torchperf-scope=loop", "--torchperf-explain"], True),
    "everything": (["--torchperf-scope=all", "--count", "--show-source"], True),
}


@pytest.mark.parametrize(("options", "something"), CASES.values(), ids=list(CASES))
def test_the_same_as_flake8(
    tree: Path, tmp_path: Path, options: list[str], something: bool
) -> None:
    run = same(options, tree, tmp_path)
    assert bool(run.output) == something


def test_the_same_as_flake8_on_our_fixtures(tmp_path: Path) -> None:
    folder = tmp_path / "project"  # of its own: each run would read all of the repository
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    shutil.copy(__file__, folder)
    (folder / "requirements.txt").touch()
    run = same(["fixtures", "test_check.py"], folder, tmp_path)
    assert "issue82206" in run.output


CONFIGURATION = """\
[flake8]
torchperf-scope = all
format = pylint
per-file-ignores =
    pkg/*: TPF101
extend-exclude = tests
max-complexity = 3
"""


@pytest.mark.parametrize("name", ["setup.cfg", "tox.ini", ".flake8"])
def test_configuration_files(tmp_path: Path, name: str) -> None:
    for file in ("reads.py", "pkg/reads.py", "tests/reads.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(READS, encoding="utf-8")
    (tmp_path / name).write_text(CONFIGURATION, encoding="utf-8")
    run = same([], tmp_path, tmp_path / "cache", isolated=False)
    assert run.output.count("\n") == 1
    assert run.output.startswith("./reads.py:5: [TPF101] ")


def test_standard_input(tree: Path, tmp_path: Path) -> None:
    run = same(["-"], tree, tmp_path, stdin=READS)
    assert run.output.startswith("stdin:5:13: TPF101 ")
    named = ["--stdin-display-name=pkg/unsaved.py", "--per-file-ignores=pkg/*:TPF1", "-"]
    assert same(named, tree, tmp_path, stdin=READS).output == ""
    assert same(["-"], tree, tmp_path, stdin="x = (\n").output == ""


def test_the_report_can_go_to_a_file(tree: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "flake8.txt", tmp_path / "check.txt"
    plain = flake8("--select=TPF", f"--output-file={theirs}", "--tee", cwd=tree)
    found = check("--exit-zero-on-errors", f"--output-file={ours}", "--tee", cwd=tree)
    assert (found.output, found.status) == (plain.output, plain.status)
    assert ours.read_bytes() == theirs.read_bytes()


def test_processes_that_are_started_anew(tree: Path) -> None:
    program = (
        "import multiprocessing, sys\n"
        "from flake8_torchperf.cli.main import main\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        "    sys.exit(main())\n"
    )
    script = tree / "start.txt"
    script.write_text(program, encoding="utf-8")
    options = (
        "check",
        "--isolated",
        "--no-cache",
        "-j2",
        "--torchperf-scope=all",
        "pkg",
        "reads.py",
    )
    found = torchperf(*options, cwd=tree, program=(sys.executable, str(script)))
    plain = flake8("--select=TPF", "-j2", "--torchperf-scope=all", "pkg", "reads.py", cwd=tree)
    assert (found.output, found.errors) == (plain.output, "")
    assert found.output


RUN_AND_SHOW = """\
import sys
{before}
from flake8_torchperf.cli.main import main
status = main(sys.argv[1:])
names = ["pycodestyle", "pyflakes", "mccabe", "flake8_torchperf.linter", "libcst", "torch"]
print([name for name in names if name in sys.modules], file=sys.stderr)
"""


def imported(*arguments: str | Path, cache: Path, before: str = "") -> str:
    """Which modules a check imports, of those worth avoiding."""
    program = (sys.executable, "-c", RUN_AND_SHOW.format(before=before))
    run = torchperf("check", "--isolated", "-j1", *arguments, cache=cache, program=program)
    return run.errors.strip()


def test_no_other_checker_is_imported(tree: Path, tmp_path: Path) -> None:
    assert imported(tree / "quiet.py", cache=tmp_path) == "[]"
    first = imported(tree / "reads.py", cache=tmp_path)
    assert "flake8_torchperf.linter" in first
    assert "pycodestyle" not in first
    assert "torch'" not in first


def test_what_is_remembered_is_neither_parsed_nor_interpreted(tree: Path, tmp_path: Path) -> None:
    assert "flake8_torchperf.linter" in imported(tree / "reads.py", cache=tmp_path)
    no_tree = "from flake8.processor import FileProcessor; FileProcessor.build_ast = None"
    assert imported(tree / "reads.py", cache=tmp_path, before=no_tree) == "[]"


MISTAKES = {
    "unknown option": (["--exlude=x"], "there is no option --exlude; did you mean '--exclude'?"),
    "paths apart": (["pkg", "--count", "reads.py"], "write reads.py next to the other paths"),
    "wrong value": (["--jobs=many"], "'many' must be 'auto' or an integer"),
    "wrong value of ours": (["--torchperf-scope=al"], "did you mean 'all'?"),
    "cache in a file": (["--cache-dir=reads.py"], "reads.py is a file"),
    "missing path": (["nowhere.py", "reads.py"], "nowhere.py: there is no such file or folder"),
    "missing configuration": (["--config=nowhere.cfg"], "file does not exist: nowhere.cfg"),
    "report in a folder": (["--output-file=pkg"], "pkg: Is a directory"),
}


@pytest.mark.parametrize(("options", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_wrong_command_line_is_one_line(tree: Path, options: list[str], message: str) -> None:
    run = check(*options, cwd=tree, isolated="--config=nowhere.cfg" not in options)
    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith("torchperf")
    assert message in run.errors
    assert run.errors.count("\n") == 1


def test_what_cannot_be_analysed_is_said_once(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to("nowhere.py")
    paths = [tree / "broken.py", tree / "broken.py", tmp_path / "gone.py"]
    for _ in range(2):
        run = check(*paths, tree / "quiet.py", cache=tmp_path / "cache")
        assert (run.status, run.output) == (2, "")
        broken, gone = sorted(run.errors.splitlines(), key=lambda line: "gone.py" in line)
        assert broken.startswith(f"torchperf: check: {tree}/broken.py:2: not analysed: SyntaxError")
        assert gone.startswith(f"torchperf: check: {tmp_path}/gone.py: not analysed: FileNotFound")


def test_what_python_cannot_read_is_said_though_flake8_takes_it_for_latin_1(
    tree: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        files = ("mojibake.py", "unknown_codec.py", "latin.py", "seven.py", "bom.py")
        run = check(*files, cwd=tree, cache=tmp_path)
        assert len(run.results) == len(files)
        said = "taken for Latin-1, for Python can't read it:"
        mojibake, unknown = sorted(run.errors.splitlines())
        assert mojibake.startswith(f"torchperf: check: mojibake.py: {said} 'utf-8' codec can't ")
        assert unknown.startswith(f"torchperf: check: unknown_codec.py: {said} unknown encoding: ")


def test_an_encoding_that_is_none_of_text_does_not_end_the_run(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "hex.py").write_text("# coding: hex\nimport torch\n", encoding="utf-8")
    run = check(tmp_path / "hex.py", tree / "reads.py")
    assert (run.status, run.codes) == (2, ["TPF101"])
    assert run.errors.startswith(f"torchperf: check: {tmp_path}/hex.py: not analysed: LookupError")
    assert run.errors.count("\n") == 1
    assert check("--select=E9", tmp_path / "hex.py").output.count("E902") == 1


def test_a_folder_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    """As where its permissions forbid it, which mean nothing to root."""
    for name in ("closed", "pkg/closed", "pkg/open"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").write_text(READS, encoding="utf-8")
    program = (
        "import os, sys\n"
        "scandir = os.scandir\n"
        "def listed(path):\n"
        "    if os.path.basename(path) == 'closed':\n"
        "        raise PermissionError(13, 'Permission denied', path)\n"
        "    return scandir(path)\n"
        "os.scandir = listed\n"
        "from flake8_torchperf.cli.main import main\n"
        "sys.exit(main())\n"
    )
    arguments = ("check", "--isolated", "--no-cache", "closed", "pkg")
    run = torchperf(*arguments, cwd=tmp_path, program=(sys.executable, "-c", program))
    assert [result.path for result in run.results] == ["pkg/open/a.py"]
    assert sorted(run.errors.splitlines()) == [
        f"torchperf: check: {name}: not looked into: Permission denied"
        for name in ("closed", "pkg/closed")
    ]


def test_a_folder_without_python_files_is_said(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(READS, encoding="utf-8")
    said = "there is no Python file in it that is not excluded"
    run = check(tmp_path, tree / "pkg")
    assert (run.status, run.errors) == (1, f"torchperf: check: {tmp_path}: {said}\n")
    run = check(cwd=tmp_path)
    assert (run.status, run.output) == (2, "")
    assert run.errors == f"torchperf: check: .: {said}\n"


def test_standard_input_that_is_no_text_is_one_line() -> None:
    run = check("-", stdin=b"import torch\nx = '\xff'\n")
    assert (run.status, run.output) == (2, "")
    assert run.errors == "torchperf: check: standard input is no utf-8 text\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_a_pipe_is_refused_in_one_line(tmp_path: Path) -> None:
    """Whoever reads it a second time waits for a writer that never comes."""
    os.mkfifo(tmp_path / "pipe.py")
    run = check("pipe.py", cwd=tmp_path)
    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith("torchperf: check: pipe.py: is a pipe; ")
    assert run.errors.count("\n") == 1


@pytest.mark.parametrize(
    "setting",
    [
        "ignore = not-a-code!",
        "max-line-length = wide",
        "torchperf-cache = perhaps",
        "select = TPF\nselect = TPF",
    ],
)
def test_a_wrong_configuration_is_one_line(tmp_path: Path, setting: str) -> None:
    (tmp_path / "setup.cfg").write_text(f"[flake8]\n{setting}\n", encoding="utf-8")
    run = check(cwd=tmp_path, cache=tmp_path / "cache", isolated=False)
    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith("torchperf")
    assert run.errors.count("\n") == 1


def test_what_the_parser_cannot_hold_is_said_and_the_rest_linted(tmp_path: Path) -> None:
    read = "import torch\n\n\ndef step(x: torch.Tensor):\n    return x{}.item()\n"
    (tmp_path / "deep.py").write_text(read.format(".T" * 100_000), encoding="utf-8")
    (tmp_path / "plain.py").write_text(read.format(""), encoding="utf-8")
    for jobs in ("-j1", "-j2"):
        run = check(jobs, cwd=tmp_path)
        assert run.status == 2
        assert [line[:14] for line in run.output.splitlines()] == ["./plain.py:5:1"]
        assert run.errors.startswith("torchperf: check: ./deep.py:1: not analysed: SyntaxError")
        assert run.errors.count("\n") == 1


def test_why_the_parser_gave_up_is_said(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(f"x = {'-' * 20_000}1  # torch\n", encoding="utf-8")
    run = check("deep.py", cwd=tmp_path)
    assert run.errors.startswith("torchperf: check: deep.py:1: not analysed: SyntaxError")
    assert not run.errors.endswith(": \n")


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse to remove a current folder")
def test_a_current_folder_that_was_removed(tree: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir {gone}; exec {sys.executable} -m flake8_torchperf.cli.main check {tree}"
    ran = subprocess.run(
        ["sh", "-c", command], cwd=gone, capture_output=True, text=True, check=False, timeout=HANG
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "torchperf: check: the current folder has been removed\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has such a device")
def test_standard_output_that_is_full(tree: Path) -> None:
    command = [sys.executable, "-m", "flake8_torchperf.cli.main", "check", "--isolated"]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [*command, "--no-cache", tree / "reads.py"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=HANG,
        )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr == ("torchperf: standard output cannot be written: No space left on device\n")


def test_help_shows_examples_and_flake8s_options() -> None:
    run = torchperf("check", "--help")
    assert run.status == 0
    assert run.output.startswith("usage: torchperf check ")
    assert "torchperf check src" in run.output
    assert "\n  PATH" in run.output  # the word that the usage has
    assert "filename\n" not in run.output
    assert "any module of its package" in " ".join(run.output.split())
    for option in ("--per-file-ignores", "--torchperf-scope", "--no-cache", "--stdin-display-name"):
        assert option in run.output


def test_a_reader_that_has_seen_enough(tree: Path) -> None:
    command = [sys.executable, "-m", "flake8_torchperf.cli.main", "check", "--isolated"]
    started = subprocess.Popen(
        [*command, "--no-cache", "--format=%(code)s" + "x" * 100_000],
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdout is not None
    started.stdout.close()
    assert started.stderr is not None
    assert started.stderr.read() == b""
    started.wait(timeout=HANG)


def test_inside_a_package_as_from_above_it(tmp_path: Path) -> None:
    """Where the command is typed decides neither a module's name nor what it imports."""
    package = tmp_path / "pkg"
    (package / "deep").mkdir(parents=True)
    helper = "import torch\n\n\ndef make(n) -> torch.Tensor:\n    return torch.ones(n)\n"
    user = "import torch\nfrom ..helper import make\n\n\ndef sizes(batches):\n"
    user += "    return [make(batch).to('cuda').item() for batch in batches]\n"
    for name, text in {
        "helper": helper,
        "deep/user": user,
        "__init__": "",
        "deep/__init__": "",
    }.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    above = check("pkg/deep/user.py", "--format=%(row)d %(code)s %(text)s", cwd=tmp_path)
    assert "TPF101" in above.output
    for folder, path in ((package, "deep/user.py"), (package / "deep", "user.py")):
        found = check(path, "--format=%(row)d %(code)s %(text)s", cwd=folder)
        assert found.output == above.output
