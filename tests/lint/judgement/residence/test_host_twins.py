"""Messages name the copy on the host that stands beside the tensor."""

from __future__ import annotations

import pytest
from linting import HOT

from flake8_torchperf.linter import lint

STEP = """
import torch
from torch import Tensor


class Engine:
    def decode_step(self, meta, lens: Tensor, {more}):
        for _ in range(3):
            {before}
            n = {read}
            {after}
        return n
"""
TWINS = [
    ("lens_cpu", "pass", "lens.max().item()", "lens_cpu"),
    ("x: Tensor", "lens_np = self.sizes(lens)", "int(lens[0])", "lens_np"),
    ("x: Tensor", "print(self.lens_host)", "torch.sum(self.lens).item()", "self.lens_host"),
    ("host_lens: list[int]", "pass", "lens.max().tolist()", "host_lens"),
]
NONE = [
    ("x_cpu: Tensor", "pass", "lens.max().item()"),
    ("lens_list: list[Tensor]", "pass", "lens.max().item()"),
    ("x: Tensor", "print(meta.lens_cpu)", "lens.max().item()"),
]


def messages(more: str, before: str, read: str, after: str = "pass") -> list[str]:
    text = STEP.format(more=more, before=before, read=read, after=after)
    return [one.message for one in lint(text, "engine.py", HOT)]


@pytest.mark.parametrize(("more", "before", "read", "twin"), TWINS)
def test_the_message_names_the_copy(more: str, before: str, read: str, twin: str) -> None:
    (message,) = messages(more, before, read)
    assert message.endswith(f"; read {twin} instead")


@pytest.mark.parametrize(("more", "before", "read"), NONE)
def test_other_names_are_no_copies(more: str, before: str, read: str) -> None:
    (message,) = messages(more, before, read)
    assert " instead" not in message


def test_what_the_read_makes_is_no_copy_that_it_could_use() -> None:
    (message,) = messages("x: Tensor", "pass", "lens.max().item()", "lens_cpu = n")
    assert " instead" not in message
