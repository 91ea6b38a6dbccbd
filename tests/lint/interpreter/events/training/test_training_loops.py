"""What feeds a training loop and steps in it: TPF505 to TPF507."""

from __future__ import annotations

from pathlib import Path

from linting import LOOP, check, findings, program, table

LOADERS = {
    "no worker, no pinning": """
        from torch.utils.data import DataLoader, Dataset

        DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

        def main(dataset: Dataset):
            a = DataLoader(dataset, batch_size=32, shuffle=True)  # TPF505
            b = DataLoader(dataset, num_workers=0, pin_memory=True)  # TPF505
            c = DataLoader(dataset, num_workers=4)  # TPF505
            d = torch.utils.data.DataLoader(dataset, num_workers=4, pin_memory=False)  # TPF505
            return a, b, c, d
        """,
    "at module level": """
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            pass

        model = nn.Linear(2, 2).cuda()
        loader = DataLoader(Images(), batch_size=32)  # TPF505
        """,
    "fed well": """
        from torch.utils.data import DataLoader, Dataset

        def main(dataset: Dataset):
            DataLoader(dataset, num_workers=4, pin_memory=True)
            return nn.Linear(2, 2).to("cuda")
        """,
    "arguments that are not literal": """
        from torch.utils.data import DataLoader, Dataset

        def main(dataset: Dataset, workers, pin, options):
            DataLoader(dataset, num_workers=workers, pin_memory=pin)
            DataLoader(dataset, **options)
            DataLoader(dataset, num_workers=workers)  # TPF505
            DataLoader(dataset, num_workers=4, pin_memory=torch.cuda.is_available())
            return nn.Linear(2, 2).to("cuda")
        """,
    "no accelerator in sight": """
        from torch.utils.data import DataLoader, Dataset

        def main(dataset: Dataset):
            return DataLoader(dataset, batch_size=32)
        """,
    "data that lies in memory": """
        from torch.utils.data import DataLoader, Dataset, TensorDataset

        def main(x: Tensor, y: Tensor):
            DataLoader(TensorDataset(x, y), batch_size=32)
            DataLoader([x, y], batch_size=32)
            DataLoader(x, batch_size=32)
            return x.to("cuda")
        """,
    "data of which nothing is known": """
        from torch.utils.data import DataLoader

        def main(dataset, graph):
            DataLoader(dataset, batch_size=32)
            DataLoader(graph.train_mask.nonzero(), batch_size=32)
            return nn.Linear(2, 2).to("cuda")
        """,
    "a data set of torchvision": """
        from torch.utils.data import DataLoader, random_split
        from torchvision import datasets

        def main(root):
            images = datasets.ImageFolder(root)
            DataLoader(images, batch_size=32)  # TPF505
            DataLoader(datasets.MNIST(root), batch_size=32)  # TPF505
            return nn.Linear(2, 2).to("cuda")
        """,
    "workers started in every epoch": """
        from torch.utils.data import DataLoader, Dataset

        def main(dataset, other):
            model = nn.Linear(2, 2).to("cuda")
            loader = DataLoader(dataset, num_workers=4, pin_memory=True)
            kept = DataLoader(dataset, num_workers=4, pin_memory=True, persistent_workers=True)
            for epoch in range(10):
                for batch in loader:  # TPF505
                    model(batch)
                for batch in kept:
                    model(batch)
                for i, batch in enumerate(loader):  # TPF505
                    model(batch)
            for batch in loader:
                model(batch)
        """,
}


@table(LOADERS)
def test_loaders_that_starve_a_device(code: str) -> None:
    check(code, only=frozenset({"TPF505"}))


def test_the_advice_names_what_is_missing() -> None:
    code = """
        from torch.utils.data import DataLoader, Dataset

        def main(dataset: Dataset):
            DataLoader(dataset)
            DataLoader(dataset, pin_memory=True)
            loader = DataLoader(dataset, num_workers=2)
            for epoch in range(3):
                for batch in loader:
                    batch.cuda()
        """
    both, workers, pin, new, *_ = (f for f in findings(program(code)) if "TPF505" in f)
    assert "num_workers= and pin_memory=True" in both
    assert "num_workers= to prepare" in workers
    assert "pin_memory" not in workers.partition(";")[2]
    assert "pin_memory=True, and" in pin
    assert "persistent_workers=True" in new


def test_test_code_may_do_with_less(tmp_path: Path) -> None:
    code = """
        from torch.utils.data import DataLoader, Dataset

        def run(dataset: Dataset, model):
            for batch in DataLoader(dataset):
                batch.to("cuda")
            return torch.optim.Adam(model.parameters(), foreach=False)
        """
    path = tmp_path / "test_loader.py"
    path.write_text(program(code))
    assert findings(program(code), filename=str(path)) == []
    assert len(findings(program(code), filename=str(tmp_path / "loader.py"))) == 2


