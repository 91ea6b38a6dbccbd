"""Data loaders that a helper makes, or that are kept on an object; rows of masks."""

from __future__ import annotations

import textwrap
from pathlib import Path

from linting import HOT, check, expected, program, table

from flake8_torchperf.linter import lint

DATA = """
    from torch.utils.data import DataLoader, Dataset

    class Data(Dataset):
        def __getitem__(self, i):
            return open(str(i)).read(), i

        def __len__(self):
            return 3

    def built(root):
        return DataLoader(Data(), batch_size=3)  # TPF505

    def built_well(root):
        return DataLoader(Data(), batch_size=3, num_workers=2, pin_memory=True)

    def never_called(root):
        return DataLoader(Data(), batch_size=3)

    def for_the_host(root):
        return DataLoader(Data(), batch_size=3)
    """
TRAIN = """
    import torch
    from .data import built, built_well

    def train(model: torch.nn.Module, opt):
        for loader in (built(1), built_well(1)):
            for x, y in loader:
                loss = model(x.cuda()).mean()
                loss.backward()
                opt.step()
    """
COUNT = """
    from .data import for_the_host

    def count():
        return sum(1 for _ in for_the_host(1))
    """


def test_loaders_that_a_helper_makes(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in (("data.py", DATA), ("train.py", TRAIN), ("count.py", COUNT)):
        (folder / name).write_text(textwrap.dedent(text))
    text = textwrap.dedent(DATA)
    found = lint(text, str(folder / "data.py"), HOT)
    assert [(f.line, f.code) for f in found] == expected(text)


CASES = {
    "without a device": """
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __getitem__(self, i):
                return i
        def loader(data: Data):
            if torch.cuda.is_available():
                return DataLoader(data, num_workers=3, pin_memory=True)
            else:
                return DataLoader(data)
        class Trainer:
            def __init__(self):
                self.loader = DataLoader(Data())  # TPF505
            def train(self):
                for x in self.loader:
                    self.model(x.cuda())
        """,
    "rows of masks": """
        def f(x: Tensor, mask: Tensor, lengths: Tensor):
            out = []
            for i in range(3):
                out.append(x[i][mask[i]].mean())  # TPF402
            j = lengths[0]
            return out, x[1][lengths[1:]]
        """,
}


@table(CASES)
def test_loaders_and_masks(code: str) -> None:
    check(code, HOT, only=frozenset(("TPF505", "TPF402")))


def test_a_program_alone_is_asked_about_itself(tmp_path: Path) -> None:
    text = program("from torch.utils.data import DataLoader\nloader = DataLoader(3)\n")
    assert not lint(text, str(tmp_path / "alone.py"), HOT)
