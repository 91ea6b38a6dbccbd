"""The formats of ``torchperf check``: each is what its readers accept."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from check_run import check, torchperf
from documents import ROOT
from flake8_run import flake8

from flake8_torchperf.cli.report.formats import FORMAT_NAMES
from flake8_torchperf.cli.report.github import SHOWN, annotation
from flake8_torchperf.cli.report.reported import Reported
from flake8_torchperf.findings.rule import SITE
from flake8_torchperf.history.finding_record import FindingRecord

SOURCE = """\
import torch
from torch import Tensor


def losses(values: list[Tensor]) -> list[float]:
    return [value.item() for value in values]


class Trainer:
    def train(self, model, loader, optimizer) -> None:
        for x, y in loader:
            optimizer.zero_grad()
            loss = model(x.cuda()).sum()
            loss.backward()
            optimizer.step()
            print(loss.item())


def largest(x: torch.Tensor) -> torch.Tensor:
    é = x == x.max().item()
    return é, torch.zeros(3).to(x.device)


def found(grads: list[Tensor]) -> bool:
    for grad in grads:
        for tensor in grad:
            if torch.isinf(tensor).any().item():
                return True
    return False
"""
NAME = "a, b:100%.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("formats")
    (made / NAME).write_text(SOURCE, encoding="utf-8")
    (made / "clean.py").write_text("import torch\n")
    return made


def report(folder: Path, name: str, *more: str) -> str:
    run = check(f"--format={name}", "--min-worth=0", *more, ".", cwd=folder)
    assert run.status == 1
    assert run.errors == ""
    return run.output


def expected(folder: Path) -> list[Any]:
    return flake8("--select=TPF", ".", cwd=folder).results


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_second_run_from_the_cache_prints_the_same(
    folder: Path, tmp_path: Path, name: str
) -> None:
    runs = {check(f"--format={name}", ".", cwd=folder, cache=tmp_path).output for _ in range(2)}
    assert runs == {report(folder, name)}


def test_text_is_flake8s_default(folder: Path) -> None:
    assert report(folder, "text") == check(".", cwd=folder).output


def test_json_holds_every_finding(folder: Path) -> None:
    data = json.loads(report(folder, "json"))
    assert data["version"] == 1
    found = [(f["path"], f["line"], f["column"], f["code"], f["message"]) for f in data["findings"]]
    assert found == [(NAME, r.line, r.column, r.code, r.text) for r in expected(folder)]
    lines = SOURCE.splitlines()
    for one in data["findings"]:
        if one["line"] == one["end_line"] and " in " not in one["source"]:
            text = lines[one["line"] - 1][one["column"] - 1 : one["end_column"] - 1]
            assert text == one["source"]
    functions = {one["function"] for one in data["findings"]}
    assert functions == {"losses", "Trainer.train", "largest", "found"}
    assert {one["cost"] for one in data["findings"]} == {"per element", "per step", "per call"}
    assert [one["function"] for one in data["findings"] if one["safe_fix"]] == ["largest"]


def test_sarif_has_rules_levels_places_and_fixes(folder: Path, tmp_path: Path) -> None:
    data = json.loads(report(folder, "sarif"))
    assert (data["version"], len(data["runs"])) == ("2.1.0", 1)
    (run,) = data["runs"]
    rules = run["tool"]["driver"]["rules"]
    findings = json.loads(report(folder, "json"))["findings"]
    levels = {"per element": "error", "per step": "warning", "per call": "note"}
    assert len(run["results"]) == len(findings) > 0
    for result, one in zip(run["results"], findings, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == one["code"]
        assert result["level"] == levels[one["cost"]]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "a%2C%20b%3A100%25.py"
        keys = ("startLine", "startColumn", "endLine", "endColumn")
        names = ("line", "column", "end_line", "end_column")
        assert [place["region"][key] for key in keys] == [one[name] for name in names]
    for rule in rules:
        assert rule["help"]["text"].startswith("## What it does")
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["helpUri"].startswith(f"{SITE}rules/{rule['id']}-")
    (change,) = [
        fix["artifactChanges"][0] for one in run["results"] for fix in one.get("fixes", ())
    ]
    (new,) = change["replacements"]
    lines = SOURCE.splitlines(keepends=True)
    region = new["deletedRegion"]
    lines[region["startLine"] - 1 : region["endLine"] - 1] = [new["insertedContent"]["text"]]
    (tmp_path / "fixed.py").write_text(SOURCE, encoding="utf-8")
    torchperf("fix", "--isolated", "fixed.py", cwd=tmp_path)
    assert "".join(lines) == (tmp_path / "fixed.py").read_text(encoding="utf-8") != SOURCE


@pytest.mark.skipif(
    "TORCHPERF_SARIF_SCHEMA" not in os.environ,
    reason="no package brings OASIS's schema: TORCHPERF_SARIF_SCHEMA names a file with it",
)
def test_sarif_keeps_to_the_official_schema(folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(os.environ["TORCHPERF_SARIF_SCHEMA"]).read_text(encoding="utf-8"))
    for text in (report(folder, "sarif"), check("--format=sarif", "clean.py", cwd=folder).output):
        jsonschema.Draft7Validator(schema).validate(json.loads(text))
    assert list(jsonschema.Draft7Validator(schema).iter_errors({"version": "2.1.0"}))


COMMAND = re.compile(r"::(error|warning|notice) ([^:]+)::(.*)")


def test_github_annotations_escape_what_commands_are_made_of(folder: Path) -> None:
    lines = report(folder, "github").splitlines()
    findings = json.loads(report(folder, "json"))["findings"]
    matches = [COMMAND.fullmatch(line) for line in lines]
    assert len(lines) == len(findings)
    assert all(one and "file=a%2C b%3A100%25.py," in one[2] for one in matches)
    order = ["error", "warning", "notice"]
    kinds = [one[1] for one in matches if one]
    assert kinds == sorted(kinds, key=order.index)
    one = Reported(
        "TPF1", "50 %\r\nof: a, b", "a.py", 3, 1, FindingRecord(3, 0, "", 5, 2, "per step")
    )
    made = annotation(one, {})
    assert (
        made
        == "::warning file=a.py,line=3,endLine=5,title=TPF1::50 %25%0D%0Aof: a, b%0Acost: per step"
    )


def test_github_shows_ten_of_a_kind_and_the_log_the_rest(tmp_path: Path) -> None:
    one = SOURCE[SOURCE.index("def found") :]
    many = "".join(one.replace("found", f"found_{n}") for n in range(SHOWN + 2))
    (tmp_path / "many.py").write_text(f"import torch\nfrom torch import Tensor\n\n\n{many}")
    found = json.loads(check("--format=json", ".", cwd=tmp_path).output)["findings"]
    lines = check("--format=github", ".", cwd=tmp_path).output.splitlines()
    shown = [line for line in lines if COMMAND.fullmatch(line)]
    assert len([line for line in shown if line.startswith("::error")]) == SHOWN
    rest = [line for line in lines if line.startswith("not annotated: many.py:")]
    assert len(shown) + len(rest) == len(found) > SHOWN
    assert f"GitHub shows {SHOWN} annotations of a kind; {len(rest)} more findings:" in lines


def test_the_workflow_in_the_documents_prints_what_they_say() -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(::.*?)```", page, re.DOTALL)
    workflow = re.findall(r"run: torchperf check (.*) src\n", page)
    assert workflow[-1] == "--format=github"
    file = "fixtures/issue82206_sharded_grad_scaler/before.py"
    assert check(*workflow[-1].split(), file, cwd=ROOT).output == block


def test_gitlab_fingerprints_outlast_edits(folder: Path, tmp_path: Path) -> None:
    first = json.loads(report(folder, "gitlab"))
    assert len({one["fingerprint"] for one in first}) == len(first) == len(expected(folder))
    for one in first:
        keys = {"description", "check_name", "content", "fingerprint", "severity", "location"}
        assert set(one) == keys
        assert re.search(
            r"cost: per \w+\n(residence: \w+\n)?(fix: safe\n)?page: http", one["content"]["body"]
        )
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert 0 < one["location"]["lines"]["begin"] <= one["location"]["lines"]["end"]
        assert one["location"]["path"] == NAME
    moved = SOURCE.replace("\n\n\n", "\n\n\n# moved\n").replace("x.max()", "x.max( )")
    (tmp_path / NAME).write_text(moved, encoding="utf-8")
    second = json.loads(report(tmp_path, "gitlab"))
    key = [one["fingerprint"] for one in first]
    assert [one["fingerprint"] for one in second] == key
    assert [one["location"] for one in second] != [one["location"] for one in first]


def test_junit_is_well_formed_and_counts(folder: Path) -> None:
    root = ElementTree.fromstring(report(folder, "junit"))
    (suite,) = root.findall("testsuite")
    cases = suite.findall("testcase")
    failed = [one for one in cases if one.find("failure") is not None]
    assert suite.attrib == {"name": "torchperf check", **root.attrib}
    assert len(failed) == int(root.attrib["failures"]) == len(expected(folder))
    assert len(cases) == int(root.attrib["tests"])
    (passed,) = [one.attrib["file"] for one in cases if one not in failed]
    assert passed == "clean.py"


def test_grouped_counts_by_function(folder: Path) -> None:
    lines = report(folder, "grouped").splitlines()
    assert lines[0] == NAME
    assert "  1 read in losses" in lines
    assert "  1 read in Trainer.train" in lines


def test_nothing_found_is_a_report_too(folder: Path) -> None:
    outputs = {name: check(f"--format={name}", "clean.py", cwd=folder) for name in FORMAT_NAMES}
    assert {run.status for run in outputs.values()} == {0}
    assert json.loads(outputs["gitlab"].output) == []
    assert json.loads(outputs["json"].output)["findings"] == []
    assert json.loads(outputs["sarif"].output)["runs"][0]["results"] == []
    assert ElementTree.fromstring(outputs["junit"].output).attrib["failures"] == "0"
    assert outputs["grouped"].output == outputs["github"].output == ""
    assert outputs["functions"].output == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format=jsn"], "did you mean 'json'?"),
        (
            ["--format=klingon"],
            "is not one of text, grouped, functions, json, sarif, github, gitlab, junit",
        ),
        (["--format=json", "--count"], "--count cannot be mixed with --format=json"),
        (["--format=sarif", "--statistics"], "--statistics cannot be mixed with --format=sarif"),
    ],
)
def test_a_format_that_cannot_be_used_is_one_line(
    folder: Path, options: list[str], message: str
) -> None:
    run = check(*options, ".", cwd=folder)
    assert (run.status, run.output, len(run.errors.splitlines())) == (2, "", 1)
    assert message in run.errors


def test_json_holds_what_a_program_needs_to_mend_a_finding(folder: Path, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(SOURCE, encoding="utf-8")
    found = json.loads(report(tmp_path, "json"))["findings"]
    for one in found:
        assert one["url"].endswith(f"{one['code']}-{one['rule']}.html")
        assert one["residence"] in ("device", "host", "unknown", "")
        assert one["severity"] in ("error", "warning", "note")
        assert (one["fix"] is not None) == one["safe_fix"]
    (fixed,) = [one for one in found if one["fix"]]
    assert fixed["fix"]["safety"] == "safe"
    patch = tmp_path / "fix.diff"
    patch.write_text(fixed["fix"]["diff"], encoding="utf-8")
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True)
    left = json.loads(report(tmp_path, "json"))["findings"]
    assert [one["code"] for one in left if one["fix"]] == []


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("%(bogus)s", "there is no %(bogus)s; use %(code)s, %(text)s, %(path)s, %(row)s, %(col)s"),
        ("%(pth)s", "%(col)s; did you mean 'path'?"),
        ("%(code)d", "'%(code)d' is no template: %d format: a real number is required, not str"),
        ("%(path)s %(row", "is no template: incomplete format key"),
        ("100 % %(code)s", "is no template: "),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_one_line(
    tmp_path: Path, template: str, said: str
) -> None:
    (tmp_path / "a.py").touch()
    run = check(f"--format={template}", "a.py", cwd=tmp_path)
    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith("torchperf: check: --format: ")
    assert said in run.errors
    assert run.errors.count("\n") == 1


def test_a_template_may_hold_colors_and_percent_signs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.item()\n"
    )
    run = check("--format=%(bold)s%(code)s%(reset)s at %(row)d, 100%%", "a.py", cwd=tmp_path)
    assert (run.output, run.errors) == ("TPF101 at 5, 100%\n", "")
