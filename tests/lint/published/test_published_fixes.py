"""Waits that engineers removed from published code, restated: each is found before the fix.

Sources, read and written again in our own words: TransformerEngine pull 3268 (a list repeated by a
tensor), speculators pull 813 (values of a dict that are reduced), diffusers pulls 13461 (a step's
time read out) and 13406 (tables of a module moved in each call), DeepSpeed pulls 5125 and 4915 and
Megatron-LM commit 5653514 (gradient norms made of Python numbers), torchtune pull 522 (a loss read
for a progress bar).
"""

from linting import ALL, HOT, check, table

NUMBERS = {
    "a list repeated by a tensor": """
        def mask(lens: torch.Tensor, longest: int, n: int):
            rows = []
            for i in range(n):
                rows.append([False] * lens[i] + [True] * (longest - lens[i]))  # TPF107, TPF107
                rows.append(lens[i] * (0,))  # TPF107
                rows.append("." * lens[i])  # TPF107
                rows.append([0] * n)
                rows.append([0] * int(lens[i]))  # TPF101
            return rows
        """,
    "arithmetic is none": """
        def scale(x: torch.Tensor, factors: list[torch.Tensor], n: int):
            for f in factors:
                x = n * f * x
            return x * torch.tensor([1.0, 2.0], device=x.device)
        """,
}


@table(NUMBERS)
def test_numbers(code: str) -> None:
    check(code, ALL, only={"TPF101", "TPF107"}, prelude="import torch\n")


DICTS = {
    "values that a collective takes": """
        def validate(model, loader, world):
            totals = {}
            for batch in loader:
                _, metrics = model(**batch)
                if world > 1:
                    for m in metrics.values():
                        dist.all_reduce(m, op=dist.ReduceOp.SUM)
                for k, v in metrics.items():
                    totals[k] = totals.get(k, 0.0) + v.item()  # TPF101
            return totals
        """,
    "values that are asked for what tensors have": """
        def log(batch, results):
            for key, value in results.items():
                value.detach()
            for value in results.values():
                print(value)  # TPF104
            return float(results["loss"])  # TPF101
        """,
    "keys tell nothing of values": """
        def log(results):
            for key in results:
                key.detach()
            for value in results.values():
                float(value)
        """,
    "values that are tensors or not": """
        def log(results):
            for value in results.values():
                if isinstance(value, torch.Tensor):
                    value.detach()
            return float(results["loss"])
        """,
}


@table(DICTS)
def test_dicts(code: str) -> None:
    check(code, ALL, prelude="import torch\nimport torch.distributed as dist\n")


COLLECTIVES = """
def f(x, xs, ys, n):
    dist.all_reduce(x)
    dist.all_gather(xs, ys)
    dist.broadcast_object_list(n)
    a = float(x)  # TPF101
    b = float(xs[0])  # TPF101
    c = float(n)
    return a, b, c, float(ys)  # TPF101
"""


def test_collectives_take_tensors() -> None:
    prelude = "import torch\nfrom torch import distributed as dist\n"
    check(COLLECTIVES, ALL, only={"TPF101"}, prelude=prelude)


SIZES = {
    "expanded to sizes": """
        def run(latents: torch.Tensor, times, limit):
            for t in times:
                time = (1000 - t.expand(latents.shape[0])) / 1000
                if time[0].item() > 0.5:  # TPF101
                    break
                if t >= limit:  # TPF301
                    break
        """,
    "viewed and repeated": """
        def run(a, b, c, n: int):
            a.view(n, -1), b.repeat(1, n, 1), c.expand(n, n)
            return float(a), float(b), float(c)  # TPF101, TPF101, TPF101
        """,
    "others have methods of that name": """
        def run(d, path, array, shape, n: int):
            d.expand(shape), path.expand(), array.repeat(n, 0), array.view("int8")
            return float(d), float(path), float(array)
        """,
}


@table(SIZES)
def test_sizes(code: str) -> None:
    check(code, ALL, prelude="import torch\n")


MOVED_IN_EACH_CALL = """
class Rope(nn.Module):
    def __init__(self, dim: int, theta: float):
        super().__init__()
        places = torch.arange(1024)
        rows = torch.arange(1024)
        self.table = torch.cat([self.angles(places, dim), self.angles(places, 2 * dim)], dim=1)
        self.other = self.filled(rows)
        self.last = rows + 1

    def angles(self, index, dim):
        return torch.outer(index, 1.0 / torch.pow(10, torch.arange(0, dim, 2).float().div(dim)))

    def filled(self, index):
        index[0] = self.read()
        return index

    def forward(self, x: torch.Tensor):
        return self.table.to(x.device), self.other.to(x.device), self.last.to(x.device)  # TPF501, TPF503, TPF503
"""


def test_a_table_is_not_forgotten_by_a_call_that_only_reads_it() -> None:
    check(MOVED_IN_EACH_CALL, HOT, prelude="import torch\nfrom torch import nn\n")


GRADIENT_NORMS = {
    "clipping runs in each step": """
        def clip_grad_norm_(parameters, max_norm):
            device = parameters[0].grad.device
            total = torch.FloatTensor([0.0]).to(device)  # TPF502
            return total, torch.tensor([float(max_norm)], device=device)  # TPF502
        """,
    "items that a test has told": """
        def get_grad_norm(tensors, norm_type):
            assert all([torch.is_tensor(t) for t in tensors]), "expected tensors"
            if tensors[0] > norm_type:  # TPF301
                return 0.0
            return float(tensors[-1])  # TPF101
        """,
    "the other side of that test": """
        def get_grad_norm(xs, ys):
            if not all(isinstance(x, torch.Tensor) for x in xs):
                return float(xs[0])
            if all(isinstance(y, torch.Tensor) for y in ys if y):
                return float(ys[0])
            return float(xs[0])  # TPF101
        """,
    "for a log as well": """
        def log_grad_norm(parameters):
            return torch.tensor([1.0], device=parameters[0].grad.device)  # TPF502
        """,
}


@table(GRADIENT_NORMS)
def test_gradient_norms(code: str) -> None:
    check(code, HOT, prelude="import torch\n")


LOSSES = {
    "divided before it goes backward": """
        class Recipe:
            def train(self, loader, bar):
                for batch in loader:
                    loss = self.loss_of(batch)
                    bar.set_description(f"loss {loss.item()}")  # TPF101
                    loss = loss / self.accumulation_steps
                    self.scaler.scale(loss).backward()
        """,
    "scaled for other reasons": """
        class Recipe:
            def train(self, loader, bar):
                for batch in loader:
                    ratio = self.ratio_of(batch)
                    bar.set_description(f"ratio {ratio.item()}")  # TPF101
                    ratio = ratio / self.accumulation_steps
                    self.axis.scale(ratio).forward()
        """,
}


@table(LOSSES)
def test_losses(code: str) -> None:
    check(code, HOT, prelude="import torch\n")
