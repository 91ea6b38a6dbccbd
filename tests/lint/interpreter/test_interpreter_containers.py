"""Lists, dicts, tuples and what torch returns in them: which element is a tensor."""

from linting import check, table

LISTS = {
    "append": """
        def step(xs: list[Tensor]):
            norms = []
            for x in xs:
                norms.append(x.norm())
            return norms[0].item()  # TPF101
        """,
    "append of numbers": """
        def step(xs: list[Tensor]):
            sizes = []
            for x in xs:
                sizes.append(x.numel())
            if sizes[0] > 3:
                return max(sizes)
            return float(sizes[-1])
        """,
    "extend and plus": """
        def step(xs: list[Tensor], ys: list[Tensor]):
            both = xs + ys
            both.extend(x * 2 for x in xs)
            both += [ys[0]]
            return both[3].item()  # TPF101
        """,
    "pop": """
        def step(xs: list[Tensor]):
            return xs.pop().item()  # TPF101
        """,
    "a slice of a list": """
        def step(xs: list[Tensor]):
            return [x.item() for x in xs[1:]]  # TPF101
        """,
    "the values of a dict that is declared to be a tensor": """
        def normalize(x: dict[str, Tensor] | Tensor) -> Tensor:
            return x

        def step(x: Tensor):
            return next(iter(normalize(x).values()))
        """,
    "the values of a sparse tensor": """
        def step(x: Tensor):
            return x.coalesce().values().sum().item()  # TPF404, TPF101
        """,
    "a list displayed": """
        def step(x: Tensor):
            parts = [x.sum(), x.mean()]
            return parts[1].item()  # TPF101
        """,
    "sorted by what the host knows": """
        def step(xs: list[Tensor]):
            return sorted(xs, key=lambda x: x.numel())
        """,
    "sorted by value": """
        def step(xs: list[Tensor]):
            return sorted(xs, key=lambda x: x.sum())  # TPF103
        """,
    "reversed": """
        def step(xs: list[Tensor]):
            for x in reversed(xs):
                x.item()  # TPF101
        """,
    "sorted in place by value": """
        def step(xs: list[tuple[int, Tensor]]):
            xs.sort(key=lambda x: x[1])  # TPF103
            xs.sort(key=lambda x: x[0])
        """,
    "functools.reduce": """
        import operator
        from functools import reduce

        def step(xs: list[Tensor], ns: list[int]):
            if reduce(operator.add, ns) > 3:
                total = reduce(operator.add, xs) + reduce(lambda a, b: a + b, xs)
                return total.item(), reduce(torch.maximum, xs).item()  # TPF101, TPF101
        """,
    "the truth of a list": """
        def step(xs: list[Tensor]):
            if xs and not len(xs) == 3:
                return xs[0]
            return None
        """,
    "membership in a list of tensors compares values": """
        def step(xs: list[Tensor], x: Tensor):
            return x in xs  # TPF105
        """,
    "membership by name": """
        def step(xs: dict[str, Tensor], name: str):
            return name in xs
        """,
    "a deque": """
        from collections import deque

        def step(x: Tensor):
            window = deque(maxlen=10)
            window.append(x)
            return window[0].item()  # TPF101
        """,
    "a tuple of which places tell what is a tensor": """
        def parts(x: Tensor, n: int):
            return (*x.unbind(), n == 1)

        def ways(x: Tensor, n: int):
            if n > 2:
                return parts(x, n)
            return x, x * 2, n > 1

        def step(x: Tensor, n: int):
            a, b, last = parts(x, n)
            if last:
                return a
            *c, end = parts(x, n)
            if end:
                return b
            d, e, flag = ways(x, n)
            if flag:
                return d
            return (*x.unbind(), *x.unbind())[0].item()  # TPF101
        """,
    "a list of text has no masks": """
        def step(names: list[str], rows: list[Tensor], x: Tensor):
            chosen = x[0] > 1
            return names[chosen], names[x.max() > 1], rows[x > 0]  # TPF107, TPF107, TPF402
        """,
    "chunks of a tensor": """
        def step(x: Tensor):
            for part in x.chunk(4):
                part.item()  # TPF101
            a, b = x.split(3)
            return a.item(), torch.unbind(b)[0].item()  # TPF101, TPF101
        """,
}


