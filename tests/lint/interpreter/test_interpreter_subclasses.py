"""Subclasses of Tensor: what they define themselves, and what they have of torch's."""

from linting import ALL, check, table

EDGES = """
class Edges(Tensor):
    def topk(self, best: Tensor | None = None) -> Tensor:
        return torch.where(self > best, self, 0)

    def biggest(self) -> Tensor:
        return torch.max(self)

    def size(self, dim=None):
        return unclear(self, dim)

    @property
    def rows(self) -> int:
        return 3
"""
USES = {
    "a method in place of one of torch's takes what it takes": """
        def f(edges: Edges, value: Tensor):
            return edges.topk(value.sum())
        """,
    "torch's own takes a number": """
        def f(edges: Tensor, value: Tensor):
            return edges.topk(value.sum())  # TPF107
        """,
    "a method that torch has not": """
        def f(edges: Edges):
            if edges.biggest() > 3:  # TPF301
                return edges.sum().item()  # TPF101
        """,
    "one that does not say what it returns is as torch's": """
        def f(edges: Edges, x: Tensor):
            return int(edges.size(0)), x[edges.size(0) :]
        """,
    "a property": """
        def f(edges: Edges):
            return int(edges.rows) > 2
        """,
}


@table(USES)
def test_methods_of_subclasses(code):
    check(code, ALL, prelude=PRELUDE)


PRELUDE = "import torch\nfrom torch import Tensor\n" + EDGES
