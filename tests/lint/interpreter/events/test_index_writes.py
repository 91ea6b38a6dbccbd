"""Assignments through an index: which of them copy a number or a tensor, TPF407 and TPF501 to 503."""

from __future__ import annotations

from linting import ALL, check, findings, program, table

ELEMENTS = {
    "a factory tells the number of dimensions": """
        class Net(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.register_buffer("kept", torch.zeros(n))
                self.weight = nn.Parameter(torch.zeros(3, 4))
                self.at = 0

            def forward(self, x: Tensor, n: int):
                seen = torch.zeros(n, dtype=torch.bool, device=x.device)
                seen[0] = True  # TPF407
                grid = torch.empty(n, n, device=x.device)
                for i in range(n):  # TPF202
                    for j in range(n):  # TPF202
                        grid[i, j] = math.exp(i - j)  # TPF407
                grid[0][1] = 2.0  # TPF407
                first = x.new_zeros(n)
                first[-1] = n  # TPF407
                self.kept[self.at] = 1.0  # TPF407
                self.weight.data[0, 1] = 0.0  # TPF407
                return seen, grid, first
        """,
    "what is made of it has as many": """
        def step(x: Tensor, n: int):
            w = torch.ones(x.size(0), device=x.device)
            a, b, c, d = w.clone(), torch.zeros_like(w), w * 2 + 1, w[1:]
            a[0] = math.inf  # TPF407
            b[0] = float("nan")  # TPF407
            c[0] = n  # TPF407
            d[0], d[-1] = 0, 1  # TPF407, TPF407
            e = torch.diag(torch.stack([w, w]))
            e[0] = 1  # TPF407
            f = x.flatten()
            f[0] = 0  # TPF407
            return a, b, c, d, e, f
        """,
    "an element is read as a number": """
        def step(x: Tensor, n: int):
            total = 0.0
            for i in range(n):
                total += float(x[i])  # TPF206
                x[i] = 0.0  # TPF407
            return total
        """,
    "the keywords of a dict that is written out": """
        def step(x: Tensor, n: int):
            like = {"device": x.device, "dtype": x.dtype}
            made = torch.zeros(n, **like)
            made[0] = 1.0  # TPF407
            return made, torch.tensor(1.0, **like)  # TPF502
        """,
    "parts, and what is not known to be a number or to have one dimension": """
        def step(x: Tensor, n: int, i, value, table: dict[int, float]):
            w = torch.zeros(n, device=x.device)
            w[:3], w[...], w[i], w[0], w[None, 0] = 0, 0, 1, value, 2
            grid = torch.zeros(n, n, device=x.device)
            grid[0], grid[:, 0], grid[0, 1:], grid[..., 0] = 0, 0, 1, 1
            x[0], x[0, 0] = 0, 1
            table[0] = 1.0
            here = torch.zeros(n)
            here[0], here[torch.arange(2)] = 1.0, 2.0
            w[0] += 1.0
            w[0].fill_(1.0)
            return grid
        """,
    "a number that was read just there": """
        def step(x: Tensor, n: int):
            w = torch.zeros(n, device=x.device)
            w[0] = x.sum().item()  # TPF101
            return w
        """,
}


@table(ELEMENTS)
def test_a_number_for_one_element(code: str) -> None:
    check(code)


POSITIONS = {
    "integers of the device": """
        def step(x: Tensor, mask: Tensor, k: int, given: torch.LongTensor):
            _, top = x.topk(k)
            x[top] = 0  # TPF407
            x[x.argsort()], x[x.sort()[1]] = 0.0, 1.0  # TPF407, TPF407
            x[torch.randint(0, 9, (3,), device=x.device)] = 0  # TPF407
            x[torch.arange(k, device=x.device), top] = 1  # TPF407
            x[given] = -100  # TPF407
            x[given, 0], x[:, given] = 5.0, 5.0  # TPF407, TPF407
            x[mask.bool(), given] = 0  # TPF407
            return x
        """,
    "the host waits at more than the number": """
        def step(x: Tensor, mask: Tensor, y: Tensor):
            kept = torch.nonzero(mask).squeeze(1)  # TPF401
            x[kept] = 0  # TPF407
            best = y.argmax()
            x[best] = 0  # TPF107
            x[y.sum() > 0] = 0  # TPF107
            x[[0, 2]] = 0  # TPF406
            return x
        """,
    "masks, tensors, and indices of which nothing is known": """
        def step(x: Tensor, mask: torch.BoolTensor, given: torch.LongTensor, index: Tensor):
            x[mask], x[x > 0], x[mask, 0], x[index] = 0, 1, 2, 3
            x[given] = x.mean()
            x.index_fill_(0, given, 1.0)
            x.index_put_((given, given), x.new_zeros(()))
            return x
        """,
}


