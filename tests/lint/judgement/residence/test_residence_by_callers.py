"""Where a value lies, by the calls of a whole project and by what its function does with it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import HOT, expected

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.linter import lint
from flake8_torchperf.project.texts import text_search

HELPERS = """
    import torch

    def longest(lengths: torch.Tensor) -> list[int]:
        return [int(lengths.max().item()) for _ in range(3)]
    """
TRAIN = """
    import numpy as np
    import torch
    from .helpers import longest

    def lengths_of(batch):
        return torch.from_numpy(np.array([len(row) for row in batch]))

    def train(model: torch.nn.Module, loader, opt):
        for batch in loader:
            {calls}
            model(batch.cuda()).sum().backward()
            opt.step()

    train(*made())
    """


def found_in_helpers(folder: Path, train: str, name: str = "longest") -> list[str]:
    """Return the codes found in the helpers of a project whose program is ``train``."""
    return [one.code for one in linted_helpers(folder, train, name)]


def messages_in_helpers(folder: Path, train: str) -> list[str]:
    """Return the messages of what is found in the helpers of such a project."""
    return [one.message for one in linted_helpers(folder, train, "longest")]


def linted_helpers(folder: Path, train: str, name: str) -> list[Finding]:
    """Return the findings in the helpers of such a project."""
    (folder / ".git").mkdir()
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text(textwrap.dedent(train), encoding="utf-8")
    helpers = package / "helpers.py"
    helpers.write_text(textwrap.dedent(HELPERS).replace("longest", name), encoding="utf-8")
    return lint(helpers.read_text(encoding="utf-8"), str(helpers), HOT)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ("longest(lengths_of(batch))", False),
        ("longest(torch.zeros(3))", False),
        ("longest(torch.zeros(3, device='cuda').cpu())", False),
        ("longest(torch.stack([torch.arange(3), torch.arange(3)]))", False),
        ("longest(lengths_of(batch).cuda())", True),
        ("longest(lengths_of(batch)); longest(model(batch))", True),
        ("longest(batch)", True),
        # RFdiffusion, inference/model_runners.py, `Sampler._preprocess`
        ("longest(torch.cat((made(), torch.zeros(3))))", False),
        ("longest(torch.cat((made(), torch.zeros(3).cuda())))", True),
    ],
)
def test_host_values_of_all_callers_do_not_wait(calls: str, told: bool, tmp_path: Path) -> None:
    found = found_in_helpers(tmp_path, TRAIN.format(calls=calls))
    assert found == (["TPF101"] if told else [])


BOTH = """
    import torch
    from .helpers import longest

    def prepare():
        {prepare}

    def train(model: torch.nn.Module, loader, opt):
        for batch in loader:
            longest(torch.zeros(3))
            {step}
            model(batch.cuda()).sum().backward()
            opt.step()

    def run(model: torch.nn.Module, opt):
        prepare()
        train(model, made(), opt)

    run(*made())
    """


@pytest.mark.parametrize(
    ("prepare", "step", "told"),
    [
        ("print()", "longest(model(batch))", "for `train` at line 11"),
        ("return longest(torch.zeros(3, device='cuda'))", "print()", ""),
        (
            "return longest(torch.zeros(3, device='cuda'))",
            "longest(batch)",
            "for `train` at line 11",
        ),
        ("return longest(torch.zeros(3))", "print()", ""),
    ],
)
def test_a_finding_names_the_caller_for_which_it_waits(
    prepare: str, step: str, told: str, tmp_path: Path
) -> None:
    found = messages_in_helpers(tmp_path, BOTH.format(prepare=prepare, step=step))
    assert [told in one for one in found] == [True] * bool(told)


RACES = """
    import torch

    def largest(x: torch.Tensor) -> torch.Tensor:
        copied = x.to("cpu", non_blocking=True)
        return copied + torch.zeros(3)
    """


@pytest.mark.parametrize(
    ("prepare", "step", "told"),
    [
        ("return largest(torch.zeros(3))", "print()", ""),
        ("return largest(torch.zeros(3))", "largest(model(batch.cuda()))", "`copied` is read"),
        ("return largest(torch.zeros(3, device='cuda'))", "print()", "`copied` is read"),
    ],
)
def test_no_copy_of_host_values_arrives_late(
    prepare: str, step: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "HELPERS", RACES)
    both = BOTH.replace("longest", "largest").format(prepare=prepare, step=step)
    found = messages_in_helpers(tmp_path, both)
    assert [told in one for one in found] == [True] * bool(told)


SHOWN = """
    import torch
    from .helpers import longest

    def example():
        return longest(torch.zeros(3))

    def other():
        return longest(torch.ones(2))
    """


@pytest.mark.parametrize(("run", "told"), [("", True), ("\n    example()\n    other()\n", False)])
def test_what_only_an_example_passes_shows_nothing(run: str, told: bool, tmp_path: Path) -> None:
    found = found_in_helpers(tmp_path, (SHOWN + run).replace("longest", "_longest"), "_longest")
    assert found == (["TPF101"] if told else [])


WORKERS = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    def packed(rows: list[torch.Tensor]):
        return [row.sum().item() for row in rows]

    class Data(Dataset):
        def __getitem__(self, i: int):
            return self.row(self.rows[i])

        def row(self, x: torch.Tensor):
            return [x.sum().item() for _ in range(3)]

    def train(model, opt):
        for batch in DataLoader(Data(), {given}num_workers=2, pin_memory=True):
            {call}
            model(batch.cuda()).sum().backward()
            opt.step()

    train(*made())
    """


