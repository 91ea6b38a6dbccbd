"""What arrays can do as well tells of tensors, in a function that speaks of no arrays."""

from __future__ import annotations

from linting import ALL, check, table

PLAIN = "import torch\n"
WITH_NUMPY = "import numpy as np\nimport torch\n"


@table({
    "a reduction without arguments": """
        def f(kernel, x):
            if kernel(x).sum() < 1:  # TPF301
                return x
        """,
    "a mean without arguments, as a score of an edge is": """
        def score(left, right, edge):
            return float(left[edge].mean() * right[edge].mean())  # TPF101
        """,
    "a mean of a column": """
        def score(rows):
            return float(rows["price"].mean(numeric_only=True))
        """,
    "a parameter of which a norm is asked": """
        def f(x, limit):
            if x.norm() > limit:  # TPF301
                return float(x)  # TPF101
        """,
    "a reduction along an axis": """
        def f(score, x):
            best = score(x).sum(-1)
            return int(best)  # TPF101
        """,
    "an axis that may be anything": """
        def f(score, x, by):
            best = score(x).sum(by)
            return int(best)
        """,
    "the kernels of a loss that a class keeps": """
        class Fit:
            def __init__(self, kernels):
                self.kernels = kernels

            def loss(self, parts):
                return sum([k(p.square()).sum() for k, p in zip(self.kernels, parts)])

            def step(self, parts):
                self.last = self.best = self.loss(parts)
                while self.last <= self.best:  # TPF302
                    self.best = self.loss(parts)
        """,
    "a product of matrices": """
        def f(jacobian, step, low):
            gain = (jacobian @ step).squeeze()
            if gain > low:  # TPF301
                return gain
        """,
    "a sum with arguments is anyone's": """
        def f(query, x):
            if query(x).sum("price") < 1:
                return x
        """,
    "a product that asks for nothing": """
        def f(a, b):
            return a @ b
        """,
})  # fmt: skip
def test_a_module_without_arrays(code):
    check(code, ALL, prelude=PLAIN)


@table({
    "a reduction of what may be an array": """
        def f(kernel, x):
            if kernel(np.log(x)).sum() < 1:
                return x
        """,
    "a product of what may be arrays": """
        def f(jacobian: np.ndarray, step, low):
            gain = jacobian @ step
            if gain > low:
                return gain
        """,
    "a mean of what may be an array": """
        def score(edges, at):
            return float(edges[np.argmax(at)].mean())
        """,
    "a mean of a column of a frame": """
        def score(df):
            return float(df["price"].mean())
        """,
    "a norm of what may be an array": """
        def f(x: "np.ndarray | None", limit):
            if x.norm() > limit:
                return float(x)
        """,
    "what comes out may be an array": """
        def f(x, limit) -> np.ndarray:
            if x.norm() > limit:
                return float(x)
        """,
    "a module's own statements": """
        def load(): ...

        LIMITS = load()
        if LIMITS.sum() > 3:
            print("many")
        """,
    "a method whose class speaks of arrays": """
        class Buffer:
            def __init__(self, n):
                self.rows = np.zeros(n)

            def full(self, done):
                return bool(done.any())
        """,
    "the form of an index, whatever the function says": """
        def f(a):
            return a[:, -1].item() + a[a > 0].item()
        """,
    "random numbers and constants beside torch are no arrays": """
        def f(batch):
            deep = np.random.rand() < 0.5 or np.random.randint(9) > np.pi
            counts = [n.item() for n in batch["counts"]]  # TPF101
            return torch.zeros(max(counts)), deep
        """,
    "integers with a shape are arrays": """
        def f(batch):
            noise = np.random.randint(0, 9, 3)
            counts = [n.item() for n in batch["counts"]]
            return torch.zeros(max(counts)), noise
        """,
    "random numbers with a shape are arrays": """
        def f(batch):
            noise = np.random.rand(3)
            counts = [n.item() for n in batch["counts"]]
            return torch.zeros(max(counts)), noise
        """,
    "another use of numpy beside a constant": """
        def f(batch):
            limit = np.asarray(batch["limits"]).max() * np.pi
            counts = [n.item() for n in batch["counts"]]
            return torch.zeros(max(counts)), limit
        """,
    "constants without a word of torch": """
        def wrapped(rows):
            if rows.sum() > np.pi:
                return rows
        """,
    "a class that makes arrays, whatever its method draws": """
        class Buffer:
            def __init__(self, n):
                self.rows = np.zeros(n)

            def drawn(self, batch):
                keep = np.random.rand() < 0.5
                counts = [n.item() for n in batch["counts"]]
                return torch.zeros(max(counts)), keep
        """,
    "no word of arrays in this function": """
        def save(x):
            np.save("x.npy", x)

        def f(batch, limit):
            if batch.get("done").any():  # TPF301
                return batch.get("mask") @ limit
        """,
})  # fmt: skip
def test_a_module_with_arrays(code):
    check(code, ALL, prelude=WITH_NUMPY)