@table(POSITIONS)
def test_a_number_for_positions(code: str) -> None:
    check(code)


TENSORS = {
    "made on the host, on the right": """
        def step(x: Tensor, n: int, values: list[float]):
            x[0, :2] = torch.tensor([1.0, 2.0])  # TPF502
            x[:n] = torch.ones(n)  # TPF501
            w = torch.zeros(n, device=x.device)
            w[0] = torch.tensor(1.0)  # TPF502
            x.copy_(torch.eye(n))  # TPF501
            x.index_put_((x.argsort(),), torch.tensor(0.5))  # TPF502
            return x, w
        """,
    "made on the host, to choose from": """
        def step(x: Tensor, mask: Tensor):
            a = torch.where(mask, torch.tensor(0.0), x)  # TPF502
            return a, x.where(mask, torch.tensor(0.0)), torch.where(mask, x, 0.0)  # TPF502
        """,
    "made on the host where nothing is added": """
        def step(grads: list[Tensor]):
            norm = torch.zeros(())
            for grad in grads:
                norm = norm + grad.norm()
            return torch.where(norm > 5, 5.0 / norm, 1.0)
        """,
    "made on the host, as an index": """
        def step(x: Tensor, n: int):
            for rows in torch.randperm(n).split(32):
                x = x + x[rows].sum()  # TPF501
            return x[:, torch.tensor([0, 2])], x[n - torch.arange(n) - 1]  # TPF501, TPF502
        """,
    "kept on the host": """
        def step(x: Tensor, rows: list[Tensor], n: int):
            kept, sums = torch.empty(n), torch.zeros(n)
            kept.copy_(x.cuda())  # TPF102
            for i, row in enumerate(rows):
                sums[i] = row.cuda().sum()  # TPF102
            return kept, sums
        """,
    "nothing is copied": """
        def step(x: Tensor, y: Tensor, n: int, mask: torch.BoolTensor):
            x[0], x[mask] = y, torch.tensor(1.0)
            x[0, :2].copy_(y[0, :2])
            x.copy_(torch.eye(n), non_blocking=True)
            z = torch.zeros(n)
            z[:2], z[torch.arange(2)] = torch.ones(2), 1.0
            return torch.where(torch.zeros(3) > 1, torch.ones(3), torch.tensor(0.0)), z
        """,
}


@table(TENSORS)
def test_a_tensor_on_the_other_side(code: str) -> None:
    check(code)


def test_one_caller_with_an_index_of_the_host_is_told() -> None:
    code = """
        class Net(nn.Module):
            def forward(self, x: Tensor, n: int, rows: torch.LongTensor):
                order = x[torch.arange(n)]  # TPF501
                return order + self._part(x, torch.arange(n)) + self._part(x, rows)

            def _part(self, x: Tensor, rows: Tensor):
                return x[rows - 1]  # TPF503
        """
    check(code, ALL)
    assert [one.split()[1] for one in findings(program(code))] == ["TPF501", "TPF503"]


def test_an_index_of_unknown_residence_that_one_path_shows_is_not_copied() -> None:
    check(
        """
        def step(x: Tensor, n: int, given, flag: bool):
            rows = x.argsort() if flag else given(n)
            made = torch.randperm(n) if flag else given(n)
            return x[rows], x[made]  # TPF503
        """,
        ALL,
    )


def test_advice_fits_what_is_written() -> None:
    code = """
        def step(x: Tensor, n: int):
            w = torch.zeros(n, device=x.device)
            w[0] = 1.0
            w[x.argsort()] = 1.0
            return w
        """
    element, positions = findings(program(code))
    assert "write w[0].fill_(number)" in element
    assert "use index_fill_, or assign a device tensor" in positions
