"""`torchperf check` by the worth of findings: the order, the best N, and the least that is told."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from flake8_run import flake8
from weighing import weighed

from flake8_torchperf.cli.main import main
from flake8_torchperf.history.finding_record import FindingRecord, led, restored
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.worth.features import OUTRIGHT, features
from flake8_torchperf.judgement.worth.fitted import weights
from flake8_torchperf.linter import lint
from flake8_torchperf.options import OptionError, Options, from_values

READ = """\
import torch


def read(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
BRANCH = """\
import torch


def clip(values: list[torch.Tensor]) -> int:
    found = 0
    for value in values:
        if value > 0:
            found += 1
    return found
"""
SHAPE = """\
import torch


def places(values: list[torch.Tensor]) -> list[torch.Tensor]:
    return [value.nonzero() for value in values]
"""
BRANCHES_FIRST = {"rule:TPF301": 2.0, "rule:TPF401": 0.0, "rule:TPF101": -2.0}
READS_FIRST = {"rule:TPF301": -2.0, "rule:TPF401": 0.0, "rule:TPF101": 2.0}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files with a finding each, of three rules."""
    for name, text in (("a.py", READ), ("b.py", SHAPE), ("c.py", BRANCH)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def told(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert capsys.readouterr().err == ""


def check(capsys: pytest.CaptureFixture[str], *words: str, cache: Path | None = None) -> list[str]:
    """The files that `torchperf check` names, in its order."""
    kept = ["--no-cache"] if cache is None else [f"--cache-dir={cache}"]
    main(["check", "--isolated", "--jobs=1", *kept, *words])
    return [line.split(":")[0].removeprefix("./") for line in capsys.readouterr().out.splitlines()]


def test_the_best_come_first(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys) == ["a.py", "b.py", "c.py"]
    with weighed(BRANCHES_FIRST):
        assert check(capsys, "--sort=worth") == ["c.py", "b.py", "a.py"]
        assert check(capsys, "--sort=place") == ["a.py", "b.py", "c.py"]
    with weighed(READS_FIRST):
        assert check(capsys, "--sort=worth") == ["a.py", "b.py", "c.py"]


def test_no_cache_holds_a_worth(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = project / "cache"
    with weighed(BRANCHES_FIRST):
        assert check(capsys, "--sort=worth", cache=cache) == ["c.py", "b.py", "a.py"]
    with weighed(READS_FIRST):
        assert check(capsys, "--sort=worth", cache=cache) == ["a.py", "b.py", "c.py"]


def test_only_the_best_are_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with weighed(BRANCHES_FIRST):
        assert check(capsys, "--top=2") == ["c.py", "b.py"]
        assert check(capsys, "--top=9") == ["c.py", "b.py", "a.py"]


def test_what_a_comment_silences_is_none_of_the_best(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silenced = BRANCH.replace("value > 0:", "value > 0:  # noqa: TPF301")
    (project / "c.py").write_text(silenced)
    with weighed(BRANCHES_FIRST):
        assert check(capsys, "--top=1") == ["b.py"]


def test_a_file_that_does_not_parse_is_told_beside_the_best(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "d.py").write_text("def :\n")
    with weighed(BRANCHES_FIRST):
        assert check(capsys, "--top=1", "--select=TPF,E9") == ["c.py", "d.py"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--top=0"], "'0' is no positive number"),
        (["--top=few"], "'few' is no positive number"),
        (["--top=3", "--sort=place"], "leave out --sort place"),
        (["--top=3", "--write-baseline=b.json"], "--top and --write-baseline exclude each other"),
        (["--min-worth=2"], "'2' is no number from 0 to 1"),
        (["--min-worth=most"], "'most' is no number from 0 to 1"),
    ],
)
def test_mistakes_take_a_line(
    words: list[str], error: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        raise SystemExit(main(["check", *words]))
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert error in line


def test_less_worth_is_not_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with weighed(BRANCHES_FIRST):
        assert check(capsys, "--min-worth=0.5") == ["b.py", "c.py"]
        assert check(capsys, "--min-worth=0.6") == ["c.py"]
        assert check(capsys, "--min-worth=0") == ["a.py", "b.py", "c.py"]
        assert check(capsys, "--min-worth=0.6", "--scope=all") == ["c.py"]


def test_the_default_scope_is_a_threshold(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with weighed(BRANCHES_FIRST, threshold=0.4):
        assert check(capsys) == check(capsys, "--scope=hot") == ["b.py", "c.py"]
        for whatever in ("--min-worth=0", "--scope=loop", "--scope=all"):
            assert check(capsys, whatever) == ["a.py", "b.py", "c.py"]


ELEMENTS = """\
import torch


def largest(x: torch.Tensor) -> float:
    best = 0.0
    for row in x:
        best = max(best, row.max().item())
    return best
"""


PROGRAM = """\
import torch


def main(batches):
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters())
    for batch in batches:
        model(batch).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main([])
