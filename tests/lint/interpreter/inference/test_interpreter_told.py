"""What is said of a tensor by the way: by its inverse, its name, its dimensions, its class."""

from __future__ import annotations

from linting import ALL, PRELUDE, check, table

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options

MASKS = {
    "what is inverted is boolean": """
        def f(x: Tensor, kept: Tensor, done: Tensor):
            a = x[~kept]  # TPF402
            rest = ~(kept | done)[1:]
            x[rest] = x.sum(1)  # TPF403
            return x[kept], x[-kept]
        """,
    "an object of which nothing is known, indexed by an inverse": """
        def f(batch, kept: Tensor):
            return batch[~kept]
        """,
    "a tensor that is called a mask, and indexes one": """
        def f(x: Tensor, pad_mask: Tensor, masks: Tensor, i: int):
            x[pad_mask] = x.sum(1)  # TPF403
            a = x[:, pad_mask[i - 1 :]]  # TPF402
            return x[masks], x[pad_mask.long()], x + pad_mask
        """,
    "something that is called a mask, of which nothing else is known": """
        def f(x: Tensor, mask, pad_mask: int):
            return x[mask], x[pad_mask]
        """,
    "a mask of numbers": """
        def f(x: Tensor, mask: torch.LongTensor):
            return x[mask]
        """,
    "a mask made of a parameter, asked for what tensors have": """
        def f(ids):
            mask = ids >= 0
            counts = mask.sum(dim=1)
            return ids[mask], counts  # TPF402
        """,
}


@table(MASKS)
def test_masks(code):
    check(code, ALL)


DIMENSIONS = {
    "asserted to have none": """
        def f(x: Tensor, i: Tensor):
            assert i.ndim == 0
            return x[i]  # TPF107
        """,
    "asked for in each way": """
        def f(x: Tensor, i: Tensor):
            if i.dim() == 0:
                return x[i]  # TPF107
            if len(i.shape) == 0:
                return x[i]  # TPF107
            if i.shape == ():
                return x[i]  # TPF107
            if i.ndim != 1:
                return x[i]
            return x[i], x[i.argmax()], x[i.argmax(0)]  # TPF107, TPF107
        """,
    "of an array, and of nothing known": """
        def f(x: np.ndarray, i: np.ndarray, j):
            if i.ndim == 0 and j.ndim == 0:
                return x[i], x[j]
        """,
    "compared with what is no number": """
        def f(x: Tensor, i: Tensor, n):
            if i.ndim == n or len(i) == 0:
                return x[i]
        """,
}


@table(DIMENSIONS)
def test_dimensions_that_a_test_tells(code):
    check(code, ALL)