@pytest.mark.parametrize(("given", "told"), [("collate_fn=packed, ", False), ("", True)])
def test_what_makes_batches_works_on_the_host(given: str, told: bool, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    text = textwrap.dedent(
        WORKERS.format(given=given, call="packed(model(batch.cuda()))" if told else "print()")
    )
    file = tmp_path / "program.py"
    file.write_text(text, encoding="utf-8")
    found = lint(text, str(file), HOT)
    reads = [one.code for one in found if one.code == "TPF101"]
    assert reads == (["TPF101"] if told else [])


COLLATOR = """\
from dataclasses import dataclass

import torch
from rows import packed


@dataclass
class Padded:
    pad: int

    def __call__(self, rows: list[torch.Tensor]):
        return packed(rows)


class Longest(Padded):
    pass
"""
ROWS = """\
import torch


def packed(rows: list[torch.Tensor]):
    return [row.sum().item() for row in rows]
"""
TRAINING = """\
import torch
from collators import {name}
from torch.utils.data import DataLoader


def train(data, model, optimizer):
    {before}
    loader = DataLoader(data, {keyword}={given}, num_workers=2, pin_memory=True)
    for batch in loader:
        model(batch.cuda()).sum().backward()
        optimizer.step()
"""
COLLATED = {
    "directly": ("Padded", "pass", "collate_fn", "Padded(0)", False),
    "as a trainer's collator": ("Padded", "pass", "data_collator", "Padded(0)", False),
    "by a local name": ("Padded", "collate = Padded(0)", "collate_fn", "collate", False),
    "by a class below": ("Longest", "pass", "collate_fn", "Longest(0)", False),
    "another one": ("Padded", "kept = Padded(0)", "collate_fn", "None", True),
}


@pytest.mark.parametrize(
    ("name", "before", "keyword", "given", "told"), COLLATED.values(), ids=list(COLLATED)
)
def test_what_another_module_gives_a_loader(
    name: str, before: str, keyword: str, given: str, told: bool, tmp_path: Path
) -> None:
    """What a collator of another module calls works on the host."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "collators.py").write_text(COLLATOR, encoding="utf-8")
    text = TRAINING.format(name=name, before=before, keyword=keyword, given=given)
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    file = tmp_path / "rows.py"
    file.write_text(ROWS, encoding="utf-8")
    text_search.forget()
    assert [one.code for one in lint(ROWS, str(file), HOT)] == (["TPF101"] if told else [])


PLACES = """
    import torch

    def train_step(points, labels, model, device):
        points = torch.as_tensor(points)
        for _ in range(3):
            ids = torch.tensor([2, 3], device=points.device)
            other = torch.tensor([2, 3], device=labels.device)  # TPF502
            rms = torch.sqrt(points.square().mean())
            points = points.to(device)
        return model(points, ids, other), rms

    def summary(scores: dict[str, torch.Tensor]):
        return {key: {one: scores[key][one].sum() for one in scores[key]} for key in scores}

    def halves(pair: torch.nn.Parameter):
        first, second = map(torch.neg, pair)
        return first * second
    """


def test_a_value_is_on_the_host_until_it_is_moved(tmp_path: Path) -> None:
    text = textwrap.dedent(PLACES)
    file = tmp_path / "places.py"
    file.write_text(text, encoding="utf-8")
    found = lint(text, str(file), HOT)
    assert sorted((one.line, one.code) for one in found) == expected(text)


GENERATE = """
    import torch
    from diffusers import ModelMixin
    from .helpers import longest

    class Net(torch.nn.Module, ModelMixin):
        def forward(self, x):
            lengths = {lengths}
            return self.cut(x, lengths)

        def cut(self, x, lengths):
            return x[:, : longest(lengths)[0]]

    def generate(x):
        model = Net.from_pretrained("net").cuda()
        for _ in range(50):
            x = model(x)
        return x

    if __name__ == "__main__":
        generate(torch.randn(4, 9, device="cuda"))
    """


@pytest.mark.parametrize(
    ("lengths", "codes"),
    [("torch.tensor([len(row) for row in x])", []), ("x.argmax(1)", ["TPF101"])],
)
def test_the_calls_of_a_program_that_does_not_train_show_where_a_value_lies(
    tmp_path: Path, lengths: str, codes: list[str]
) -> None:
    assert found_in_helpers(tmp_path, GENERATE.format(lengths=lengths)) == codes


BESIDE = """
    import torch
    from .helpers import longest

    class Above(torch.nn.Module):
        def forward(self, x, lengths):
            return x * 2

    class Left(Above):
        def forward(self, x, lengths):
            return super().forward(x, x.argmax(1))

    class Right(Above):
        def forward(self, x, lengths):
            return x[:, : longest(lengths)[0]]
    {both}
    def train(loader):
        model, other = {made}(), Right()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            lengths = torch.tensor([len(row) for row in x])
            (model(x.cuda(), lengths) + other(x.cuda(), lengths)).sum().backward()
            opt.step()

    train(made())
    """


@pytest.mark.parametrize(
    ("both", "made", "codes"),
    [("", "Left", []), ("class Both(Left, Right):\n        pass\n", "Both", ["TPF101"])],
)
def test_super_leads_to_a_class_beside_only_if_one_derives_from_both(
    tmp_path: Path, both: str, made: str, codes: list[str]
) -> None:
    assert found_in_helpers(tmp_path, BESIDE.format(both=both, made=made)) == codes


# RFdiffusion, util.py, `get_torsions`, and inference/model_runners.py, `Sampler._preprocess`
FRAMES = """
    import torch

    def frames(points, kinds):
        ideal = torch.tensor([-0.5, 1.4, 0.0], device=points.device)
        return (points - ideal) * kinds
    """
SAMPLER = """
    import torch
    import frames

    class Sampler:
        def prepared(self, points):
            kinds = torch.full((5,), 21)
            points = points[None]
            points = torch.cat((points, torch.full((1, 3), 0.0{device})), dim=1)
            angles = frames.frames(points.reshape(-1, 5, 3), kinds)
            return points.to("cuda"), angles.to("cuda")

    def sample(points, sampler: Sampler, net: torch.nn.Module):
        for t in range(50):
            points = net(*sampler.prepared(points)).cpu()

    if __name__ == "__main__":
        sample(made(), Sampler(), made())
    """


@pytest.mark.parametrize(("device", "codes"), [("", []), (", device='cuda'", ["TPF502"])])
def test_what_a_caller_combines_with_host_data_lies_there(
    device: str, codes: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "frames.py"
    path.write_text(textwrap.dedent(FRAMES), encoding="utf-8")
    program = textwrap.dedent(SAMPLER.format(device=device))
    (tmp_path / "sample.py").write_text(program, encoding="utf-8")
    found = lint(path.read_text(encoding="utf-8"), str(path), HOT)
    assert [one.code for one in found] == codes