"""


def test_a_loop_over_elements_is_told_whatever_its_worth(tmp_path: Path) -> None:
    with weighed({}, intercept=-9.0, threshold=0.5):
        assert {one.code for one in lint(ELEMENTS, "a.py", Options())} == {"TPF201", "TPF101"}
        (tmp_path / ".git").mkdir()
        (tmp_path / "train.py").write_text(PROGRAM)
        (tmp_path / "a.py").write_text(ELEMENTS)
        assert lint(ELEMENTS, str(tmp_path / "a.py"), Options()) == []  # nothing runs it


def test_flake8_and_pyproject_take_the_setting(project: Path) -> None:
    def files(*words: str) -> list[str]:
        results = flake8("--select=TPF", *words, ".", cwd=project, isolated=False).results
        return [one.path.removeprefix("./") for one in results]

    everything = ["a.py", "b.py", "c.py"]
    assert files() == files("--torchperf-min-worth=0") == everything
    assert files("--torchperf-min-worth=1") == []
    (project / "pyproject.toml").write_text("[tool.torchperf]\nmin-worth = 1.0\n")
    assert files() == []
    assert files("--torchperf-min-worth=0") == everything


@pytest.mark.parametrize("value", [True, "", "nan", -0.1, 1.1, [0.5], None])
def test_other_values_are_no_worth(value: object) -> None:
    with pytest.raises(OptionError, match=r"min-worth: .* is no number from 0 to 1"):
        from_values({"min-worth": value}, Options(), lambda name: name)


def test_what_the_user_decided_is_told_whatever_its_worth() -> None:
    with weighed({}, intercept=-9.0):
        never = Options(min_worth=0.5)
        assert lint(READ, "a.py", never) == []
        for decided in (
            Options(min_worth=0.5, hot=("read",)),
            Options(min_worth=0.5, sync_free=("read",)),
        ):
            (found,) = lint(READ, "a.py", decided)
            assert not OUTRIGHT.isdisjoint(features(found.site, found.code))


def test_the_worth_rests_on_all_evidence() -> None:
    """What the review of callers adds counts, though a finding is made before and after it."""
    (found,) = lint(READ, "a.py", Options())
    (late,) = (one for one in features(found.site, found.code) if one.startswith("callers:"))
    with weighed({late: 9.0}, intercept=-5.0):
        assert len(lint(READ, "a.py", Options(min_worth=0.9))) == 1


def test_the_best_of_a_row_decides_for_the_row() -> None:
    first = FindingRecord(3, 0, "TPF101 a", row="3:0", lead="TPF101 a\0", evidence="rule:TPF101")
    then = FindingRecord(4, 0, "TPF102 b", row="3:0", evidence="rule:TPF102")
    with weighed({"rule:TPF102": 1.0}):
        assert led(first, [then]).worth == then.worth > first.worth
    with weighed({"rule:TPF102": -1.0}):
        assert led(first, [then]).worth == first.worth > then.worth


def test_a_record_comes_back_with_its_evidence_and_an_older_one_does_not() -> None:
    (found,) = lint(READ, "a.py", Options())
    evidence = " ".join(sorted(features(found.site, found.code)))
    record = FindingRecord(4, 0, "TPF101 a", seconds=0.0, evidence=evidence)
    assert restored(tuple(record)) == record
    assert restored(tuple(record)[:-1]) is None
    assert record.worth == weights().worth(features(found.site, found.code))


def test_scope_all_tells_everything_unless_a_worth_is_stated() -> None:
    with weighed({}, intercept=-9.0):
        assert lint(READ, "a.py", Options(scope=Level.COLD))
        assert not lint(READ, "a.py", Options(scope=Level.COLD, min_worth=0.5))


def test_baselines_and_fingerprints_hold_when_weights_change(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fingerprints() -> list[str]:
        main(["check", "--isolated", "--jobs=1", "--no-cache", "--format=json"])
        findings = json.loads(capsys.readouterr().out)["findings"]
        return [one["fingerprint"] for one in findings]

    with weighed(BRANCHES_FIRST):
        before = fingerprints()
        main(["check", "--isolated", "--jobs=1", "--no-cache", "--write-baseline=old.json"])
        assert "3 findings" in capsys.readouterr().err
    written = (project / "old.json").read_text()
    with weighed(READS_FIRST):
        assert fingerprints() == before
        assert check(capsys, "--baseline=old.json", "--sort=worth") == []
        (project / "d.py").write_text(READ)
        assert check(capsys, "--baseline=old.json", "--sort=worth") == ["d.py"]
        assert (project / "old.json").read_text() == written


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_changed_is_told_whatever_the_weights(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *name, *words], check=True, capture_output=True)
    (project / "b.py").write_text(READ)
    for table in (BRANCHES_FIRST, READS_FIRST):
        with weighed(table):
            assert check(capsys, "--diff-base=HEAD", "--sort=worth") == ["b.py"]


def test_fixes_leave_what_is_of_less_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "return x + torch.zeros(3).to(x.device)"
    source = f"import torch\n\n\ndef f(x: torch.Tensor):\n    {line}\n"
    file = tmp_path / "a.py"
    file.write_text(source)
    for least, changes in (("0.6", False), ("0.4", True)):
        with weighed({}):
            main(["fix", "--isolated", f"--min-worth={least}", str(file)])
        capsys.readouterr()
        assert (file.read_text() != source) is changes
