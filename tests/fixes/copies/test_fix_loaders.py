"""Data loaders get the options that keep a device busy."""

from __future__ import annotations

import pytest
from fixing import SHOWN, UNSAFE, Choice, check_fix

HEAD = """
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    pass

def train(model: nn.Module):
    model.cuda()
"""
NAMED = Choice(suggested=frozenset(("TPF505",)))
CASES = {
    "pinned": (
        SHOWN,
        "DataLoader(Images(), num_workers=4, pin_memory=False)  # fast",
        "DataLoader(Images(), num_workers=4, pin_memory=True)  # fast",
    ),
    "one option a line": (
        NAMED,
        "DataLoader(\n        Images(),  # all\n    )",
        "DataLoader(\n        Images(),  # all\n        num_workers=2,\n        pin_memory=True,\n    )",
    ),
    "not unless it is named": (UNSAFE, "DataLoader(Images(), pin_memory=True)", ""),
    "none are wanted": (
        SHOWN,
        "DataLoader(Images(), num_workers=0)",
        "DataLoader(Images(), num_workers=2, pin_memory=True)",
    ),
    "options from elsewhere": (SHOWN, "DataLoader(Images(), **options)", ""),
}


@pytest.mark.parametrize(("choice", "before", "after"), CASES.values(), ids=CASES)
def test_a_loader_gets_options(choice: Choice, before: str, after: str) -> None:
    wanted = f"{HEAD}    return {after}\n" if after else ""
    check_fix(f"{HEAD}    return {before}\n", wanted, choice, code="TPF505")
