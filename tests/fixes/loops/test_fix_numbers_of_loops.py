"""Elements and items of a tensor that a loop uses as numbers, read at once."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix, rows

LOOP = """
    def crop(mels: Tensor, lengths: Tensor, texts: list[Tensor], sizes: list[Tensor], n: int, f):
        out = []
{}
        return out
"""
AT_INDEX = {
    "a read and a bound, with a comment": (
        """
        # each
        for i in range(n):
            half = int(lengths[i].item() / 2)
            out.append(mels[i, :half] + mels[i, : lengths[i]])
        """,
        """
        lengths_list = lengths.tolist()
        # each
        for i in range(n):
            half = int(lengths_list[i] / 2)
            out.append(mels[i, :half] + mels[i, : lengths_list[i]])
        """,
    ),
    "beside its neighbour": (
        """
        for i in range(n):
            first, last = lengths[i].item(), lengths[i + 1].item()
            out.append(mels[first:last])
        """,
        """
        lengths_list = lengths.tolist()
        for i in range(n):
            first, last = lengths_list[i], lengths_list[i + 1]
            out.append(mels[first:last])
        """,
    ),
    "of data, in an enumeration": (
        """
        for i, text in enumerate(texts):
            out.append(text[: int(lengths[i].data)])
        """,
        """
        lengths_list = lengths.tolist()
        for i, text in enumerate(texts):
            out.append(text[: int(lengths_list[i])])
        """,
    ),
    "while the tensor itself is used": (
        """
        for i in range(n):
            out.append(mels[i, : lengths[i]] * lengths[i])
        """,
        """
        lengths_list = lengths.tolist()
        for i in range(n):
            out.append(mels[i, : lengths_list[i]] * lengths[i])
        """,
    ),
    "in a branch": (
        """
        for i in range(n):
            if f(i):
                out.append(mels[i, : lengths[i]])
        """,
        """
        lengths_list = lengths.tolist()
        for i in range(n):
            if f(i):
                out.append(mels[i, : lengths_list[i]])
        """,
    ),
}
AT_INDEX_KEPT = {
    "written in the loop": """
        for i in range(n):
            out.append(mels[i, : lengths[i]])
            lengths[i + 1] = lengths[i]
        """,
    "changed in place": """
        for i in range(n):
            out.append(mels[i, : lengths[i]])
            lengths.clamp_(max=i)
        """,
    "bound in the loop": """
        for i in range(n):
            lengths = lengths + 1
            out.append(mels[i, : lengths[i]])
        """,
    "an index that the loop changes": """
        for i in range(n):
            i = i + f(i)
            out.append(mels[i, : lengths[i]])
        """,
    "a list of tensors": """
        for i in range(n):
            out.append(mels[i, : sizes[i]])
        """,
    "an index of unknown type": """
        for i in f(n):
            out.append(mels[0, : lengths[i]])
        """,
    "tested for None": """
        for i in range(n):
            if lengths is not None:
                out.append(mels[i, : lengths[i]])
        """,
    "an attribute that may be missing": """
        for i in range(n):
            if f(i):
                out.append(mels[i, : f.lengths[i].item()])
        """,
}


def _loop(text: str) -> str:
    return LOOP.format(text.strip("\n").rstrip())


@rows(AT_INDEX)
def test_elements_at_the_index_are_read_before_the_loop(row: tuple[str, str]) -> None:
    check_fix(_loop(row[0]), _loop(row[1]), UNSAFE)


@rows(AT_INDEX_KEPT)
def test_elements_that_a_list_would_not_give_are_read_one_by_one(row: str) -> None:
    check_fix(_loop(row), "", UNSAFE)


ITEMS = {
    "zip": (
        "for text, n in zip(texts, lengths):\n    out.append(text[:n] + text[1 : n - 1])",
        "for text, n in zip(texts, lengths.tolist()):\n    out.append(text[:n] + text[1 : n - 1])",
    ),
    "item": (
        "for text, n in zip(texts, lengths):\n    out.append(text * n.item())",
        "for text, n in zip(texts, lengths.tolist()):\n    out.append(text * n)",
    ),
    "enumerate": (
        "for i, (text, n) in enumerate(zip(texts, lengths)):\n    out.append(text[i:n])",
        "for i, (text, n) in enumerate(zip(texts, lengths.tolist())):\n    out.append(text[i:n])",
    ),
    "rows of a grid": (
        "for t, h, w in lengths:\n    out.append(mels.view(t, h * w))",
        "for t, h, w in lengths.tolist():\n    out.append(mels.view(t, h * w))",
    ),
    "a comprehension": (
        "out = [torch.arange(h * w) for t, h, w in lengths]",
        "out = [torch.arange(h * w) for t, h, w in lengths.tolist()]",
    ),
}
ITEMS_KEPT = {
    "used as tensors too": "for text, n in zip(texts, lengths):\n    out.append(text[:n] * n)",
    "used after the loop": "for text, n in zip(texts, lengths):\n    out.append(text[:n])\nf(n)",
    "a list of tensors": "for text, n in zip(texts, sizes):\n    out.append(text[:n])",
    "unpacked": "for text, n in zip(*f(texts), lengths):\n    out.append(text[:n])",
    "one of several names is a tensor": "for t, h in lengths:\n    out.append(mels.view(t) * h)",
}


def _indented(text: str) -> str:
    return LOOP.format("\n".join(f"        {line}" for line in text.splitlines()))


@rows(ITEMS)
def test_items_that_are_numbers_are_read_together(row: tuple[str, str]) -> None:
    check_fix(_indented(row[0]), _indented(row[1]), UNSAFE)


@rows(ITEMS_KEPT)
def test_items_that_are_more_than_numbers_stay_tensors(row: str) -> None:
    check_fix(_indented(row), "", UNSAFE)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float16", "bfloat16", "bool"])
def test_a_list_holds_what_item_gives(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.1, 1.0, 3.7, 0.0]).to(getattr(torch, dtype))
    read = [one.item() for one in x]
    assert x.tolist() == read
    assert [type(one) for one in x.tolist()] == [type(one) for one in read]
