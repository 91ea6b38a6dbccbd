"""What GitHub and Read the Docs run: the action for real, of the release what can be said here."""

from __future__ import annotations

import configparser
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml
from documents import README, ROOT, TEXT
from environments import attempt, call, clean_environment, copy_checkout

from flake8_torchperf.findings.rule import SITE

READS_IN_A_LOOP = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


def read(name: str) -> dict[str, Any]:
    """A YAML file of the repository."""
    data = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def documented() -> dict[str, str]:
    """The inputs that docs/check.md gives the action."""
    (block,) = re.findall(r"^```yaml\n([^`]*OWNER-AND-NAME.*?)```", TEXT, re.DOTALL | re.MULTILINE)
    (step,) = (
        step
        for step in yaml.safe_load(block)["jobs"]["torchperf"]["steps"]
        if step["uses"].startswith("OWNER-AND-NAME")
    )
    return dict(step["with"])


class Runner:
    """Runs an action's steps in a folder, as GitHub's runner does; it has Python already."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self.source = folder, source
        self.said = ""
        self.env = clean_environment() | {
            "RUNNER_TEMP": str(folder.parent / "temp"),
            "GITHUB_ENV": str(folder.parent / "env"),
        }

    def run(self, action: dict[str, Any], given: dict[str, str]) -> int:
        """The status of the first step that fails, or 0; ``said`` is what the last one printed."""
        values = {
            "steps.python.outputs.python-path": sys.executable,
            "github.action_path": str(self.source),
            "github.action_ref": "main",
            **{
                f"inputs.{name}": given.get(name, one["default"])
                for name, one in action["inputs"].items()
            },
        }
        for step in action["runs"]["steps"]:
            if "uses" in step:
                continue
            assert step["shell"] == "bash"
            own = {
                name: EXPRESSION.sub(lambda found: values[found[1]], text)
                for name, text in step["env"].items()
            }
            command = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
            done = attempt(*command, cwd=self.folder, env={**self.env, **own})
            self.said = done.stdout + done.stderr
            if done.returncode:
                return done.returncode
            exported = Path(self.env["GITHUB_ENV"])
            if exported.exists():
                lines = exported.read_text(encoding="utf-8").splitlines()
                self.env.update(line.split("=", 1) for line in lines)
        return 0


@pytest.mark.thorough
def test_the_action_as_the_documents_show_it(tmp_path: Path) -> None:
    action, given = read("action.yml"), documented()
    assert set(given) <= set(action["inputs"])
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "old.py").write_text(READS_IN_A_LOOP, encoding="utf-8")
    (project / given["baseline"]).write_text("", encoding="utf-8")
    runner = Runner(project, copy_checkout(tmp_path / "source"))

    assert runner.run(action, given) == 2
    assert "is no baseline: line 1" in runner.said
    python = runner.env["TORCHPERF_PYTHON"]
    (project / given["baseline"]).unlink()
    check = (python, "-m", "flake8_torchperf.cli.main", "check")
    call(*check, "--write-baseline", given["baseline"], "src", cwd=project)

    check_only = {**action, "runs": {"steps": action["runs"]["steps"][-1:]}}
    assert runner.run(check_only, given) == 0, runner.said
    (project / "src" / "new.py").write_text(READS_IN_A_LOOP, encoding="utf-8")
    assert runner.run(check_only, given) == 1
    (line,) = runner.said.splitlines()
    assert line.startswith("::warning file=src/new.py,line=5,")
    assert runner.run(check_only, {}) == 1
    assert runner.said.count("::warning file=") == 2
    hostile = {"paths": "src; touch made $(touch made)", "baseline": "", "options": "`touch made`"}
    assert runner.run(check_only, hostile) == 2
    assert not (project / "made").exists()


# Stands for Python: makes an environment that holds itself, and notes what pip is asked for.
STUB = """\
#!/bin/sh
case "$2" in
venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
pip) shift 4; echo "$*" >> "$ASKED"; [ "$1" != --only-binary ] || exit "$NO_WHEEL" ;;
esac
"""


@pytest.mark.parametrize(
    ("ref", "no_wheel", "asked"),
    [
        ("v1.2", "0", ["--only-binary flake8-torchperf flake8-torchperf==1.2"]),
        ("v1.2", "1", ["--only-binary flake8-torchperf flake8-torchperf==1.2", "SOURCE"]),
        ("main", "0", ["SOURCE"]),
    ],
    ids=["a release", "a release without a wheel", "a branch"],
)
def test_the_action_takes_the_wheel_of_its_release(
    tmp_path: Path, ref: str, no_wheel: str, asked: list[str]
) -> None:
    source = tmp_path / "source"
    (source / "flake8_torchperf").mkdir(parents=True)
    (source / "flake8_torchperf" / "__init__.py").write_text('"""Docs."""\n\n__version__ = "1.2"\n')
    stub = tmp_path / "python"
    stub.write_text(STUB)
    stub.chmod(0o755)
    (step,) = (one for one in read("action.yml")["runs"]["steps"] if "venv" in one.get("run", ""))
    given = {
        "PYTHON": str(stub),
        "ACTION": str(source),
        "REF": ref,
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_ENV": str(tmp_path / "env"),
        "ASKED": str(tmp_path / "asked"),
        "NO_WHEEL": no_wheel,
    }
    command = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
    done = attempt(*command, cwd=tmp_path, env={**os.environ, **given})
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "asked").read_text().replace(str(source), "SOURCE").splitlines()
    assert said == asked


def test_no_input_of_the_action_reaches_a_script_as_text() -> None:
    for step in read("action.yml")["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_release_publishes_what_all_jobs_made() -> None:
    release = read(".github/workflows/release.yml")
    jobs = release["jobs"]
    # YAML 1.1 reads the key `on` as true.
    assert release[True]["push"] == {"tags": ["v*"]}
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert release["permissions"] == {"contents": "read"}
    made = [
        step["with"]["name"]
        for job in jobs.values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact@")
    ]
    (taken,) = (
        step["with"]["pattern"]
        for step in jobs["publish"]["steps"]
        if step["uses"].startswith("actions/download-artifact@")
    )
    assert len(made) == 2
    assert all(name.startswith(taken.rstrip("*")) for name in made)
    scripts = [step["run"] for step in jobs["tests"]["steps"] if "run" in step]
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


def test_a_wheel_is_tested_by_a_script_that_is_there() -> None:
    settings = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    command = settings["tool"]["cibuildwheel"]["test-command"]
    assert (ROOT / command.removeprefix("python {project}/")).is_file()


def test_the_documentation_has_one_address() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert config["metadata"]["project_urls"].split() == ["Documentation", "=", SITE]
    assert set(re.findall(r"https://flake8-torchperf\.readthedocs\.io/[^)\s]*", README)) == {SITE}
    settings = read(".readthedocs.yaml")
    assert settings["python"]["install"][0]["extra_requirements"] == ["docs"]
    (command,) = settings["build"]["jobs"]["build"]["html"]
    assert command.endswith(' -c docs -b html . "$READTHEDOCS_OUTPUT/html"')


def test_links_of_the_readme_lead_to_the_site_on_an_index() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import published_readme
    finally:
        sys.path.remove(str(ROOT / "tools"))
    assert published_readme.SITE == SITE
    text = published_readme.published(README)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if "://" not in link] == []
    pages = [link.removeprefix(SITE).partition("#")[0] for link in links if link.startswith(SITE)]
    sources = {
        ROOT / "docs" / page if page.startswith("_static/") else ROOT / page.replace(".html", ".md")
        for page in filter(None, pages)
    }
    assert len(sources) > 40
    assert [str(source) for source in sources if not source.is_file()] == []
    assert published_readme.published(
        "[a\nb](docs/x.md#y) [c](#d) ![e](docs/_static/f.svg) [MIT](LICENSE)"
    ) == (f"[a\nb]({SITE}docs/x.html#y) [c]({SITE}README.html#d) ![e]({SITE}_static/f.svg) MIT")
