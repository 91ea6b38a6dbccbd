"""The evidence that what leads to the function of a finding shows."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import HOT
from weighing import weighed

from flake8_torchperf.judgement.worth.features import features, is_repeated
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.project.texts import settings_files, text_search

# A distribution in which dead code alone makes an object of one class.
LIBRARY = {
    "pyproject.toml": '[project]\nname = "kit"\n',
    "kit/__init__.py": "",
    "kit/used.py": """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                print(x.max().item())  # used
                return self.half(x)

            def half(self, x: torch.Tensor):
                return x / x.sum().item()  # used
        """,
    "kit/unused.py": """
        import torch


        class Norm(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                print(x.max().item())  # none
                return self.half(x)

            def half(self, x: torch.Tensor):
                return x / x.sum().item()  # elsewhere


        def build():
            return Norm()


        def scaled(x: torch.Tensor):
            return x / x.sum().item()  # named nowhere
        """,
}
PROGRAM = {
    "train.py": """
        import torch

        from kit.used import Net


        def main():
            net = Net().cuda()
            for x in torch.utils.data.DataLoader([]):
                net(x.cuda(non_blocking=True)).backward()


        if __name__ == "__main__":
            main()
        """
}


def told(folder: Path, name: str) -> dict[str, set[str]]:
    """Return the callers that the findings of a file show, by the comment of their line."""
    text = (folder / name).read_text(encoding="utf-8")
    lines = text.splitlines()
    found: dict[str, set[str]] = {}
    for one in lint(text, str(folder / name), HOT):
        shown = {name for name in features(one.site, one.code) if name.startswith("callers:")}
        found.setdefault(lines[one.line - 1].partition("# ")[2], set()).update(shown)
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    (folder / ".git").mkdir()
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")


def test_nothing_in_a_project_with_a_program_leads_to_a_function(tmp_path: Path) -> None:
    write(tmp_path, {**LIBRARY, **PROGRAM})
    unused = told(tmp_path, "kit/unused.py")
    assert unused == {"elsewhere": {"callers:elsewhere"}, "none": {"callers:elsewhere"}}
    (tmp_path / "README.md").write_text("`scaled` divides by the sum.\n")
    text_search.forget()
    settings_files._LAST.clear()
    assert told(tmp_path, "kit/unused.py") == {**unused, "named nowhere": {"callers:elsewhere"}}
    assert "callers:elsewhere" not in told(tmp_path, "kit/used.py")["used"]


def test_a_project_without_a_program_is_run_from_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, LIBRARY)
    assert "callers:elsewhere" not in told(tmp_path, "kit/unused.py")["elsewhere"]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (("row:called",), True),
        (("row:nothing", "callers:known"), True),
        (("row:seldom-calls",), False),
        (("row:nothing", "callers:found"), False),
        (("row:called", "callers:found", "rate:around-step"), True),
    ],
)
def test_loops_outside_the_steps_are_weighed(others: tuple[str, ...], told: bool) -> None:
    assert is_repeated(("rate:own-loop", "cost:per-element", *others)) == told


# first-order-model, reconstruction.py: frames are saved by a program of its own
SAVED = """
    import torch


    def saved(frames: torch.Tensor):
        return [frame.cpu() for frame in frames]
    """
SAVING = """
    import torch
    from saved import saved


    def main(net: torch.nn.Module, loader):
        for x in loader:
            y = net(x.cuda())
            {inside}
        {after}


    if __name__ == "__main__":
        main(*read())
    """


@pytest.mark.parametrize(
    ("inside", "after", "told"),
    [("pass", "saved(y)", False), ("saved(y)", "pass", True), ("pass", "pass", True)],
)
def test_known_calls_outside_the_steps(inside: str, after: str, told: bool, tmp_path: Path) -> None:
    path = tmp_path / "saved.py"
    path.write_text(textwrap.dedent(SAVED), encoding="utf-8")
    program = textwrap.dedent(SAVING.format(inside=inside, after=after))
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    with weighed({}, threshold=0.9):
        found = lint(path.read_text(encoding="utf-8"), str(path), Options())
    assert bool(found) == told
