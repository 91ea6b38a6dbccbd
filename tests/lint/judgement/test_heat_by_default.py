"""What fresh libraries showed to be wanted or done once: silent by default, reported in scope `all`.

Each program of the first table has its findings in scope `all` alone; its near neighbours in the
second are reported in both.
"""

from __future__ import annotations

from pathlib import Path

from linting import ALL, HOT, check, findings, in_package, program, table

from flake8_torchperf.linter import lint

SILENT = {
    "taking a tensor apart is one unbind": """
        class Attention(nn.Module):
            def forward(self, qkv: Tensor):
                q, k, v = qkv.permute(2, 0, 1)  # TPF201
                return q @ k @ v
        """,
    "taking one apart in each round is one unbind in each": """
        def step(caches: list[Tensor], shape: Tensor):
            kept = []
            for cache in caches:
                keys, values = cache.detach()  # TPF201
                kept.append(keys @ values)
            return kept
        """,
    "what numpy takes is made of what lies on the host": """
        class Table:
            def rows(self, x: Tensor):
                ids, counts = x[:, 0].unique(return_counts=True)  # TPF404
                first = ids.t()
                return frame(first.contiguous().numpy(), counts)  # TPF102
        """,
    "a number of the host and something unknown": """
        class Crop(nn.Module):
            def forward(self, image):
                place = torch.rand(2)
                return int((image.width - 3) * place[1])  # TPF101
        """,
    "rows that are only put away are made by one unbind": """
        def parts(scores: Tensor, names):
            kept, told = [], []
            for row in scores:  # TPF201
                kept.append(row)
            for i, row in enumerate(scores):  # TPF201
                told.append({"name": names[i], "score": row})
            return kept, told, [row for row in scores]  # TPF201
        """,
    "what is prepared of nothing that is given": """
        class Masked(nn.Module):
            def _prepare(self):
                mask = self.mask.softmax(dim=3).round()
                for i in range(self.layers):
                    self.sizes.append(int(mask[0, :, i].sum()))  # TPF101
        """,
    "what is logged only where a caller asks for it, and what is called a test": """
        def loss(x: Tensor, y: Tensor, logging=False):
            error = (x - y).abs()
            if not logging:
                return error.mean()
            return error.mean(), {"worst": error.max().item()}  # TPF101

        def speed_test(x: Tensor):
            for _ in range(9):
                print(x.sum().item())  # TPF101

        class Boxes:
            def equal(self, other: Tensor):
                return set(self.rows.tolist()) == set(other.tolist())  # TPF102
        """,
    "what is kept after the first call": """
        class Table(nn.Module):
            def length(self, x: Tensor):
                if self.kept is not None and self.kept > 0:
                    return self.kept
                self.kept = int(x.max())  # TPF101
                return self.kept

            def width(self, x: Tensor):
                if hasattr(self, "wide"):
                    return self.wide
                self.wide = int(x.max())  # TPF101
                return self.wide

            def count(self, key, x: Tensor):
                found = self.counts.get(key)
                if found is not None:
                    return found
                self.counts[key] = int(x.max())  # TPF101
                return self.counts[key]

            def prepared(self, x: Tensor):
                if self.ready:
                    return
                self.bias.fill_(x.mean().item())  # TPF101
                self.ready.fill_(True)
        """,
    "what leaves its loop": """
        def search(points):
            for start in points:
                best = torch.rand(9, device="cuda")
                if start.good:
                    score = best.max().item()  # TPF101
                    if start.last:
                        score = best.min().item()  # TPF101
                    break
                if start.done:
                    return best.sum().item()  # TPF101
            return score
        """,
    "gradients of an input are no training step": """
        def saliency(model, image):
            model.eval()
            score = model(image).max()
            score.backward()
            return image.grad.abs().cpu()  # TPF102
        """,
    "what is yet to be moved to the device": """
        def encoded(datum: Tensor, table: Tensor, device):
            assert (datum >= 0).all()  # TPF303
            if table.max() > 1:  # TPF301
                table = table / 255
            table = table.to(device)
            return table[datum.flatten().to(device)]
        """,
    "the action that an environment takes": """
        class Agent:
            def select_action(self, state):
                seen = torch.as_tensor((state,), device=self.device)  # TPF502
                return self.policy(seen).argmax().item()  # TPF101
        """,
    "lengths that are packed lie on the host": """
        from torch.nn.utils.rnn import pack_padded_sequence

        def forward(x: Tensor, lengths: Tensor, sizes: Tensor):
            packed = pack_padded_sequence(x, lengths), pack_padded_sequence(x, lengths=sizes)
            return packed, int(lengths.max()), sizes.tolist()  # TPF101, TPF102
        """,
    "a model that is given, run in a loop over steps or batches": """
        def sample(model, x: Tensor, sigmas: Tensor):
            lowest = sigmas[sigmas > 0].min()  # TPF402
            for i in range(len(sigmas) - 1):
                denoised = model(x, sigmas[i])
                x = x + denoised * lowest
            return x

        def accuracy(model: nn.Module, x: Tensor, y: Tensor, batch_size: int):
            right = torch.zeros((), device=x.device)
            for start in range(0, len(x), batch_size):
                right += (model(x[start : start + batch_size]) == y[start]).sum()
            return right.item() / len(x)  # TPF101
        """,
    "what only the end of an evaluation calls": """
        def _area(scores: Tensor, target: Tensor):
            if target.sum() == 0:  # TPF301
                return scores.mean()
            return scores[target > 0].mean()  # TPF402

        class Area(Metric):
            def compute(self):
                return _area(self.scores, self.target)
        """,
    "what is logged, in the last round as well": """
        def train(model, loader, meter):
            for i, x in enumerate(loader):
                loss = model(x).mean()
                loss.backward()
                if i % 50 == 0 or i == len(loader) - 1:
                    meter.update(loss.item())  # TPF101
        """,
    "the first round of a loop": """
        def tuned(x: Tensor, iters: int):
            best = None
            for i in range(iters):
                if best is None:
                    best = x.mean().item()  # TPF101
                x = torch.sin(x)
            return x, best
        """,
    "what is debugged in what a step makes": """
        class Graph(nn.Module):
            def forward(self, x: Tensor):
                return self.build_matrix(x)

            def build_matrix(self, x: Tensor):
                if self.debug:
                    self.show(x.max().item())  # TPF101
                return x
        """,
    "waiting to time the device": """
        def timed(x: Tensor, start, end):
            for _ in range(9):
                start.record()
                y = x * x
                end.record()
                torch.cuda.synchronize()  # TPF106
            return start.elapsed_time(end), y
        """,
}


