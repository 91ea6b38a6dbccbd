"""What is done once, for the host, or because somebody asks for it, as the code around it tells.

Each program is silent by default and reports the marked lines in scope `all`; its near neighbours,
which are hot, are reported in both.
"""

from __future__ import annotations

from linting import ALL, HOT, check, findings, program, table


def silent_by_default(code: str) -> None:
    """Assert that a program has the findings it names in scope `all`, and none by default."""
    check(code, ALL)
    assert findings(program(code), HOT) == []


# TPF502 asks for code that is known to run in each step, in every scope.
NEW_DATA = {
    "what a caller gives as a list": """
        class Agent:
            def __call__(self, states, device: torch.device, batch):
                if not isinstance(states, Tensor):
                    states = torch.tensor(states, device=device)  # TPF502
                weights = torch.tensor([b["weight"] for b in batch], device=device)  # TPF502
                ids = self.tokenizer.encode(batch)
                if len(ids) > 9:
                    ids = self.tokenizer(batch, padding=True).input_ids[:9]
                return states * weights * torch.tensor(ids, device=device)  # TPF502
        """,
}

OLD_DATA = {
    "what callers keep": """
        def _extract(table, t: Tensor):
            return torch.from_numpy(table).to(t.device)[t]  # TPF502

        class Diffusion(nn.Module):
            def forward(self, x: Tensor, t: Tensor):
                return x * _extract(self.alphas, t)
        """,
    "constants, sizes and what the module keeps": """
        import numpy as np

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = np.arange(9)

            def forward(self, x: Tensor, xs: list[Tensor], n):
                a = torch.tensor([0.1, 0.2], device=x.device)  # TPF502
                b = torch.from_numpy(self.table).to(x.device)  # TPF502
                c = torch.from_numpy(np.ones((x.shape[0], 3))).to(x.device)  # TPF502
                d = torch.tensor([len(y) for y in xs], device=x.device)  # TPF502
                f = torch.tensor(n / 20.0 * np.log(10), device=x.device)  # TPF502
                e = torch.from_numpy(np.random.beta(1.0, 2.0, x.shape[0])).to(x.device)  # TPF502
                return x * a * b * c * d * e * f
        """,
}


@table(NEW_DATA)
def test_data_that_is_new_each_time_has_to_be_copied(code: str) -> None:
    silent_by_default(code)


@table(OLD_DATA)
def test_data_that_could_be_kept_need_not_be(code: str) -> None:
    check(code, HOT)
    check(code, ALL)


ASKED = {
    "a fallback for devices, the names in a list": """
        def spectrum(x: Tensor):
            lacking = x.device.type in ["mps", "xpu"]
            if lacking:
                x = x.cpu()  # TPF102
            return torch.fft.fft(x)
        """,
    "positions in what the host keeps": """
        class Store:
            def look_up(self, ids: Tensor):
                ids = ids.long().cpu()  # TPF102
                assert ids.dim() == 1
                return self.lengths[ids], self.offsets[ids]
        """,
    "an index for each dimension": """
        def put(x: Tensor, where: Tensor):
            x[tuple(where.t())] = 1.0  # TPF201
            return x
        """,
    "text, and what is for numpy by name": """
        import numpy as np

        class Decoder:
            def __call__(self, logits: Tensor) -> list[tuple[str, float]]:
                best = logits.argmax(-1).cpu().numpy()  # TPF102
                return [(self.words[k], 1.0) for k in best]

        def np_quantile(x: Tensor, q: float):
            y = np.quantile(x.detach().cpu().numpy(), q)  # TPF102
            return torch.as_tensor(y, device=x.device)  # TPF502
        """,
    "means to begin with, and what is exported, by their names": """
        def initialize_means(x: Tensor):
            return x[x.sum(1) > 0]  # TPF402

        def _onnx_batch(x: Tensor):
            return x[x.sum(1) > 0]  # TPF402
        """,
}


@table(ASKED)
def test_waits_that_somebody_asks_for(code: str) -> None:
    silent_by_default(code)