@table(LISTS)
def test_lists(code: str) -> None:
    check(code)


DICTS = {
    "a key that is known": """
        def step(x: Tensor):
            out = {"loss": x.sum(), "n": 3}
            if out["n"] > 2:
                return out["loss"].item()  # TPF101
            return float(out["n"])
        """,
    "get": """
        def step(losses: dict[str, Tensor]):
            return losses.get("total").item()  # TPF101
        """,
    "get with a default": """
        def step(losses: dict[str, Tensor], zero: Tensor):
            return losses.get("total", zero).item()  # TPF101
        """,
    "items": """
        def step(losses: dict[str, Tensor]):
            for name, loss in losses.items():
                print(name)
                loss.item()  # TPF101
        """,
    "values": """
        def step(losses: dict[str, Tensor]):
            return sum(v.item() for v in losses.values())  # TPF101
        """,
    "sum of the values stays on the device": """
        def step(losses: dict[str, Tensor]):
            total = sum(losses.values())
            return total.item()  # TPF101
        """,
    "keys are no tensors": """
        def step(losses: dict[str, Tensor]):
            for name in losses:
                if name == "total":
                    return name
            return list(losses.keys())
        """,
    "assignment by key": """
        def step(x: Tensor, names: list[str]):
            out = {}
            for name in names:
                out[name] = x.sum()
            return out["a"].item()  # TPF101
        """,
    "defaultdict of lists": """
        from collections import defaultdict

        def step(x: Tensor, names: list[str]):
            seen = defaultdict(list)
            for name in names:
                seen[name].append(x)
            for values in seen.values():
                values[0].item()  # TPF101
        """,
    "setdefault": """
        def step(x: Tensor, cache: dict[str, Tensor]):
            return cache.setdefault("x", x).item()  # TPF101
        """,
    "setdefault, filled at once": """
        def step(xs: list[Tensor], names):
            groups = {}
            for x, name in zip(xs, names):
                groups.setdefault(name, []).append(x)
            return [x.item() for group in groups.values() for x in group]  # TPF101
        """,
    "lists in a list, filled by index": """
        def step(x: Tensor, n: int):
            grid = [[] for _ in range(n)]
            grid[0].append(x)
            return grid[1][0].item()  # TPF101
        """,
    "dict() of pairs": """
        def step(names, xs: list[Tensor], n: int):
            first = dict(zip(names, xs))
            second = dict([("x", xs[0]), ("n", n)])
            if second["n"] > 3:
                return first["a"].item(), second["x"].item()  # TPF101, TPF101
        """,
    "the largest by value": """
        def step(d: dict[str, Tensor], sizes: dict[str, int]):
            return max(d, key=d.get), max(sizes, key=sizes.get)  # TPF103
        """,
    "update and a union": """
        def step(a: dict[str, Tensor], b: dict[str, Tensor]):
            merged = {**a, **b}
            other = a | b
            return merged["x"].item() + other["x"].item()  # TPF101, TPF101
        """,
    "dict() with keywords": """
        def step(x: Tensor):
            out = dict(loss=x.sum(), name="a")
            return out["loss"].item()  # TPF101
        """,
    "state_dict": """
        def step(model: nn.Module):
            return {k: v.cpu() for k, v in model.state_dict().items()}  # TPF102
        """,
}


@table(DICTS)
def test_dicts(code: str) -> None:
    check(code)


