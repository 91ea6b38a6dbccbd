"""`tools/fit_worth.py`: the evidence about judged places, the weights, and the committed table."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hangs import HANG

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "benchmarks")]

from worth_table import places, regression  # noqa: E402
from worth_table.demanded import TIMES, as_many  # noqa: E402
from worth_table.evaluation import (  # noqa: E402
    Experiment,
    Judged,
    area,
    by_default,
    threshold,
    told,
)
from worth_table.places import Measured, Source  # noqa: E402

from flake8_torchperf.judgement.worth.fitted import weights  # noqa: E402

FEATURES = ROOT / "benchmarks" / "judged" / "features" / "features.jsonl"
STEP = """\
from torch import Tensor, nn


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]):
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


def test_limit(loss: Tensor) -> None:
    assert loss.item() < 1
"""


def fit_worth(*arguments: str | Path, status: int = 0) -> str:
    command = [sys.executable, str(ROOT / "tools" / "fit_worth.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def measured(features: str, verdict: str, *, by_default: bool = True) -> Measured:
    names = tuple(features.split())
    return Measured("sample", "step.py", 1, 5, "TPF101", verdict, by_default, "exact", names)


def fitted(rows: list[tuple[str, bool]], strength: float = 1.0) -> regression.Model:
    names, is_worth = [row.split() for row, _ in rows], [worth for _, worth in rows]
    evidence = regression.Evidence(names, is_worth)
    return regression.fit(evidence, np.ones(len(rows), dtype=bool), strength)


@pytest.mark.slow
def test_the_committed_table_is_that_of_the_committed_features() -> None:
    assert fit_worth("fit", "--check", "--picture", ROOT / "docs" / "worth.svg") == ""


def test_the_committed_weights_keep_their_signs() -> None:
    assert weights().of
    assert all(regression.sign(name) * weight >= 0 for name, weight in weights().of.items())


def test_without_features_the_worth_is_the_share() -> None:
    assert fitted([("", True)] * 3 + [("", False)]).worth(()) == pytest.approx(0.75)


def test_weights_raise_and_lower_as_the_places_do() -> None:
    both = [("rule:TPF101 trait:hot", True), ("rule:TPF101 trait:cold", False)] * 20
    model = fitted([*both, ("rule:TPF101", True), ("rule:TPF101", False)])
    assert model.weights["trait:hot"] == pytest.approx(-model.weights["trait:cold"])
    assert model.weights["trait:hot"] > 1
    assert model.worth(["trait:hot"]) > 0.8 > 0.2 > model.worth(["trait:cold"])


def test_a_weight_against_reason_is_left_out() -> None:
    rows = [("queue:empty", True), ("", False), ("rate:own-loop", False), ("", True)] * 20
    assert fitted(rows).weights == {}
    turned = [(row, not worth) for row, worth in rows]
    assert {name: weight > 0 for name, weight in fitted(turned).weights.items()} == {
        "queue:empty": False,
        "rate:own-loop": True,
    }


def test_a_feature_of_few_places_has_no_weight() -> None:
    rows = [("trait:seldom", True)] * 9 + [("", False)] * 9
    assert fitted(rows).weights == {}
    assert fitted([*rows, rows[0]]).weights.keys() == {"trait:seldom"}


@pytest.mark.parametrize(
    ("feature", "sign"),
    [
        ("cost:per-element", 1),
        ("left-out:anything", -1),
        ("row:outside-steps", -1),
        ("row:measuring", -1),
        ("row:called", 0),
        ("rule:TPF101", 0),
    ],
)
def test_some_features_have_a_sign(feature: str, sign: int) -> None:
    assert regression.sign(feature) == sign


def test_the_order_and_the_threshold_of_places() -> None:
    rows = [("A", 0.9), ("C", 0.8), ("A", 0.7), ("A", 0.65), ("B", 0.6), ("A", 0.1)]
    judged = [Judged("one", measured("rule:TPF101", verdict), worth) for verdict, worth in rows]
    assert area(judged) == 4 / 8
    least = threshold(judged, 0.75)
    assert least == 0.65
    assert told(judged, least) == (3, 0, 1)
    shown = Judged("one", measured("rule:TPF101", "A", by_default=False), 0.9)
    assert by_default([*judged, shown]) == judged


def test_what_has_to_be_told_counts_as_many_places_and_is_no_application() -> None:
    worth, rest = measured("rule:TPF101", "A"), measured("rule:TPF102", "B")
    pairs = [*[("one", worth), ("two", rest)] * 10, ("demanded", measured("rule:TPF103", "A"))]
    assert len(as_many(pairs)) == 20 + TIMES
    experiment = Experiment(pairs)
    assert {one.application for one in experiment.left_out(1.0)} == {"one", "two"}
    without = Experiment(pairs[:-1])
    assert experiment.model(1.0).intercept > without.model(1.0).intercept


def test_the_newest_verdict_of_a_place_counts() -> None:
    source = Source("owner/name", "0" * 40, "digest")
    place = measured("rule:TPF101", "A")
    elsewhere = replace(place, column=9)
    again = replace(place, sample="2026-11-27-second-reading", verdict="B")
    before = replace(place, sample="2026-11-27-round-9", verdict="C")
    kept = places.with_evidence({source: [again, place, before, elsewhere]})
    assert kept == [("owner/name", again), ("owner/name", elsewhere)]


def test_places_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "features.jsonl"
    found = {Source("owner/name", "0" * 40, "digest"): [measured("a:b c:d", "A")]}
    places.write(file, found)
    assert places.read(file) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing\n", "1: Expecting value: line 1 column 1 (char 0)"),
        ('{"sample":"one","features":[]}\n', "1: a place without a source above it"),
    ],
)
def test_a_line_that_is_no_place_is_named(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "features.jsonl"
    file.write_text(text)
    assert fit_worth("--features", file, "fit", status=1) == f"fit_worth: {file}:{reason}\n"


def test_without_places_there_is_nothing_to_fit(tmp_path: Path) -> None:
    file = tmp_path / "features.jsonl"
    source = Source("owner/name", "0" * 40, "digest")
    places.write(file, {source: [measured("a:b", "B"), measured("a:b", "A", by_default=False)]})
    told = fit_worth("--features", file, "fit", status=1)
    assert told == f"fit_worth: {file}: no place told by default is worth telling\n"


def test_a_table_that_differs_is_named(tmp_path: Path) -> None:
    file, table = tmp_path / "features.jsonl", tmp_path / "worth.toml"
    both = [measured("a:b", "A"), replace(measured("a:b", "B"), line=2)]
    sources = [Source(f"owner/{name}", "0" * 40, "digest") for name in ("one", "other")]
    places.write(file, dict.fromkeys(sources, both))
    told = fit_worth("--features", file, "fit", "--check", "--table", table, status=1)
    assert told == f"{table} is out of date; run python tools/fit_worth.py fit\n"


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    command = ["git", *names, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def sample(clone: Path, folder: Path) -> None:
    """Write judgements of a clone: by default, left out, and without a finding."""
    common: dict[str, Any] = {
        "repository": "owner/name",
        "commit": git(clone, "rev-parse", "HEAD").strip(),
        "path": "step.py",
        "code": "TPF101",
        "by_default": True,
        "why": "a reason",
    }
    places = [(10, 15, "A"), (14, 12, "B"), (1, 1, "C")]
    rows = [{**common, "line": n, "column": at, "verdict": verdict} for n, at, verdict in places]
    rows.append({**common, "repository": "owner/other", "line": 1, "column": 1, "verdict": "A"})
    folder.mkdir()
    (folder / "one.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_judged_places_are_measured_once(tmp_path: Path) -> None:
    clone, samples = tmp_path / "owner+name", tmp_path / "samples"
    clone.mkdir()
    (clone / "step.py").write_text(f"import torch\n{STEP}")
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "one")
    sample(clone, samples)
    file = tmp_path / "features" / "features.jsonl"
    command = ["--features", file, "measure", "--repositories", tmp_path, "--samples", samples]
    lines = fit_worth(*command).splitlines()
    assert lines[0].endswith(" owner/name " + git(clone, "rev-parse", "HEAD")[:10] + ": 3")
    assert lines[1].startswith("left out: owner/other ")
    assert lines[1].endswith(f"1 places: it is not in {tmp_path}")
    (demand, demanded), (source, found) = places.read(file).items()
    assert demand.source == "demanded"
    assert {(one.verdict, one.by_default, one.match) for one in demanded} == {("A", True, "exact")}
    assert {one.path for one in demanded} == {"method.py", "scaling.py", "training.py"}
    assert (source.source, [(one.line, one.match, one.by_default) for one in found]) == (
        "owner/name",
        [(1, "none", False), (10, "exact", True), (14, "exact", False)],
    )
    nothing, told_by_default, left_out = (set(one.features) for one in found)
    assert not nothing
    assert {"rule:TPF101", "cost:per-step", "rate:own-loop"} <= told_by_default
    assert "left-out:convention" in left_out
    written = file.read_text()
    again = fit_worth(*command).splitlines()
    assert [line.partition(":")[0] for line in again] == [
        "left out",
        f"{3 + len(demanded)} places of 2 sources in {file}",
    ]
    assert file.read_text() == written
    assert fit_worth(*command, "--all").splitlines()[0].startswith("1/2 ")
