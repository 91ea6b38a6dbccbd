"""Loops: what is repeated for each file, layer or epoch, and what is repeated in each step.

Each program of the first table has its findings in scope `all` alone; its near neighbours in the
second are reported in both.
"""

from __future__ import annotations

from pathlib import Path

from linting import ALL, HOT, check, findings, in_package, program, table

from flake8_torchperf.linter import lint

SILENT = {
    "a loop of unknown rounds whose calls don't depend on each other": """
        def show(model, memory, last, device):
            y = torch.ones(1, 1, dtype=torch.long, device=device)
            for i in range(last):
                following = torch.argmax(model.decode(memory, y)[:, -1], dim=1).item()  # TPF101
                print(following)
        """,
    "once an epoch, beside the steps of it": """
        def train(model: nn.Module, loader, epochs):
            for epoch in range(epochs):
                total = torch.zeros((), device="cuda")
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    total += loss.detach()
                show(epoch, total.item())  # TPF101
        """,
    "once an epoch, whose steps another function of the module takes": """
        def train(model: nn.Module, loader, last, optimizer):
            epoch, total = 0, torch.zeros((), device="cuda")
            while epoch < last:
                train_one_epoch(model, loader, optimizer, total)
                torch.distributed.barrier()  # TPF106
                show(epoch, total.item())  # TPF101
                epoch += 1

        def train_one_epoch(model, loader, optimizer, total):
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                total += loss.detach()
        """,
    "once an epoch, in a method beside the one that takes the steps": """
        class Trainer:
            def run_training(self):
                for epoch in range(self.last):
                    self.train_epoch()
                    self.val_epoch()

            def train_epoch(self):
                for x in self.loader:
                    self.model(x).sum().backward()
                    self.optimizer.step()

            def val_epoch(self):
                accumulated: dict[str, Tensor] = {}
                for batch in self.val_loader:
                    for k, v in self.model(batch).items():
                        acc = accumulated.get(k)
                        accumulated[k] = v.float() if acc is None else acc + v.float()
                return torch.stack(list(accumulated.values())).tolist()  # TPF102
        """,
    "one round for each layer": """
        class Model:
            def shift(self):
                weight = torch.rand(9, 9, device="cuda")
                for i in range(self.channels):
                    if torch.unique(weight[i]).numel() == 1:  # TPF404
                        self.constant.append(i)
        """,
    "a loop of which the steps are taken elsewhere": """
        def train(model: nn.Module, loader, last):
            epoch, total = 0, torch.zeros((), device="cuda")
            while epoch < last:
                train_one_epoch(model, loader, total)
                torch.distributed.barrier()  # TPF106
                show(epoch, total.item())  # TPF101
                epoch += 1
        """,
    "one round for each number, row, file or key": """
        def rounds(n):
            x = torch.ones(3, device="cuda")
            for i in range(n):
                if x.sum() > i:  # TPF301
                    x = x - 1

        def rows(names):
            table = torch.rand(9, 3, device="cuda")
            for i, name in enumerate(names):
                show(name, table[i].sum().item())  # TPF101

        def marked(paths):
            for path in paths:
                show(path, torch.unique(torch.load(path, map_location="cuda")))  # TPF404

        def largest(names):
            return {name: torch.ones(3, device="cuda").max().item() for name in names}  # TPF101
        """,
}


@table(SILENT)
def test_what_no_step_is_seen_to_repeat(code: str) -> None:
    check(code, ALL)
    assert findings(program(code), HOT) == []


