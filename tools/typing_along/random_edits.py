"""Random edits of a text, each as the texts that it goes through while it is typed."""

from __future__ import annotations

import random
from collections.abc import Iterator

# Code that a user may type, with a placeholder for the indentation; some of it uses torch.
PIECES = (
    "x.item()", "print(loss)\n{}", "for row in x:\n{}    total += row.sum().item()\n{}",
    "if mask.any():\n{}    pass\n{}", "import torch\n", "# Größe ☃ 𝔘\n{}",
    "torch.zeros(3).cuda()\n{}", "def f(x: torch.Tensor):\n{}    return x.item()\n{}", '"""',
    "(", ")", "\t", "\n", "\x0c", "\u2028", "self.", "return ", "= 0", ", ",
    "lambda: ", "x = x.cpu().numpy()\n{}", "float(loss)\n{}",
)  # fmt: skip
LONGEST_CUT = 12


def texts_while_typed(text: str, rng: random.Random) -> Iterator[str]:
    """Yield the texts after each key of one edit: something typed, cut or moved."""
    lines = text.splitlines(keepends=True) or [""]
    number = rng.randrange(len(lines))
    line = lines[number]
    indent = line[: len(line) - len(line.lstrip())].rstrip("\r\n")
    start = sum(map(len, lines[:number]))
    kind = rng.choice(("type", "type", "cut", "line", "copy"))
    if kind == "cut":
        at = rng.randrange(len(text) + 1)
        for _ in range(rng.randint(1, LONGEST_CUT)):
            text, at = text[: max(at - 1, 0)] + text[at:], max(at - 1, 0)
            yield text
        return
    if kind == "line":
        yield text[:start] + text[start + len(line) :]
        return
    at = start + (len(indent) if rng.random() < 0.8 else rng.randint(0, len(line)))
    typed = rng.choice(lines).strip() + f"\n{indent}" if kind == "copy" else rng.choice(PIECES)
    for key in typed.replace("{}", indent):
        text = text[:at] + key + text[at:]
        at += 1
        yield text