NOT_ASKED = {
    "totals of what was read before the loop, and in it": """
        def sizes(x: Tensor):
            return [int(v.item()) for v in x.split(1)]  # TPF101

        def ends(x: Tensor, xs: list[Tensor]):
            end = total = rows = kept = 0
            for n in sizes(x):
                end += n
            counts = x.tolist()
            for i in range(len(counts)):
                end += counts[i]
            for y in xs:
                total += y.sum().item()  # TPF206
                n = int(y.max())  # TPF101
                rows = rows + n
                for k in sizes(y):
                    rows += k
                start = 0
                for k in sizes(y):
                    start += k
                kept = kept + n
                if n > 9:
                    kept = 0
            return end, total, rows
        """,
    "what an assertion that always fails says": """
        def check(x: Tensor):
            if (x < 0).any():  # TPF301
                torch._assert(False, f"negative: {x[x < 0].tolist()}")
            return x.abs()
        """,
    "tables of another library": """
        import pandas as pd

        def forward(x: Tensor, df: pd.DataFrame, other, key: str):
            rows = df[key].isnull()
            df = df[~rows].copy()
            table = pd.DataFrame({"a": [1, 2]})
            table = table[~table["a"].isnull()]
            gone = other[key]
            return df, table, x[~gone]  # TPF402
        """,
    "what only a trace returns": """
        def size(x: Tensor, is_tracing: bool, n: int):
            if is_tracing:
                return torch.ceil(x.sum())
            return n

        def forward(x: Tensor, is_tracing: bool):
            return x.view(size(x, is_tracing, 3), -1)
        """,
    "a name that says where it lies, and what it is combined with": """
        def refined(model: Tensor, x_host: Tensor):
            model = model @ x_host
            return model[torch.isfinite(model)], bool(x_host.any())

        def unrefined(model: Tensor, x: Tensor):
            model = model @ x
            return model[torch.isfinite(model)]  # TPF402
        """,
    "what is counted on the device": """
        import torch.distributed as dist

        def counted(x: Tensor, group):
            local = torch.tensor([0], device=x.device)  # TPF502
            local += (x > 0).sum()
            dist.all_gather_into_tensor(local, local, group=group)
            total = torch.tensor([len(x)], device=x.device)  # TPF502
            dist.all_reduce(total, group=group)
            return local.item(), total.item()  # TPF101, TPF101
        """,
    "numbers that are spread in an index": """
        def forward(x: Tensor, n: int, metrics):
            x = torch.cat([torch.Tensor().to(x.device), x])
            for name, value in metrics.items():
                x = x + torch.tensor(value, device=x.device)  # TPF502
            x = x[(slice(None), *([0] * n), slice(None))]
            return x[[0, 1]]  # TPF406
        """,
    "numbers and text side by side, and rows of text": """
        def described(x: Tensor) -> dict[str, Tensor]:
            return {"half": x * x.mean().item()}  # TPF101

        def decoded(x: Tensor, words) -> list[str]:
            return ["".join(words[k] for k in row.tolist()) for row in x]  # TPF102, TPF201
        """,
    "checks that no option asks for": """
        def loss_func(x: Tensor, args):
            if args.normalise:
                assert not x.isnan()  # TPF303
            return x
        """,
    "a check that an option asks for": """
        def loss_func(x: Tensor, args):
            if args.check_for_nan_in_loss:
                assert not x.isnan()  # TPF303
            return x
        """,
    "a selection that an option asks for": """
        def loss_func(x: Tensor, args):
            if args.validate_structure:
                return x[x > 0]  # TPF402
            return x
        """,
    "what is fitted to data": """
        class Spline:
            def fit(self, x: Tensor, y: Tensor):
                self.parameters = torch.linalg.solve(x, y)  # TPF404
        """,
}


@table(NOT_ASKED)
def test_waits_that_nobody_asks_for(code: str) -> None:
    check(code, HOT)


