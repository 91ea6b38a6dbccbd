"""Numbers that are read once."""

from __future__ import annotations

from fixing import UNSAFE, check_fix, rows

INDEXED = """
    def step(x: Tensor, y: Tensor, names: list):
        at = {}
        {}
"""
ONCE = {
    "a test, then an index": (
        "x.argmax()",
        "if at == 0:\n            return x\n        return y[at]",
    ),
    "text, and an index": ("torch.argmin(x)", 'return {f"{at}": x[at]}'),
    "bounds of slices, of any dtype": ("x.max()", "return x[:at] + y[: at - 1].sum()"),
    "sizes": ("y.amax().long()", "return torch.arange(at) + x.new_zeros(at)"),
    "arithmetic with a number": (
        "torch.where(x > 0)[0][-1]",
        "if at > 3:\n            return x\n        return x[at + 1]",
    ),
}
NEVER = {
    "used once": ("x.argmax()", "return y[at]"),
    "a bound and a factor": ("x.max()", "return x[:at] * at"),
    "a bound times a fraction": ("x.max()", "return x[:at] + y[: at * 0.5]"),
    "used as a tensor": ("x.argmax()", "if at == 0:\n            return x\n        return at * 2"),
    "not read on one path": (
        "x.argmax()",
        "if names:\n            return x\n        if at == 0:\n            return y\n"
        "        return y[at]",
    ),
    "what a tracer could follow": ("x.argmax()", "return y[at] + x[at]"),
    "perhaps of uint8": ("x[0]", "if at == 0:\n            return x\n        return y[at]"),
    "bound twice": (
        "x.argmax()",
        "if at == 0:\n            at = y.argmax()\n        return y[at] + x[at]",
    ),
    "shown as a tensor": ("x.argmax()", 'return {f"{at!r}": x[at]}'),
    "a float": (
        "x.sum()",
        'if at == 0:\n            return x\n        return {f"{at}": 1}',
    ),
}


@rows(ONCE)
def test_a_number_is_read_where_it_is_made(row: tuple[str, str]) -> None:
    after = INDEXED.format(f"{row[0]}.item()", row[1])
    check_fix(INDEXED.format(*row), after, UNSAFE)


@rows(NEVER)
def test_what_is_no_number_alone_stays_a_tensor(row: tuple[str, str]) -> None:
    check_fix(INDEXED.format(*row), "", UNSAFE, code="TPF107")


def test_a_loop_over_positions_reads_each_once() -> None:
    text = """
        def step(x: Tensor, weights: Tensor, last: int):
            for at in (x > 0).nonzero():
                at = {}
                if at == last:
                    continue
                x = x + weights[at] * weights[at]
            return x
    """
    check_fix(text.format("at[0]"), text.format("at[0].item()"), UNSAFE, code="TPF107")