OPTIMIZERS = {
    "zeros in place of none": """
        def train_step(optimizer: torch.optim.Optimizer, model: nn.Module, unknown):
            optimizer.zero_grad(set_to_none=False)  # TPF506
            model.zero_grad(set_to_none=False)  # TPF506
            unknown.zero_grad(set_to_none=False)  # TPF506
            optimizer.zero_grad(False)  # TPF506
            optimizer.zero_grad()
            optimizer.zero_grad(set_to_none=True)
            unknown.zero_grad(False)
        """,
    "a slow form chosen": """
        def make(model: nn.Module, fast: bool):
            a = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)  # TPF506
            b = torch.optim.SGD(model.parameters(), lr=1e-3, fused=False)  # TPF506
            c = torch.optim.Adam(model.parameters(), foreach=fast)
            d = torch.optim.Adam(model.parameters(), foreach=False, fused=True)
            e = torch.optim.Adam(model.parameters(), foreach=True, fused=False)
            f = torch.optim.Adam(model.parameters(), foreach=None)
            return a, b, c, d, e, f
        """,
    "one for each parameter": """
        def make(model: nn.Module):
            a = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]  # TPF506
            b = []
            for name, p in model.named_parameters():
                b.append(torch.optim.Adam([p], lr=0.1))  # TPF506
            c = [torch.optim.SGD(m.parameters(), lr=0.1) for m in model.children()]
            for i in range(3):  # one problem after the other
                v = nn.Parameter(torch.randn(3))
                c.append(torch.optim.LBFGS([v], lr=1))
            return a, b, c, torch.optim.SGD([model.weight], lr=0.1)
        """,
    "stepping inside backward": """
        def make(model: nn.Module):
            made = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}
            for p in model.parameters():
                p.register_post_accumulate_grad_hook(lambda q: made[q].step())
        """,
    "gradients that a wrapper captures": """
        from tensordict.nn import CudaGraphModule
        def update(optimizer: torch.optim.Optimizer, loss):
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
        fast = CudaGraphModule(update)
        """,
    "gradients that a graph has captured": """
        def capture_step(optimizer: torch.optim.Optimizer):
            g = torch.cuda.CUDAGraph()
            optimizer.zero_grad(set_to_none=False)
            return g
        """,
}


@table(OPTIMIZERS)
def test_slow_options_of_optimizers(code: str) -> None:
    check(code, only=frozenset({"TPF506"}))


TOTALS = {
    "a sum": """
        def train(model, loader, optimizer):
            total = 0.0
            mean = 0.0
            for i, batch in enumerate(loader):
                loss = model(batch).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss  # TPF507
                mean = mean + loss / 8  # TPF507
            return total / i
        """,
    "before backward, weighted, on self": """
        class Trainer:
            def fit(self, model, loader, scaler):
                for batch in loader:
                    loss = model(batch)
                    self.total += loss * batch.size(0)  # TPF507
                    scaler.scale(loss).backward()
        """,
    "a list": """
        def train(model, loader, accelerator):
            losses = []
            for batch in loader:
                loss = model(batch)
                accelerator.backward(loss)
                losses.append(loss)  # TPF507
            return torch.stack(losses).mean()
        """,
    "a weight beside it, and a total that is added to twice": """
        def train(model, loader, weight):
            total = 0.0
            for batch in loader:
                loss = model(batch)
                other = model(batch).mean()
                (loss + other).backward()
                total += weight * loss  # TPF507
                total = total + other  # TPF507
            return total
        """,
    "backward in some rounds, and let go there": """
        def losses_of(model, loader, with_backward: bool):
            losses = []
            for batch in loader:
                loss = model(batch)
                if with_backward:
                    loss.backward()
                    loss = loss.detach()
                losses.append(loss)
            return sum(losses)

        def total_of(model, loader, training: bool):
            total = 0.0
            for batch in loader:
                loss = model(batch)
                if training:
                    loss.backward()
                total += loss
            return total

        def given(model, loader, weights):
            total = 0.0
            for batch, weight in zip(loader, weights):
                kept = model(batch)
                for part in kept:
                    part.backward(weight * part.grad)
                total += weight * part.sum()
            return total
        """,
    "without the graph": """
        def train(model, loader):
            total, other, third, losses = 0.0, 0.0, 0.0, []
            for batch in loader:
                loss = model(batch)
                loss.backward()
                total += loss.detach()
                other += loss.data * 2
                third += loss.item()
                losses.append(loss.detach())
                with torch.no_grad():
                    total += loss
            return total, other, third, losses
        """,
    "autograd is off": """
        @torch.no_grad()
        def evaluate(model, loader):
            total = 0.0
            for batch in loader:
                loss = model(batch)
                total += loss
                loss.backward()
            return total
        """,
    "backward needs it": """
        def train_step(model, batches):
            total = 0.0
            for batch in batches:
                loss = model(batch)
                total += loss
            total.backward()

        def accumulate_step(model, batches):
            for batch in batches:
                total = 0.0
                for part in batch:
                    loss = model(part)
                    total = total + loss
                total.backward()

        def twice_step(model, batches):
            total = 0.0
            for batch in batches:
                loss = model(batch)
                loss.backward(retain_graph=True)
                total += loss
            return total
        """,
    "a loss of several terms": """
        def train_step(model, batches):
            for batch in batches:
                loss = model.first(batch)
                loss += model.second(batch)
                extra = model.third(batch)
                loss += extra
                loss.backward()
        """,
    "no backward to be seen": """
        def compute_loss(heads, x):
            total = 0.0
            for head in heads:
                loss = head(x)
                total += loss
            return total
        """,
    "begun anew in every round": """
        def train(model, loader):
            for batch in loader:
                total = 0.0
                loss = model(batch)
                loss.backward()
                total += loss
                print(batch)
        """,
}


@table(TOTALS)
def test_totals_that_keep_the_graph(code: str) -> None:
    check(code, only=frozenset({"TPF507"}))


def test_the_quietest_start_reports_it_too() -> None:
    check(TOTALS["a list"], LOOP, only=frozenset({"TPF507"}))