ONCE = {
    "a loop in what is kept": """
        from functools import cached_property

        class Net(nn.Module):
            @cached_property
            def smallest(self):
                n = 0
                while n < 9:
                    n += int(torch.randn(n, device="cuda").sum())  # TPF101
                return n
        """,
    "the end of an evaluation": """
        class MeanMetric(Metric):
            sums: list[Tensor]

            def compute(self):
                return [float(s) for s in self.sums]  # TPF101
        """,
    "what becomes a dict": """
        class Hypothesis:
            score: Tensor
            scores: dict[str, Tensor]

            def asdict(self):
                return {k: float(v) for k, v in self.scores.items()}  # TPF101
        """,
    "a loop that is written out": """
        def main():
            model = nn.Linear(3, 3).cuda()
            energies = {k: model.weight[k].sum().item() for k in (1, 2, 3)}  # TPF101
            run(model, energies)
        """,
    "a metric's value, which is asked for after all batches": """
        class MeanMetric(Metric):
            def compute(self, sums: list[Tensor]):
                return [float(s) for s in sums]  # TPF101
        """,
}


@table(ONCE)
def test_loops_of_what_runs_once(code: str) -> None:
    silent_by_default(code)


OFTEN = {
    "the loop of a fit": """
        class Mixture:
            def fit(self, x: Tensor, n: int):
                for _ in range(n):
                    x = x[x > 0]  # TPF402
        """,
    "what a cached function makes": """
        from functools import lru_cache

        @lru_cache
        def scaling(n: int):
            def scale(x: Tensor):
                return x / x.max().item()  # TPF101
            return scale
        """,
    "a check that a step calls": """
        class Net(nn.Module):
            def check_rows(self, rows):
                x = torch.randn(3, device="cuda")
                for row in rows:
                    assert torch.allclose(x, row)  # TPF105

            def forward(self, x: Tensor, rows):
                self.check_rows(rows)
                return x
        """,
    "the loop over steps of a program": """
        def main():
            model = nn.Linear(3, 3).cuda()
            for epoch in range(9):
                for x in DATA:
                    print(model.weight.sum().item())  # TPF101
            while True:
                print(model.weight.sum().item())  # TPF101
            for name in ("a", "b"):
                for row in range(9):
                    print(name, float(model.weight[row].sum()))  # TPF101
        """,
    "a loop that calls the module": """
        class Net(nn.Module):
            def check_equivariance(self):
                x = torch.randn(3, device="cuda")
                for group in self.groups:
                    assert torch.allclose(self(x), group(x).abs())  # TPF105
        """,
    "a loop over what is kept": """
        class Hypothesis:
            scores: dict[str, Tensor]

            def forward(self, x: Tensor):
                return [float(v) for v in self.scores.values()]  # TPF101
        """,
    "a loop in what a program calls": """
        def run(model: nn.Linear, energies):
            energies = {k: model.weight[k].sum().item() for k in energies}  # TPF101
            return energies
        """,
}

# Loops over counts, which only the model that they call shows to be steps.
CALLING_A_MODEL = {
    "that the module holds": """
        NET = nn.Linear(3, 3).cuda()

        def answer(ids: Tensor, n):
            for _ in range(n):
                token = NET(ids)[:, -1].argmax(-1)
                if token.item() == 3:  # TPF101
                    break
                ids = torch.cat([ids, token], dim=-1)
        """,
    "that an object holds": """
        class Chat:
            def __init__(self, model: nn.Module):
                self.model = model
                self.by_name = {"first": model}

            def answer(self, ids: Tensor, n):
                for _ in range(n):
                    token = self.by_name["first"](ids)[:, -1].argmax(-1)
                    ids = torch.cat([ids, token], dim=-1)
                    if token.item() == 3:  # TPF101
                        break

        def answer(chat: Chat, ids: Tensor, n):
            for _ in range(n):
                token = chat.model(ids)[:, -1].argmax(-1)
                ids = torch.cat([ids, token], dim=-1)
                if token.item() == 3:  # TPF101
                    break
        """,
}


@table(CALLING_A_MODEL)
def test_loops_that_call_a_model(code: str) -> None:
    check(code, HOT)


@table(OFTEN)
def test_loops_of_what_runs_often(code: str) -> None:
    check(code, HOT)
