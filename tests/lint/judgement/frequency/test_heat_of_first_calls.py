"""What runs on the first call alone, is parked, or is asked for: silent by default.

Each program of the first table has its findings in scope `all` alone; its near neighbours in the
second are reported in both. Those of the third are reported in neither.
"""

from __future__ import annotations

from pathlib import Path

from linting import ALL, HOT, check, findings, in_package, program, table

SILENT = {
    "what a method makes on the first call": """
        class Scheduler:
            def index_for(self, t: Tensor, times: Tensor):
                return (times == t).nonzero()[0].item()  # TPF401, TPF101

            def find_index(self, t: Tensor):
                self._index = self.index_for(t, self.times)

            def step(self, x: Tensor, t: Tensor):
                if self.index is None:
                    self.find_index(t)
                self._index += 1
                return x * self.sigmas[self.index]
        """,
    "a list of rows": """
        def masks(x: Tensor):
            return list(x.unsqueeze(1))  # TPF201
        """,
    "what a metric computes at the end, a base further": """
        class Curve(Metric):
            def compute(self):
                return _largest(self.found, self.limit)

        class Best(Curve):
            def compute(self):
                return _largest(self.found, 0.5)

        def _largest(found: Tensor, limit: float):
            return 0.0 if found.max() < limit else found.max().item()  # TPF301, TPF101
        """,
    "an argument that every call gives": """
        class Decoder(nn.Module):
            def forward(self, x: Tensor, largest: int | None = None):
                if largest is None:
                    largest = int(x.max())  # TPF101
                return F.one_hot(x, largest + 1)

        class Net(nn.Module):
            def __init__(self):
                self.decoder = Decoder()

            def predict_step(self, x: Tensor):
                return self.decoder(x, largest=self.count(x))

            def count(self, x: Tensor) -> int:
                return len(x) if x.requires_grad else x.shape[0]
        """,
    "what is looked up before it is made": """
        table = {}

        class Gate(nn.Module):
            def forward(self, x: Tensor):
                noise = table.get(x.device)
                if noise is None:
                    noise = sampler(torch.ones(1, device=x.device).item())  # TPF101
                    table[x.device] = noise
                return noise(x)
        """,
    "what fills a table of the module": """
        windows = {}

        class Spectrum(nn.Module):
            def forward(self, x: Tensor):
                global windows
                key = str(x.device)
                if key not in windows:
                    windows[key] = torch.hann_window(9) * x.max().item()  # TPF101
                return x * windows[key]
        """,
    "what fills a table that an attribute holds": """
        class Spectrum(nn.Module):
            def forward(self, x: Tensor):
                windows = self.tables[0]
                key = str(x.device)
                if key not in windows:
                    windows[key] = torch.hann_window(9) * x.max().item()  # TPF101
                return x * windows[key]
        """,
    "what runs at some steps": """
        class Scaled(nn.Module):
            def forward(self, x: Tensor):
                if self.global_step in self.milestones:
                    self.scale = x.max().item()  # TPF101
                return x * self.scale
        """,
    "what has nothing to compute with, by a name": """
        class Match(nn.Module):
            def forward(self, boxes: Tensor, x: Tensor):
                count = boxes.shape[0]
                if not count:
                    boxes = boxes + x.max().item()  # TPF101
                    count = 1
                number = len(boxes)
                if number == 0:
                    return x.min().item()  # TPF101
                return boxes * count
        """,
    "what is made anew if it does not fit": """
        class Warp(nn.Module):
            def forward(self, x: Tensor):
                if not hasattr(self, "grid") or self.grid.size() != x.size():
                    self.grid = torch.full(x.shape, x.max().item(), device=x.device)  # TPF101
                return x + self.grid
        """,
    "what only a hunt for anomalies asks": """
        class Render(nn.Module):
            def forward(self, x: Tensor):
                if torch.is_anomaly_enabled():
                    assert x.isfinite().all()  # TPF303
                return x * 2
        """,
    "where there is no device": """
        class Search(nn.Module):
            def forward(self, x: Tensor):
                if x.device.type in ["cuda", "npu"]:
                    return x.topk(3)
                else:
                    return x if x.max() > 0 else -x  # TPF301
        """,
    "where there is nothing to compute with": """
        class Loss(nn.Module):
            def forward(self, x: Tensor, boxes: Tensor):
                if boxes.numel() == 0:
                    return x.sum().item()  # TPF101
                return x
        """,
    "rows that are put away in pairs": """
        def cached(keys: Tensor, values: Tensor):
            return tuple(zip(keys, values))  # TPF201
        """,
    "a debugging helper": """
        class Net(nn.Module):
            def _debug_dump(self, x: Tensor):
                return x.max().item()  # TPF101
        """,
    "a flag that the function turns on": """
        class Optimizer:
            def masks(self, x: Tensor):
                return x[x > 0]  # TPF402

            def step(self, x: Tensor):
                if not self.started:
                    self.mask = self.masks(x)
                    self.limit = x.max().item()  # TPF101
                self.started = True
                return x * self.limit
        """,
    "text of a check that has failed": """
        class Blur(nn.Module):
            def forward(self, x: Tensor, sigma: float):
                if sigma < 0:
                    LIB_CHECK(False, f"sigma must be positive for {x}")  # TPF104
                return x * sigma
        """,
}


