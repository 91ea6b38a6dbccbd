"""One configuration: [tool.torchperf], flake8's files and the command line, in every command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from check_run import check, torchperf
from flake8_run import flake8

# In a loop; in a step; in code that runs once.
MODEL = """\
import torch


def step(xs: list[torch.Tensor], y: torch.Tensor):
    for x in xs:
        x.sum().item()
    return y.max().item()


def save_report(x: torch.Tensor):
    return x.max().item()
"""
ALL, HOT, LOOP = [6, 7, 11], [6, 7], [6]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def lines(output: str) -> list[int]:
    return [int(line.split(":")[1]) for line in output.splitlines()]


def configure(project: Path, text: str, name: str = "pyproject.toml") -> None:
    (project / name).write_text(text, encoding="utf-8")


def linted(project: Path, *arguments: str, folder: str = ".") -> list[int]:
    """The lines that flake8 and ``torchperf check`` report alike."""
    cwd = project / folder
    theirs = flake8("--select=TPF", *arguments, str(project), cwd=cwd, isolated=False)
    ours = check(*arguments, str(project), cwd=cwd, isolated=False)
    assert theirs.output == ours.output, ours.errors
    assert theirs.errors == ""
    return lines(ours.output)


def test_pyproject_is_read_from_the_nearest_folder_that_has_the_section(project: Path) -> None:
    assert linted(project) == HOT
    configure(project, '[tool.torchperf]\nscope = "loop"\n')
    assert linted(project) == LOOP
    (project / "below").mkdir()
    configure(project / "below", "[tool.ruff]\n")
    assert linted(project, folder="below") == LOOP
    configure(project / "below", '[tool.torchperf]\nscope = "all"\n')
    assert linted(project, folder="below") == ALL
    assert linted(project) == LOOP


def test_the_command_line_wins_then_flake8s_files_then_pyproject(project: Path) -> None:
    configure(project, '[tool.torchperf]\nscope = "all"\ncold = ["step"]\n')
    assert linted(project) == ALL
    configure(project, "[flake8]\ntorchperf-scope = loop\n", "tox.ini")
    assert linted(project) == []  # the function is cold still
    assert linted(project, "--torchperf-cold=save_report") == LOOP
    assert linted(project, "--torchperf-cold=save_report", "--torchperf-scope=hot") == HOT
    assert lines(check("--isolated", ".", cwd=project).output) == HOT
    assert lines(flake8("--isolated", "--select=TPF", ".", cwd=project).output) == HOT


def test_a_switch_can_be_turned_off_on_the_command_line(project: Path) -> None:
    configure(project, "[tool.torchperf]\nexplain = true\n")
    assert "(reason:" in check(cwd=project, isolated=False).output
    assert "(reason:" not in check("--no-explain", cwd=project, isolated=False).output


def test_paths_are_relative_to_their_file(project: Path) -> None:
    written = check("--write-baseline", "old.json", ".", cwd=project)
    assert written.status == 0, written.errors
    configure(project, '[tool.torchperf]\nbaseline = "old.json"\n')
    (project / "below").mkdir()
    assert linted(project) == linted(project, folder="below") == []


def test_a_change_of_the_section_is_seen_behind_the_cache(project: Path) -> None:
    def cached() -> list[int]:
        cache = project / "cache"
        return lines(check(cwd=project, cache=cache, isolated=False).output)

    assert cached() == cached() == HOT
    configure(project, '[tool.torchperf]\nscope = "loop"\n')
    assert cached() == LOOP


@pytest.mark.skipif(sys.platform == "win32", reason="flake8 lints in one process there")
def test_all_processes_read_it(project: Path) -> None:
    (project / "second.py").write_text(MODEL, encoding="utf-8")
    configure(project, '[tool.torchperf]\nscope = "loop"\n')
    assert linted(project, "-j2") == LOOP * 2


WRONG = [
    ('scoope = "all"', "[tool.torchperf] has no setting 'scoope'; did you mean 'scope'?"),
    ('torchperf-hots = ["x"]', "has no setting 'torchperf-hots'; did you mean 'hot'?"),
    ('select = "TPF"', "[tool.torchperf] select: 'TPF' is no list of texts"),
    ('zzz = "TPF"', "has no setting 'zzz'; known are scope, confidence, hot, cold, "),
    ('scope = "lop"', "[tool.torchperf] scope: 'lop' is not one of loop, hot, all, did you mean"),
    ("explain = 3", "[tool.torchperf] explain: 3 is neither true nor false"),
    ('hot = "step"', "[tool.torchperf] hot: 'step' is no list of texts; write for example ["),
    ('rules = ["nowhere"]', "[tool.torchperf] rules: there is no folder "),
    ('hot = ["a"]\ncold = ["a"]', "cold both name 'a': keep it in one"),
    ("scope", "no TOML: "),
    ('scope = "all"\n[tool]\ntorchperf = 3', "no TOML: "),
]


@pytest.mark.parametrize(("setting", "said"), WRONG, ids=[setting for setting, _ in WRONG])
def test_a_mistake_is_one_line_in_every_command(project: Path, setting: str, said: str) -> None:
    configure(project, f"[tool.torchperf]\n{setting}\n")
    runs = [flake8("--select=TPF", ".", cwd=project, isolated=False)]
    runs.append(check(cwd=project, isolated=False))
    runs.append(torchperf("fix", "--diff", "model.py", cwd=project))
    runs.append(torchperf("explain", "TPF101", cwd=project))
    for run in runs:
        assert (run.status, run.output) == (2, "")
        assert f"{project / 'pyproject.toml'}: {said}" in run.errors or said in run.errors
        assert run.errors.count("\n") == 1


@pytest.mark.parametrize("data", [b"[tool.torchperf]\nscope = '\xff'\n", b"x = " + b"[" * 9999])
def test_a_file_that_is_no_toml_is_one_line(project: Path, data: bytes) -> None:
    (project / "pyproject.toml").write_bytes(data + b"# torchperf\n")
    run = check(cwd=project, isolated=False)
    assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
    assert str(project / "pyproject.toml") in run.errors


def test_a_file_of_others_is_not_judged(project: Path) -> None:
    configure(project, "no TOML at all [")
    assert linted(project) == HOT


@pytest.mark.parametrize("name", ["setup.cfg", "tox.ini", ".flake8"])
def test_a_misspelt_key_in_flake8s_files_is_an_error(project: Path, name: str) -> None:
    configure(project, "[flake8]\ntorchperf-scoop = all\n", name)
    said = "flake8's configuration has no option torchperf-scoop; did you mean 'torchperf-scope'?\n"
    run = flake8(".", cwd=project, isolated=False)
    assert (run.status, run.output, run.errors) == (2, "", f"flake8: error: {said}")
    run = check(cwd=project, isolated=False)
    assert (run.status, run.output, run.errors) == (2, "", f"torchperf check: error: {said}")
    configure(project, "[flake8]\ntorchperf_scope = all\n", name)
    assert linted(project) == ALL


def test_a_table_that_flake8_does_not_read_is_said_once(project: Path) -> None:
    said = f"{project / 'pyproject.toml'}: flake8 does not read [tool.flake8]; install "
    (project / "second.py").write_text(MODEL, encoding="utf-8")
    configure(project, '[tool.flake8]\ntorchperf-scope = "all"\n')
    for run in (
        flake8("--select=TPF", "-j2", ".", cwd=project, isolated=False),
        check("-j2", cwd=project, isolated=False),
    ):
        assert lines(run.output) == HOT * 2
        assert run.errors.count(said) == run.errors.count("\n") == 1
    # In flake8's own runs, only what names us is our business.
    configure(project, "[tool.flake8]\nmax-line-length = 88\n")
    assert flake8("--select=TPF", ".", cwd=project, isolated=False).errors == ""
    assert said in check(cwd=project, isolated=False).errors


def test_fix_and_cache_and_explain_read_it(project: Path) -> None:
    rules = Path(__file__).parents[3] / "fixtures" / "team_rules" / "perf-rules"
    configure(
        project, f"[tool.torchperf]\nrules = ['{rules}']\ncache-dir = 'kept'\nscope = 'loop'\n"
    )
    (project / "kept").mkdir()
    assert torchperf("cache", cwd=project).output.startswith(f"{project / 'kept'}: ")
    assert "TPF701" in torchperf("rules", cwd=project).output
    assert torchperf("explain", "TPF701", cwd=project).status == 0
    assert torchperf("fix", "--diff", ".", cwd=project).errors.endswith("1 left\n")
    assert torchperf("fix", "--diff", "--scope=all", ".", cwd=project).errors.endswith("3 left\n")


def test_plugins_of_a_repository_are_not_imported_for_its_settings(project: Path) -> None:
    """flake8 imports what its configuration names; these commands need no more than options."""
    (project / "local.py").write_text("open('imported', 'w')\n\n\nclass Plugin:\n    pass\n")
    plugins = "report =\n  X = local:Plugin\nextension =\n  XX = local:Plugin\npaths = .\n"
    configure(
        project, f"[flake8:local-plugins]\n{plugins}[flake8]\ntorchperf-scope = loop\n", "tox.ini"
    )
    for arguments in (["explain", "TPF101"], ["rules"], ["cache"], ["confirm", "model.py"]):
        run = torchperf(*arguments, cwd=project)
        assert (run.status, run.errors) == (0, ""), run.errors
        assert not (project / "imported").exists(), arguments


@pytest.mark.parametrize("command", ["check", "fix", "confirm", "run"])
def test_every_command_names_its_settings_alike(command: str) -> None:
    shown = torchperf(command, "--help").output
    for name in ("scope", "confidence", "hot", "cold", "explain", "assume-compiled", "rules"):
        assert f"--{name}" in shown
        assert f"--torchperf-{name}" in shown


WORKLOAD = (
    MODEL
    + """