REPORTED = {
    "rounds that are all alike": """
        def main(model: nn.Module, x: Tensor):
            for _ in range(100):
                print(model(x).sum().item())  # TPF101

        def rounds(x: Tensor, n):
            for i in range(n):
                if x.sum() > i:  # TPF301
                    x = x - 1
        """,
    "element by element": """
        def rows():
            table = torch.rand(9, 3, device="cuda")
            for x in table[:, 0]:
                show(x.item())  # TPF101
        """,
    "the parameters of a model, and what is finite of what a step left": """
        def norms(model: nn.Module):
            return [p.grad.max().item() for p in model.parameters()]  # TPF101

        def overflows(tensors):
            return any(torch.isinf(t).any().item() for t in tensors)  # TPF203
        """,
    "a function that is given tensors, called for each of many things": """
        def areas(x: Tensor, names):
            for name in names:
                if x.sum() > 0:  # TPF301
                    show(name)

        def main(xs, names):
            for x in xs:
                areas(x, names)
        """,
    "an epoch that is one step": """
        def train(model: nn.Module, x: Tensor, epochs):
            for epoch in range(epochs):
                loss = model(x).mean()
                loss.backward()
                show(epoch, loss.item())  # TPF101
        """,
    "one batch is fitted in each step": """
        class Model:
            def fit_one_batch(self, x: Tensor, y: Tensor):
                return x[y > 0].mean(0)  # TPF402
        """,
    "an answer that a step is for, or that decides something": """
        class Changed(nn.Module):
            def forward(self, x: Tensor):
                return torch.equal(x, self.last)  # TPF105

        def merged(a: Tensor, b: Tensor):
            if torch.equal(a, b.round()):  # TPF105
                return a
            return a + b
        """,
    "what was computed, or is only close, is compared on the device": """
        class Attention(nn.Module):
            def forward(self, query: Tensor, key: Tensor):
                key = key.round()
                if torch.equal(query, key):  # TPF105
                    return query
                return query if torch.allclose(query, self.last) else key  # TPF105

            def attend(self, query: Tensor, key: Tensor):
                if torch.equal(query, self.index):  # TPF105
                    return key
                self.index = key
                return key
        """,
    "what is called in place of its layers": """
        class Processor:
            def __call__(self, x: Tensor, lengths: Tensor):
                for layer in self.layers:
                    x = x[:, : lengths.max()]  # TPF107
                return x
        """,
    "a function under a name of somebody's own registry": """
        @register_advantage("mean")
        def mean(rewards: Tensor):
            return rewards[rewards > 0].mean()  # TPF402
        """,
    "one round for each file of a program": """
        def main(paths):
            for path in paths:
                periodic = torch.load(path, map_location="cuda") > 0
                if periodic.any():  # TPF301
                    show(path, torch.unique(periodic))  # TPF404
        """,
    "a check, whatever its function is called": """
        def warn_normalization(x: Tensor):
            if x.min() < -1:  # TPF301
                raise Warning("not normalised")
        """,
    "a method that is given tensors": """
        class Analysis:
            def fit_base(self, x: Tensor, y: Tensor):
                self.mean = x[y > 0].mean(0)  # TPF402
        """,
    "comparisons in a step, though both are mostly one tensor": """
        class Attention(nn.Module):
            def forward(self, query: Tensor, key: Tensor):
                if torch.equal(query, key):  # TPF105
                    return self.packed(query)
                return self.packed(torch.cat([query, key]))

            def transposed(self, index: Tensor):
                if torch.equal(self.index, index):  # TPF105
                    return self.made
                self.made = index.mT
                self.index = index
                return self.made
        """,
    "a loop that asks a model of unknown class for more of its own result": """
        def greedy(model, memory, last, end, device):
            y = torch.ones(1, 1, dtype=torch.long, device=device)
            for i in range(last):
                following = torch.argmax(model.decode(memory, y)[:, -1], dim=1).item()  # TPF101
                y = torch.cat([y, torch.full((1, 1), following, device=device)], dim=1)
                if following == end:
                    break
            return y
        """,
    "a loop that asks what its object holds for more of its result": """
        class Solver:
            def solve(self, x, last):
                for i in range(last):
                    residual = self.problem.apply(x)
                    if torch.linalg.vector_norm(residual) < 1e-6:  # TPF301
                        break
                    x = x - residual
                return x
        """,
}


@table(REPORTED)
def test_what_is_reported_all_the_same(code: str) -> None:
    check(code, HOT)


NEW_EACH_TIME = {
    "what a loop over batches takes from each": """
        class Trainer:
            def train(self, loader):
                for x, scores in loader:
                    loss = self.loss(x, torch.tensor(scores).to("cuda"))  # TPF502
                    loss.backward()
        """,
    "a list that is filled with what is given": """
        class Molecules(nn.Module):
            def forward(self, batch, device):
                atoms = []
                for molecule in batch:
                    for atom in molecule:
                        atoms.append(torch.tensor(features(atom)))
                return torch.stack(atoms).to(device)  # TPF502
        """,
    "numbers in compiled code": """
        @torch.compile
        def scaled(x: Tensor):
            return x * torch.tensor(1.5, device=x.device)  # TPF502
        """,
}


@table(NEW_EACH_TIME)
def test_data_that_is_new_each_time_and_numbers_of_a_kernel(code: str) -> None:
    check(code, ALL)


WINDOW = """
import torch
from torch import Tensor

def overlapping(x: Tensor):
    return x[x > 0]
"""


def test_windows_that_a_person_looks_at_hold_up_no_step(tmp_path: Path) -> None:
    file = in_package(tmp_path, "gui/window.py", WINDOW)
    assert lint(WINDOW, file, HOT) == []
    assert [f.line for f in lint(WINDOW, file, ALL)] == [6]
