"""Comprehensions: what their variables hold, what their filters ask, and what comes out."""

from linting import check, table

VARIABLES = {
    "a list comprehension": """
        def step(xs: list[Tensor]):
            return [x.item() for x in xs]  # TPF101
        """,
    "a set comprehension": """
        def step(xs: list[Tensor]):
            return {x.item() for x in xs}  # TPF101
        """,
    "a dict comprehension, key and value": """
        def step(xs: list[Tensor]):
            return {int(x): x.tolist() for x in xs}  # TPF101, TPF102
        """,
    "a generator": """
        def step(xs: list[Tensor]):
            return sum(x.item() for x in xs)  # TPF101
        """,
    "over a dict's items": """
        def step(losses: dict[str, Tensor]):
            return {name: x.item() for name, x in losses.items()}  # TPF101
        """,
    "over a tensor": """
        def step(x: Tensor):
            return [row + 1 for row in x]  # TPF201
        """,
    "over a host list": """
        def step(x: Tensor):
            return [v + 1 for v in x.tolist()]  # TPF102
        """,
    "over a range of a size": """
        def step(x: Tensor):
            return [i * 2 for i in range(x.shape[0])]
        """,
    "nested": """
        def step(batches: list[list[Tensor]]):
            return [[x.item() for x in batch] for batch in batches]  # TPF101
        """,
    "two for clauses": """
        def step(batches: list[list[Tensor]]):
            return [x.item() for batch in batches for x in batch]  # TPF101
        """,
    "the variable does not leak": """
        def step(xs: list[Tensor], x: float):
            ys = [x + 1 for x in xs]
            return float(x), ys
        """,
    "the variable hides an outer tensor": """
        def step(x: Tensor, names: list[str]):
            lengths = [len(x) + float(x) for x in names]
            return x, lengths
        """,
    "a lambda inside": """
        def step(xs: list[Tensor]):
            return [(lambda y: y.item())(x) for x in xs]  # TPF101
        """,
}


@table(VARIABLES)
def test_variables(code: str) -> None:
    check(code)


FILTERS = {
    "a filter on a tensor": """
        def step(xs: list[Tensor]):
            return [x for x in xs if x.sum() > 0]  # TPF301
        """,
    "a filter on what the host knows": """
        def step(xs: list[Tensor]):
            return [x for x in xs if x.numel() > 0 and x.dim() == 2 and x.requires_grad]
        """,
    "a filter narrows": """
        def step(xs: list[Tensor | None]):
            return [x.item() for x in xs if x is not None]  # TPF101
        """,
    "a filter narrows by type": """
        def step(xs: list[Tensor | float]):
            return [float(x) for x in xs if not isinstance(x, Tensor)]
        """,
    "gradients that are there": """
        def step(model: nn.Module):
            return [p.grad.sum().item() for p in model.parameters() if p.grad is not None]  # TPF101
        """,
    "a conditional expression inside": """
        def step(xs: list[Tensor]):
            return [x if x.max() > 0 else -x for x in xs]  # TPF301
        """,
}


@table(FILTERS)
def test_filters(code: str) -> None:
    check(code)


RESULTS = {
    "a list of tensors": """
        def step(xs: list[Tensor]):
            norms = [x.norm() for x in xs]
            return norms[0].item()  # TPF101
        """,
    "max of a list of tensors": """
        def step(xs: list[Tensor]):
            return max([x.norm() for x in xs])  # TPF103
        """,
    "max of a generator of tensors": """
        def step(xs: list[Tensor]):
            return max(x.norm() for x in xs)  # TPF103
        """,
    "any and all of comparisons": """
        def step(xs: list[Tensor]):
            if any(x.sum() > 0 for x in xs):  # TPF103
                return 1
            return all(x.sum() > 0 for x in xs)  # TPF103
        """,
    "any of what the host knows": """
        def step(xs: list[Tensor]):
            return any(x.requires_grad for x in xs) or all(x.is_cuda for x in xs)
        """,
    "max of sizes": """
        def step(xs: list[Tensor]):
            return max(x.shape[0] for x in xs) + max(len(x) for x in xs) + sum(x.numel() for x in xs)
        """,
    "torch.stack of a list stays on the device": """
        def step(xs: list[Tensor]):
            return torch.stack([x.norm() for x in xs]).max()
        """,
    "a dict of tensors": """
        def step(xs: dict[str, Tensor]):
            norms = {name: x.norm() for name, x in xs.items()}
            for name in norms:
                norms[name].item()  # TPF101
        """,
    "a list of numbers": """
        def step(xs: list[Tensor]):
            sizes = [x.numel() for x in xs]
            if max(sizes) > 3:
                return sizes[0] / sum(sizes)
            return float(sizes[0])
        """,
    "read once, then free": """
        def step(xs: list[Tensor]):
            values = torch.stack(xs).tolist()  # TPF102
            if max(values) > 3:
                return [float(v) for v in values if v > 0]
            return sum(values)
        """,
}


@table(RESULTS)
def test_results(code: str) -> None:
    check(code)