@table(SILENT)
def test_what_is_wanted_or_done_once(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


REPORTED = {
    "numpy takes a copy, or what something was put into": """
        class Table:
            def rows(self, x: Tensor):
                ids = x.unique()  # TPF404
                table = torch.zeros(9)
                table[0] = ids[0]
                return frame(ids.cpu().numpy(), table.numpy())
        """,
    "the length of a list in each step": """
        class Layer(nn.Module):
            def forward(self, x: Tensor):
                return x.unique().tolist()  # TPF102, TPF404
        """,
    "what a number of the host is added to says where the sum lies": """
        class Noise(nn.Module):
            def forward(self, x: Tensor, image):
                place = torch.rand(2)
                return (x + image.width * place[1]).max().item()  # TPF101
        """,
    "a logarithm is no logging": """
        class Normal:
            def log_prob(self, x: Tensor):
                if (x < 0).any():  # TPF301
                    raise ValueError
                return -x

            def _log_likelihood_term(self, x: Tensor):
                return x[x > 0].sum()  # TPF402
        """,
    "an attribute that nothing here keeps": """
        class Table(nn.Module):
            def length(self, x: Tensor):
                if self.fast:
                    return x
                if hasattr(self, "limit"):
                    return x[: self.limit]
                return x[: int(x.max())]  # TPF101

            def patched(self, model):
                if hasattr(model, "original"):
                    return model

                def forward(x: Tensor):
                    return x[x > 0]  # TPF402

                model.original, model.forward = model.forward, forward
                return model
        """,
    "a loop that goes on": """
        def search(x: Tensor, start):
            for step in range(9):
                best = torch.rand_like(x)
                if best.max() > 1:  # TPF301
                    break
                if start.skipped:
                    print(best.min().item())  # TPF101
                    continue
        """,
    "what is moved to where another tensor lies": """
        def scaled(x: Tensor, y: Tensor, device):
            z = x.max().item()  # TPF101
            y = y.to(device)
            return x.to(y.device) / y.max().item() / z  # TPF101
        """,
    "rows with which something is computed or written": """
        def totals(rows: Tensor, out: Tensor):
            sums = []
            for row in rows:  # TPF201
                sums.append(row.sum())
            for i, row in enumerate(rows):  # TPF201
                out[i] = row
            return sums, [row + 1 for row in rows]  # TPF201
        """,
    "a copy that a step computes with": """
        class Router(nn.Module):
            def forward(self, scores: Tensor):
                counts = self.count(scores)
                return counts.sum() + scores.detach().to("cpu").sum()  # TPF102

            def count(self, scores: Tensor):
                return (scores > 0).sum(0).cpu()  # TPF102
        """,
    "copies in what a loop over steps calls": """
        def send(image: Tensor):
            store(image.cpu())  # TPF102

        def fit(images, optimizer):
            for image in images:
                optimizer.zero_grad()
                send(image)
        """,
    "a list of numbers in what some loop calls": """
        def widths(image: Tensor):
            return image.sum(0).tolist()  # TPF102

        def main(images):
            for image in images:
                widths(image)
        """,
    "a number that a step asks for": """
        def largest(x: Tensor) -> int:
            return int(x.max())  # TPF101

        class Pool(nn.Module):
            def forward(self, batch: Tensor):
                return torch.zeros(largest(batch), device=batch.device)
        """,
    "one number, numbers beside something else, and those in a loop": """
        def mean(x: Tensor) -> float:
            return x.mean().item()  # TPF101

        def lowest(x: Tensor) -> tuple[Tensor, float]:
            return x, x.min().item()  # TPF101

        def each(xs: list[Tensor]) -> list[float]:
            return [x.mean().item() for x in xs]  # TPF101
        """,
    "a function that is given, called once or for each of many things": """
        def applied(f, x: Tensor, parts: list[Tensor]):
            low = x[x > 0]  # TPF402
            for part in parts:
                f(part)
            return f(low)
        """,
    "what is asked for in some rounds and in others, or may be None again": """
        def train(model, loader, meter, best):
            for i, x in enumerate(loader):
                loss = torch.sin(model(x)).mean()
                if i % 50 == 0 or meter.tired:
                    meter.update(loss.item())  # TPF101
                if best is None:
                    best = loss.item()  # TPF101
                last = None
                if last is None:
                    last = loss.item()  # TPF101
        """,
    "an operation under a name, and under one that is registered": """
        def inverse(a: Tensor):
            return torch.linalg.inv(a)  # TPF404

        @solve.register
        def _(a: Tensor, b: Tensor):
            return a @ torch.linalg.inv(b)  # TPF404
        """,
    "a mean over processes": """
        def mean(comm, x: Tensor, n: int):
            total = torch.zeros(1, device=x.device)
            comm.all_reduce(total)
            return x / total.item()  # TPF101
        """,
    "more than one number that is handed on": """
        def gathered(comm, x: Tensor):
            rows = torch.zeros(9, device=x.device)
            comm.broadcast(rows, src=0)
            return rows.max().item()  # TPF101
        """,
    "a helper that computes on a tensor, whatever its name says of set-up in the middle": """
        def _ensure_stft_setup(window: Tensor):
            return window.max().item()  # TPF101
        """,
    "layers made of a given one, and work that is timed in a loop": """
        def narrowed(layer: nn.Module, mask: Tensor):
            rows = mask.nonzero()  # TPF401
            made = nn.Linear(layer.in_features, len(rows))
            made.weight.data = layer.weight[mask]  # TPF402
            return made

        def timed(x: Tensor, start, end):
            for _ in range(9):
                start.record()
                y = x[x > 0]  # TPF402
                end.record()
            torch.cuda.synchronize()
            return start.elapsed_time(end), y
        """,
    "a loop over elements, where it is dumped or drawn": """
        import matplotlib.pyplot as plt

        class Engine:
            def dump_gradients(self, x: Tensor):
                for row in x:  # TPF201
                    print(row.sum().item())  # TPF101

        def curve(losses: Tensor):
            for loss in losses:  # TPF201
                plt.plot(loss.item())  # TPF101

        def ranked(ranks: Tensor, plots):
            table = [[int(r) for r in row] for row in ranks]  # TPF101, TPF201, TPF201
            plots.plot_ranks(table)
        """,
    "copies of the outputs in what a loop over batches calls": """
        class Model:
            def predict(self, loader):
                return [self._predict_batch(x) for x in loader]

            def _predict_batch(self, x: Tensor):
                return [y.cpu().numpy() for y in self.network(torch.sin(x)).split(3)]  # TPF102
        """,
    "checks that an argument asks for, which its default switches on": """
        def exchanged(x: Tensor, verify_shapes=True):
            if verify_shapes:
                assert x.sum() > 0  # TPF303
            return x
        """,
    "an iteration over clusters": """
        def kmeans(samples: Tensor, clusters: int, rounds: int = 10):
            means = samples[:clusters]
            for _ in range(rounds):
                nearest = (samples @ means.T).max(dim=-1).indices
                means = means / torch.bincount(nearest, minlength=clusters)[:, None]  # TPF404
            return means
        """,
    "class weights and schedules that are made of tensors": """
        def compute_class_weights(counts: Tensor):
            return x if (counts < 0).any() else counts  # TPF301

        def get_beta_schedule(times: Tensor):
            return times[times > 0]  # TPF402
        """,
    "an object that is called with a tensor": """
        class XavierInit:
            def __call__(self, x: Tensor):
                return x[x > 0]  # TPF402
        """,
    "a step, whatever decorates it": """
        class Model(nn.Module):
            def largest(self, length):
                @find_executable_batch_size(starting_batch_size=512)
                def forward_batch(size):
                    logits = self.net(torch.ones((size, length), device="cuda"))
                    return logits.softmax(-1).sum().item()  # TPF101

                return forward_batch()
        """,
}


@table(REPORTED)
def test_what_is_reported_all_the_same(code: str) -> None:
    check(code, HOT)


NO_SITE = {
    "rows that are asked for by a key": """
        def shaped(scattered, shape):
            width = scattered[0]["coef"].shape[-2:]
            if scattered.shape[-1] > 3:
                return scattered
            for x in scattered:
                x["coef"] = x["coef"].reshape(shape + width)
            return scattered
        """,
    "what another library reads": """
        import rasterio

        def bands(path):
            with rasterio.open(path) as source:
                band = source.read(1, masked=True)
                return float(band.mean()), float(band.std())
        """,
    "a module prepared where it is made": """
        def zero_module(module):
            for p in module.parameters():
                p.detach().zero_()
            return module

        def scaled(module: nn.Module, scale):
            for _, p in module.named_parameters():
                p.data.mul_(scale)
            return module
        """,
    "what is indexed by a mask on the host": """
        def step(tokens, mask: Tensor):
            kept = mask.bool().cpu()  # TPF102
            return [t[m].tolist() for t, m in zip(tokens, kept)]
        """,
    "which of several ways to call it, starred arguments leave open": """
        def narrowed(x: Tensor, part, sizes):
            return x.narrow(0, *part), x.narrow(0, part, math.prod(sizes))
        """,
    "what takes several indices, or a mask, is no list": """
        def scaled(x: Tensor, text: str, rows: list[Tensor]):
            scale = text[:, None]
            return scale * torch.ones(3, device="cuda", dtype=torch.long), rows[x > 0]  # TPF402
        """,
    "a mesh of devices lies on the host": """
        from torch.distributed.device_mesh import DeviceMesh

        def ranks(mesh: DeviceMesh):
            return mesh.mesh.flatten().tolist()
        """,
    "parameters of a module, in a function of which nothing is known": """
        def decay(module: nn.Module, rate):
            for p in module.parameters():
                p.data.mul_(rate)
            return rate
        """,
}


@table(NO_SITE)
def test_what_is_no_site(code: str) -> None:
    check(code, ALL)


QUANTISER = """
import torch
from torch import Tensor, nn

def packed(weight: Tensor):
    return weight[weight > 0]

def clipped(x: Tensor):
    return x[x > 0]

class FakeQuantizer(nn.Module):
    def forward(self, x: Tensor):
        return clipped(x)
"""


def test_a_model_is_quantised_once_but_by_what_a_step_calls(tmp_path: Path) -> None:
    file = in_package(tmp_path, "quantization/packing.py", QUANTISER)
    assert [f.line for f in lint(QUANTISER, file, HOT)] == [9]
    assert [f.line for f in lint(QUANTISER, file, ALL)] == [6, 9]
