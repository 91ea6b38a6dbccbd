"""Tensors that the calls in a module give: their rows, and what computes with them."""

from __future__ import annotations

from linting import ALL, check, table


@table({
    "rows of what a method is given": """
        class Net(nn.Module):
            def grow(self, grid):
                found = []
                for t, h, w in grid:
                    steps = torch.linspace(0, 1, h, device=self.device)  # TPF107
                    found.append(steps.expand(t, -1, -1))  # TPF107
                return torch.cat(found)

            def forward(self, x: Tensor, grid: Tensor):
                return x * self.grow(grid) * grid.max().item()
        """,
    "rows of what a function is given": """
        def grow(grid):
            for i, (h, w) in enumerate(grid):
                torch.arange(h)  # TPF107

        def draw(grid: Tensor):
            return grow(grid), grid.max().item()
        """,
    "a list of pairs": """
        def grow(grid):
            for h, w in grid:
                torch.arange(h)

        def draw(n: int):
            return grow([(n, n), (2, n)])
        """,
    "a pair that is declared a tensor": """
        class Net(nn.Module):
            def turn(self, rotary):
                cos, sin = rotary
                return torch.arange(cos)

            def forward(self, x: Tensor, rotary: Tensor):
                return self.turn(rotary), x.max().item()
        """,
    "a tensor as a size": """
        def make(x: Tensor, n: int):
            a = torch.Size(x)  # TPF107
            b = torch.Size([n, x.shape[0]])
            return a, b, torch.Size(x.shape)
        """,
})  # fmt: skip
def test_numbers_read(code: str) -> None:
    check(code, ALL, only=frozenset(("TPF107",)))


def test_rounding_up_computes_with_tensors() -> None:
    code = """
        import numpy as np
        import triton

        def blocks(lengths: Tensor, n: int, size: int):
            if triton.cdiv(n, size) > 3:
                return [size]
            return triton.cdiv(lengths, size).tolist()  # TPF102
        """
    check(code, ALL)