x = torch.ones(2, device=torch.device("cpu"))  # a device of the program's choice
step([x], x)
save_report(x)
"""
)


def test_run_and_confirm_read_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    configure(tmp_path, WORKLOAD, "work.py")

    def ran(*arguments: str) -> list[int]:
        run = torchperf("run", "--json", "out.json", *arguments, "work.py", cwd=tmp_path)
        assert run.status == 0, run.errors
        data = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert data["missed"] == []  # another scope's findings are findings
        return sorted(one["line"] for one in data["confirmed"])

    assert ran() == ALL
    configure(tmp_path, '[tool.torchperf]\nscope = "hot"\n')
    assert ran() == HOT
    assert ran("--scope=loop") == LOOP
    configure(tmp_path, '[tool.torchperf]\ncold = ["step"]\nscope = "loop"\n')
    run = torchperf("confirm", "work.py", cwd=tmp_path)
    assert (run.status, run.output) == (0, "nothing to confirm\n")
    run = torchperf("confirm", "work.py", "--cold", "none", "--torchperf-scope=loop", cwd=tmp_path)
    assert run.output.startswith("work.py:6:9: TPF101 confirmed: ")
    for command in ("confirm", "run"):
        run = torchperf(command, "--rules=gone", "work.py", cwd=tmp_path)
        assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
        assert run.errors.startswith(f"torchperf {command}: error: --torchperf-rules: there is no")


def test_a_convention_is_explained(tmp_path: Path) -> None:
    (tmp_path / "conventions.toml").write_text(
        '[[convention]]\nid = "our-probes"\napplies_to = "function"\npattern = "^probe_"\n'
        'effect = "cold"\nreason = "A probe runs on demand."\nexample = "probe_loss"\n'
        'evidence = ["a/b: one", "c/d: two"]\n',
        encoding="utf-8",
    )
    run = torchperf("explain", "our-probes", "--rules", str(tmp_path))
    assert (run.status, run.errors) == (0, "")
    assert "A probe runs on demand." in run.output
    run = torchperf("explain", "our-probe", "--rules", str(tmp_path))
    assert run.errors == "torchperf: there is no rule our-probe; did you mean 'our-probes'?\n"
    (tmp_path / "conventions.toml").write_text("[[convention]]\nid = 3\n", encoding="utf-8")
    run = torchperf("explain", "TPF101", "--rules", str(tmp_path))
    assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
    assert "conventions.toml: row 1: " in run.errors


class TestInit:
    """``torchperf init``"""

    def test_the_section_is_a_comment_until_somebody_edits_it(self, project: Path) -> None:
        configure(project, '[project]\nname = "x"')
        run = torchperf("init", cwd=project)
        assert (run.status, run.errors) == (0, "")
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        assert text.startswith('[project]\nname = "x"\n\n[tool.torchperf]\n')
        assert text[text.index("[tool.torchperf]") :] in run.output
        assert linted(project) == HOT
        configure(project, text.replace('# scope = "hot"', 'scope = "loop"'))
        assert linted(project) == LOOP

    def test_every_example_can_be_used(self, project: Path) -> None:
        torchperf("init", cwd=project)
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        settings = [line for line in text.splitlines() if line.startswith("# ") and " = " in line]
        assert len(settings) == len(set(settings)) > 9
        settings.remove('# profile = "./torchperf-profile.json"')  # written by a run
        for line in settings:
            text = text.replace(line, line.removeprefix("# "))
        configure(project, text)
        (project / "perf-rules").mkdir()
        (project / "perf-rules" / "conventions.toml").write_text("", encoding="utf-8")
        check("--write-baseline", "torchperf-baseline.json", "--isolated", ".", cwd=project)
        run = check(cwd=project, isolated=False)
        assert run.status == 0
        # The examples name functions that this project does not have.
        assert all("names no function of what" in line for line in run.errors.splitlines())

    def test_an_existing_section_is_left_alone(self, project: Path) -> None:
        for text in ("[tool.torchperf]\n", 'tool.torchperf.scope = "all"\n', "tool = { a = 1 }\n"):
            configure(project, text)
            run = torchperf("init", cwd=project)
            assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
            assert (project / "pyproject.toml").read_text(encoding="utf-8") == text

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("repos:\n- repo: x\n  rev: y", "\n- repo: local\n  hooks:\n"),
            (
                "repos:\n  # why\n  -   repo: x\n\n\nci:\n  a: b\n",
                "\n  - repo: local\n    hooks:\n",
            ),
        ],
    )
    def test_the_hook_joins_the_list(self, project: Path, before: str, after: str) -> None:
        configure(project, before, ".pre-commit-config.yaml")
        assert torchperf("init", cwd=project).status == 0
        text = (project / ".pre-commit-config.yaml").read_text(encoding="utf-8")
        assert after in text
        assert text.startswith(before.split("\n\n")[0])
        assert text.endswith(before.partition("ci:")[2] or "require_serial: true\n")

    @pytest.mark.parametrize("before", ["repos: []\n", "a: b\n", "repos:\n- id: torchperf\n", ""])
    def test_a_list_of_another_form_is_left_alone(self, project: Path, before: str) -> None:
        configure(project, before, ".pre-commit-config.yaml")
        run = torchperf("init", cwd=project)
        assert run.status == 0
        assert ".pre-commit-config.yaml: " in run.output + run.errors
        assert (project / ".pre-commit-config.yaml").read_text(encoding="utf-8") == before

    @pytest.mark.parametrize(
        ("name", "before", "after"),
        [
            (
                "pyproject.toml",
                '[tool.ruff.lint]  # style\nselect = ["E"]\n\n[tool.other]\nexternal = []\n',
                '[tool.ruff.lint]  # style\nexternal = ["TPF"]\nselect = ["E"]\n\n[tool.other]\nexternal = []\n',
            ),
            (
                "pyproject.toml",
                "[tool.ruff.lint.isort]\ncombine-as-imports = true\n",
                '[tool.ruff.lint.isort]\ncombine-as-imports = true\n\n[tool.ruff.lint]\nexternal = ["TPF"]\n',
            ),
            (
                "pyproject.toml",
                '[tool.ruff]\nlint.select = ["E"]\n',
                '[tool.ruff]\nlint.external = ["TPF"]\nlint.select = ["E"]\n',
            ),
            ("ruff.toml", '[lint]\nexternal = ["ABC"]\n', '[lint]\nexternal = ["TPF", "ABC"]\n'),
            ("ruff.toml", "[lint]\nexternal = []\n", '[lint]\nexternal = ["TPF"]\n'),
            (".ruff.toml", 'lint.select = ["E"]\n', 'lint.external = ["TPF"]\nlint.select = ["E"]\n'),
            ("ruff.toml", "line-length = 88\n", "line-length = 88\n"),
            ("pyproject.toml", '[tool.ruff.lint]\nexternal = ["TPF"]\n', '[tool.ruff.lint]\nexternal = ["TPF"]\n'),
        ],
    )  # fmt: skip
    def test_ruff_is_told_to_keep_our_comments(
        self, project: Path, name: str, before: str, after: str
    ) -> None:
        configure(project, before, name)
        run = torchperf("init", cwd=project)
        text = (project / name).read_text(encoding="utf-8")
        assert (run.status, run.errors) == (0, "")
        assert text.partition("\n[tool.torchperf]")[0] == after
        assert (f"{name}: wrote external" in run.output) == (before != after)

    def test_ruff_is_told_where_our_section_exists(self, project: Path) -> None:
        configure(project, "[tool.torchperf]\n[tool.ruff.lint]\n")
        run = torchperf("init", cwd=project)
        said = "pyproject.toml: has a [tool.torchperf] already, left as it is\n"
        assert (run.status, run.errors) == (0, said)
        text = (project / "pyproject.toml").read_text(encoding="utf-8")
        assert text == '[tool.torchperf]\n[tool.ruff.lint]\nexternal = ["TPF"]\n'
        assert torchperf("init", cwd=project).status == 2

    def test_a_table_that_cannot_be_changed_is_one_line(self, project: Path) -> None:
        configure(project, 'tool.ruff.lint = { select = ["E"] }\n')
        run = torchperf("init", cwd=project)
        said = 'pyproject.toml: add "TPF" to external in [tool.ruff.lint] by hand'
        assert run.errors.splitlines()[0] == f"torchperf: init: {said}"

    def test_what_cannot_be_written_is_one_line(self, project: Path) -> None:
        configure(project, "")
        (project / "pyproject.toml").chmod(0o400)
        run = torchperf("init", cwd=project)
        assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