KINDS = {
    "an iterable that is asked whether it is a tensor": """
        def f(x: Iterable, y: Sequence[float], z: list[float]):
            if isinstance(x, torch.Tensor):
                x = x.cpu()  # TPF102
            if isinstance(y, torch.Tensor):
                y = y.tolist()  # TPF102
            return x, y, z
        """,
    "an array of objects, indexed by what iterates over a tensor": """
        def f(n, x: Tensor, i: Tensor):
            items = np.empty(n, dtype=object)
            for at in torch.where(x > 0)[0]:  # TPF201, TPF401
                yield items[at]  # TPF107
            yield items[i], items[0], items[x.argmax()]  # TPF107
        """,
    "declared an array, and given to what takes tensors alone": """
        def f(x: np.ndarray):
            return torch.unique(x, dim=0), np.unique(x)  # TPF404
        """,
    "the gradient of something": """
        class Fit:
            def f(self, batch, jax):
                norm = self.weight.grad.norm(2).item()  # TPF101
                return norm, batch.grad.items(), jax.grad(norm).value.item, batch.gradient.norm(2)
        """,
    "as it is given": """
        def at_least(n, size):
            if isinstance(n, torch.Tensor) or isinstance(size, torch.Tensor):
                of = size.device if isinstance(size, torch.Tensor) else n.device
                size = torch.as_tensor(size, device=of)
                return torch.clamp(torch.as_tensor(n, device=size.device), min=2, max=size - 2)
            if n >= size - 1:
                raise ValueError(n)
            return n

        class Fit:
            def __init__(self, n: float = 30):
                self.n = n

            def f(self, x: Tensor):
                n = at_least(self.n, self.count(x))
                print(f"{n} neighbours")
                if at_least(x.sum(), 3) > 3:  # TPF301
                    return n
        """,
    "a tuple below an annotation that says a tensor": """
        class Spec:
            def parts(self, x: Tensor) -> Tensor | None:
                sizes = [space.n for space in self.spaces]
                if len(x) < sum(sizes):
                    return None
                return x.split(sizes, dim=-1)

            def f(self, x: Tensor):
                parts = self.parts(x)
                return [part.sum() for part in parts]
        """,
    "numbers out of dicts that are declared to hold tensors": """
        def collate(batches: list[dict[str, Tensor]], a: Tensor, b: Tensor):
            lengths = torch.tensor([batch["length"] for batch in batches])
            sums = [x.sum() for x in (a, b)]
            return lengths, torch.tensor([a, b]), torch.tensor(sums)  # TPF107, TPF107
        """,
}


@table(KINDS)
def test_kinds_of_values(code):
    check(code, ALL)


EINOPS = {
    "shapes and kinds": """
        def f(x: Tensor, m: torch.BoolTensor):
            a = rearrange(x, "b c h w -> b (h w) c").numpy()  # TPF102
            b = x[rearrange(m, "b n -> (b n)")]  # TPF402
            if reduce(x, "b n ->", "mean") > 3:  # TPF301
                c = x[repeat(m, "b -> b n", n=3)]  # TPF402
            d = x[reduce(m, "b n -> b", "any")]  # TPF402
            return a, b, d, x[reduce(m, "b n -> b", "sum")]
        """,
    "dimensions": """
        def f(x: Tensor, vals: Tensor):
            best = rearrange(vals, "b n -> (b n)").argmax(0)
            return x[best], x[rearrange(vals, "... n -> n ...").argmax(0)]  # TPF107
        """,
    "packed and unpacked, and products": """
        def f(x: Tensor, y):
            packed, shapes = einops.pack([x, y], "b *")
            for part in einops.unpack(packed, shapes, "b *"):
                part.tolist()  # TPF102
            return float(einops.einsum(x, x, "i, i ->"))  # TPF101
        """,
    "arrays, and what is not known": """
        def f(a: np.ndarray, y, z, how):
            if rearrange(a, "a b -> b a").max() > 1:
                return float(reduce(a, "a b ->", how))
            return float(rearrange(y, "a -> a 1")), einops.parse_shape(y, "a b"), einops.asnumpy(z)
        """,
    "on the host": """
        def f(x: Tensor):
            return rearrange(x.cpu(), "a b -> b a").tolist()  # TPF102
        """,
}
WITH_EINOPS = PRELUDE + "import einops\nfrom einops import rearrange, reduce, repeat\n"


@table(EINOPS)
def test_einops(code):
    check(code, ALL, prelude=WITH_EINOPS)


def test_a_size_counts_its_elements_too():
    check(
        """
        def f(new_shape, old_size, weight):
            if not new_shape or new_shape.numel() != old_size.numel():
                return False
            for new, old in zip(new_shape, reversed(old_size)):
                if new != old:
                    return False
            if weight.numel() > 1 and weight.sum() > 1:  # TPF301
                return True
        """,
        ALL,
    )


def test_a_guessed_mask_is_not_stated():
    check(
        """
        def f(x: Tensor, pad_mask: Tensor, kept: torch.BoolTensor):
            return x[pad_mask], x[~pad_mask], x[kept]  # TPF402
        """,
        Options(scope=Level.COLD, confidence="stated"),
    )