ITERATION = {
    "zip of lists": """
        def step(xs: list[Tensor], names: list[str]):
            for x, name in zip(xs, names):
                print(name)
                x.item()  # TPF101
        """,
    "zip of tensors": """
        def step(x: Tensor, y: Tensor):
            return [a + b for a, b in zip(x, y)]  # TPF201
        """,
    "enumerate": """
        def step(xs: list[Tensor]):
            for i, x in enumerate(xs):
                if i > 3:
                    return x.item()  # TPF101
        """,
    "enumerate over zip": """
        def step(xs: list[Tensor], sizes: list[int]):
            for i, (x, n) in enumerate(zip(xs, sizes)):
                if i > n:
                    x.item()  # TPF101
        """,
    "map": """
        def step(xs: list[Tensor]):
            return list(map(float, xs))  # TPF101
        """,
    "map over a tensor": """
        def step(x: Tensor):
            return list(map(lambda row: row + 1, x))  # TPF201
        """,
    "iter and next": """
        def step(model: nn.Module):
            return next(model.parameters()).item()  # TPF101
        """,
    "itertools": """
        import itertools

        def step(xs: list[Tensor], ys: list[Tensor]):
            for x in itertools.chain(xs, ys):
                x.item()  # TPF101
        """,
    "combinations, pairwise, accumulate": """
        from itertools import accumulate, combinations, pairwise

        def step(xs: list[Tensor], bounds: Tensor, x: Tensor):
            for a, b in combinations(xs, 2):
                b.item()  # TPF101
            for total in accumulate(xs):
                total.item()  # TPF101
            return [x[a:b] for a, b in pairwise(bounds)]  # TPF107, TPF107, TPF201
        """,
    "an index loop": """
        def step(x: Tensor):
            total = 0
            for i in range(len(x)):  # TPF202
                total = total + x[i]
            return total
        """,
    "an index loop over a list": """
        def step(xs: list[Tensor]):
            total = 0
            for i in range(len(xs)):
                total = total + xs[i]
            return total
        """,
}


@table(ITERATION)
def test_iteration(code: str) -> None:
    check(code)


NAMED_TUPLES = {
    "max over a dimension": """
        def step(x: Tensor):
            values, indices = x.max(dim=1)
            return values.item(), indices.item()  # TPF101, TPF101
        """,
    "max without one": """
        def step(x: Tensor):
            return x.max().item()  # TPF101
        """,
    "by field": """
        def step(x: Tensor):
            return torch.max(x, 1).values.item() + x.min(0).indices.item()  # TPF101, TPF101
        """,
    "by index": """
        def step(x: Tensor):
            return torch.max(x, 1)[0].item()  # TPF101
        """,
    "sort and topk": """
        def step(x: Tensor):
            s, _ = torch.sort(x, descending=True)
            top = x.topk(5)
            return s.tolist(), top.values.tolist(), top.indices.tolist()  # TPF102, TPF102, TPF102
        """,
    "unique with counts": """
        def step(x: Tensor):
            values, counts = torch.unique(x, return_counts=True)  # TPF404
            return counts.tolist(), values.tolist()  # TPF102, TPF102
        """,
    "unique alone": """
        def step(x: Tensor):
            return torch.unique(x).tolist()  # TPF102, TPF404
        """,
    "a decomposition": """
        def step(x: Tensor):
            u, s, vh = torch.linalg.svd(x)  # TPF404
            return s.tolist()  # TPF102
        """,
    "aminmax, mode, median, kthvalue": """
        def step(x: Tensor):
            low, high = torch.aminmax(x)
            return low.item() + x.median().item() + x.mode().values.item()  # TPF101, TPF101, TPF101
        """,
    "an LSTM": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(3, 4)

            def forward(self, x: Tensor):
                out, (h, c) = self.rnn(x)
                return out.tolist(), h.tolist(), c.tolist()  # TPF102, TPF102, TPF102
        """,
    "a named tuple of ours": """
        from typing import NamedTuple

        class Output(NamedTuple):
            loss: Tensor
            name: str

        def step(out: Output):
            loss, name = out
            print(name, out.name)
            return out.loss.item() + loss.item()  # TPF101, TPF101
        """,
    "a dataclass of ours": """
        from dataclasses import dataclass

        @dataclass
        class Output:
            loss: Tensor
            n: int

        def step(out: Output):
            return out.loss.item() / float(out.n)  # TPF101
        """,
    "a typed dict of ours": """
        from typing import TypedDict

        class Batch(TypedDict):
            x: Tensor
            n: int

        def step(batch: Batch):
            return batch["x"].item() / float(batch["n"])  # TPF101
        """,
}


@table(NAMED_TUPLES)
def test_named_tuples_and_records(code: str) -> None:
    check(code)