@table(SILENT)
def test_silent_by_default(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


REPORTED = {
    "what fills a table that each call makes": """
        class Spectrum(nn.Module):
            def forward(self, x: Tensor, keys: list[str]):
                windows = {}
                for key in keys:
                    if key not in windows:
                        windows[key] = x.max().item()  # TPF101
                return windows
        """,
    "what is made anew for another reason, too": """
        class Warp(nn.Module):
            def forward(self, x: Tensor, always: bool):
                if self.grid is None or always:
                    self.grid = torch.full(x.shape, x.max().item(), device=x.device)  # TPF101
                return x + self.grid
        """,
    "what a step calls as well": """
        class Scheduler:
            def index_for(self, t: Tensor, times: Tensor):
                return (times == t).nonzero()[0].item()  # TPF401, TPF101

            def find_index(self, t: Tensor):
                self._index = self.index_for(t, self.times)

            def step(self, x: Tensor, t: Tensor):
                if self.index is None:
                    self.find_index(t)
                return x

            def add_noise(self, x: Tensor, times: Tensor):
                return [self.index_for(t, self.times) for t in times]
        """,
    "what a method makes of something else": """
        class Scheduler:
            def warm_up(self, t: Tensor):
                self.other = t.max().item()  # TPF101

            def step(self, x: Tensor, t: Tensor):
                if self.index is None:
                    self.warm_up(t)
                return x
        """,
    "data that a test chooses": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if x.any():  # TPF301
                    return x * torch.tensor(self.factors, device=x.device)  # TPF502
                return x
        """,
    "an argument that a call leaves out": """
        class Decoder(nn.Module):
            def forward(self, x: Tensor, largest: int | None = None):
                if largest is None:
                    largest = int(x.max())  # TPF101
                return F.one_hot(x, largest + 1)

        class Net(nn.Module):
            def __init__(self):
                self.decoder = Decoder()

            def predict_step(self, x: Tensor, n: int):
                y = self.decoder(x, largest=n).sum().item()  # TPF101
                return y, self.decoder(x)
        """,
    "how far a loop has come, where it is read": """
        class Net(nn.Module):
            def forward(self, x: Tensor, parts: list[Tensor]):
                at = 0
                for part in parts:
                    n = int(part.sum())  # TPF101
                    x[at : at + n] = part.mean()
                    at += n
                return x
        """,
    "a total that places nothing": """
        def counted(parts: list[Tensor]):
            total = 0
            for part in parts:
                total += int(part.sum())  # TPF206
            return total
        """,
    "numbers one by one": """
        def numbers(x: Tensor):
            return list(x.flatten())  # TPF201
        """,
    "text that is kept": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                return {"name": f"rate_{x.argmin()}"}  # TPF104
        """,
    "whether it is wrong": """
        class Net(nn.Module):
            def forward(self, x: Tensor, wrong: Tensor | None):
                if wrong is not None and wrong.any():  # TPF301
                    raise ValueError("wrong")
                return x
        """,
    "what a hook calls, whatever its class is called": """
        class Norm:
            def _solve(self, w: Tensor):
                return torch.linalg.pinv(w)  # TPF404

        class LoadStateDictHook:
            def __call__(self, state):
                self.norm._solve(state)
        """,
    "a public helper of what is called once an epoch": """
        class AveragingCallback:
            def on_train_epoch_start(self, model: nn.Module, n: Tensor):
                self.update(model, n)

            def update(self, model: nn.Module, n: Tensor):
                return 0 if n == 0 else 1  # TPF301
        """,
    "numbers of parameters that are put by": """
        class Average:
            def store(self, parameters: list[Tensor]):
                for p in parameters:
                    self.kept.append(p.max().item())  # TPF101

            def restore(self, parameters):
                return self.kept
        """,
    "a loop before the loop over steps": """
        class ImagePipeline:
            def __call__(self, images, height, steps: int):
                for image in images:
                    image = self.prepare(image, height)
                    height = image.shape[-1]
                    scale = torch.ones(3, device="cuda").max().item()  # TPF101
                for step in range(steps):
                    height = self.model(height, step)
                return height
        """,
    "the forward of a class whose base is not known": """
        class VirtualNode(BaseTransform):
            def forward(self, data: Tensor):
                return int(data.max())  # TPF101
        """,
    "where a flag that nothing sets is asked": """
        class Observer:
            def prepare_once(self, x: Tensor):
                self.scale = x.min().item()  # TPF101

            def forward(self, x: Tensor):
                if not self.initialized:
                    self.prepare_once(x)
                    self.low = x.mean().item()  # TPF101
                return x * self.scale
        """,
    "a search that ends with a return": """
        class Observer:
            def _search(self, counts: Tensor, steps: int):
                for step in range(steps):
                    if counts[step] > counts.mean():  # TPF301
                        return step

            def calculate_qparams(self):
                return self._search(self.counts, 9)
        """,
    "text that is a key": """
        def rates(x: Tensor):
            low = x.argmin()
            return {f"rate_{low}": x.sum()}  # TPF104
        """,
    "the truth of what may be None": """
        def gather(rank: int, out: Tensor | None):
            if rank == 0:
                return out
            elif out:  # TPF301
                raise ValueError("only rank 0 has one")
        """,
    "comparisons of parameters with a given tensor": """
        class Finetuning:
            def unfreeze(self, parameters: list[Tensor], given: Tensor):
                for p in parameters:
                    if torch.equal(p, given):  # TPF105
                        self.freed.append(p)
        """,
    "lists of flags in a module's step": """
        class Checker(nn.Module):
            def forward(self, images, x: Tensor):
                flagged = (self.head(x).sigmoid() > 0.5).tolist()  # TPF102
                return images, flagged
        """,
}


@table(REPORTED)
def test_reported_by_default(code: str) -> None:
    check(code, HOT)


@table({
    "a tensor of an empty list": """
        class Net(nn.Module):
            def forward(self, xs: list[Tensor], order: int):
                parts = []
                for i in range(order):
                    parts.append(xs[i].sum())
                device = xs[0].device
                return torch.stack(parts) if len(parts) > 0 else torch.tensor(parts, device=device)
        """,
    "a number for a tensor": """
        class Net(nn.Module):
            def forward(self, x: Tensor, t):
                if not torch.is_tensor(t):
                    t = torch.tensor([t], device=x.device)  # TPF502
                return x + t
        """,
    "items moved one by one": """
        def f(parts: Tensor, device):
            return [part.to(device) for part in parts], tuple(part.cuda() for part in parts)
        """,
    "numbers in every call": """
        class Rope(nn.Module):
            def forward(self, length: int | Tensor | None):
                return self.table[: int(length)]

        class Net(nn.Module):
            def __init__(self):
                self.rope = Rope()

            def forward(self, x: Tensor):
                return self.rope(x.shape[1]) + x.sum().item()  # TPF101
        """,
    "a shape in every call": """
        def unpacked(x: Tensor, shape: Tensor):
            if isinstance(shape, tuple):
                return x.reshape(shape[-2:])
            return x.reshape(int(shape[0]), int(shape[1]))

        def decoded(x: Tensor, y: Tensor):
            return unpacked(x, y.shape), x.sum().item()  # TPF101
        """,
    "copies that are due": """
        class Net(nn.Module):
            def forward(self, frames: Tensor):
                rows = []
                for frame in frames.unbind():
                    resized = resize(frame.cpu().numpy())  # TPF102
                    rows.append(torch.from_numpy(resized).permute(2, 0, 1))
                return torch.stack(rows).to(frames.device)  # TPF502
        """,
    "moved where its index lies": """
        class Schedule:
            def __init__(self):
                self.table = torch.linspace(0, 1, 9)

            def step(self, t: Tensor):
                return self.table[t - 1].to(t.device)
        """,
    "a number for one outcome of a test": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if x.any():  # TPF301
                    shift = x.mean()
                else:
                    shift = torch.tensor([0.0]).to(x.device)  # TPF502
                return x + shift
        """,
    "a total of what a function has read": """
        def mean_of(x: Tensor):
            return x.mean().item()  # TPF101

        def total(xs: list[Tensor]):
            found = 0.0
            for x in xs:
                found += mean_of(x)
            return found
        """,
    "one of the host's tables": """
        class Augment(nn.Module):
            def table(self) -> dict[str, tuple[Tensor, bool]]:
                return {"shear": (torch.linspace(0, 1, 9), True), "turn": (torch.arange(9), False)}

            def forward(self, x: Tensor, name: str):
                strengths, signed = self.table()[name]
                return x * float(strengths[3].item())
        """,
    "a record is not repeated": """
        from typing import NamedTuple

        class Learnt(NamedTuple):
            start: Tensor | None = None
            positive: bool = True

        class Kernel(nn.Module):
            def __init__(self, variance=None):
                variance = torch.tensor(1.0) if variance is None else variance
                self.variance = Learnt(variance, True)

            def forward(self, x):
                return self.variance * x.abs().squeeze(1)
        """,
    "pairs of sizes in every call": """
        def attended(x: Tensor, shapes: Tensor):
            return [x[: h * w] for h, w in shapes]

        def decoded(x: Tensor, maps: list[Tensor]):
            shapes = []
            for one in maps:
                h, w = one.shape[-2:]
                shapes.append((h, w))
            return attended(x, shapes), x.sum().item()  # TPF101
        """,
    "data of a tensor": """
        def f(x: Tensor, scale: Tensor):
            shift = x * torch.tensor(scale, device=x.device)
            return shift if scale[0] == 0 else x
        """,
    "a table for an index that was copied": """
        def f(table, t: Tensor):
            found = torch.cumsum(table, 0)[t.cpu()]  # TPF102
            return found.tolist()
        """,
    "scores of text": """
        def best(score: Callable[[str, str], Tensor], text: str, truths: list[str]):
            return max(score(text, truth) for truth in truths)
        """,
})  # fmt: skip
def test_no_reads(code: str) -> None:
    check(code, ALL)


HELPERS = program("""
    def spread(x: Tensor):
        return x[x > 0].std()

    def _spread(x: Tensor):
        return x[x > 0].mean()

    def middle(x: Tensor):
        return x[x > 0].median()

    class Net(nn.Module):
        def forward(self, x: Tensor):
            return middle(x)
    """)


def test_a_module_belongs_to_all_packages_above_it(tmp_path: Path) -> None:
    """So in `data` only what a step calls is hot; a folder that is no package says nothing."""
    file = in_package(tmp_path, "lib/data/parse/shapes/match.py", HELPERS)
    assert [int(one.partition(":")[0]) for one in findings(HELPERS, HOT, file)] == [14]
    (tmp_path / "lib/data/parse/shapes/__init__.py").unlink()
    assert len(findings(HELPERS, HOT, file)) == 3
    assert len(findings(HELPERS, ALL, file)) == 3
