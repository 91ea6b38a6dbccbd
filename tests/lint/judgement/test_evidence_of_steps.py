"""What a step repeats, and is reported although code elsewhere is meant to do it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import check, table

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

ARRAYS = {
    "in a dict that a step of training or of validation returns": """
        class Trainer:
            def train_step(self, batch):
                loss = self.loss(self.network(batch["data"]), batch["target"])
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                return {"loss": loss.detach().cpu().numpy()}  # TPF102

            def validation_step(self, batch):
                output = torch.relu(self.network(batch["data"]))
                hits = output.sum(dim=(0, 2))
                hits = hits.detach().cpu().numpy()  # TPF102
                result = {"hits": hits[1:], "all": output.cpu().numpy()}  # TPF102
                return result
        """,
    "in a loop that only infers": """
        @torch.inference_mode()
        def segment(files, processor):
            for file in files:
                mask = torch.argmax(processor(file), 0)
                save(mask.cpu().numpy())  # TPF102

        def segment_by_rows(files, processor):
            with torch.no_grad():
                for file in files:
                    masks = torch.argmax(processor(file), 0)
                    for i in range(4):
                        save(masks[i, 1].cpu().numpy())  # TPF102
        """,
    "in a loop that goes backward too": """
        def fit(files, model):
            model.eval()
            for file in files:
                loss = model(file)
                loss.backward()
                save(torch.relu(loss).cpu().numpy())  # TPF102
        """,
}
OPERATIONS = {
    "a step repeats it": """
        class Loss(nn.Module):
            def forward(self, poses: Tensor, mask: Tensor):
                return masked_select(inv(poses), mask)

        def inv(x: Tensor):
            return torch.linalg.inv(x)  # TPF404

        def masked_select(x: Tensor, mask: Tensor):
            return torch.masked_select(x, mask)  # TPF402
        """,
    "numpy takes it where it is no tensor": """
        class Loss(nn.Module):
            def forward(self, poses: Tensor):
                return inv(poses)

        def inv(x):
            if isinstance(x, torch.Tensor):
                return torch.linalg.inv(x)  # TPF404
            return np.linalg.inv(x)
        """,
}
INDEXES = {
    "an array of numpy": """
        def step(x: Tensor, k: int, rows: list[int]):
            ids = np.arange(k)
            return x[ids], x[:, np.array([0, k])], x[np.asarray(rows)]  # TPF406, TPF406, TPF406
        """,
    "a scalar of numpy, or what may be one": """
        def step(x: Tensor, order: np.ndarray, k: int, rows: list[int]):
            ids = np.arange(k)
            return x[ids[0]], x[np.argmax(order)], x[np.array(k)]
        """,
}
SCALED = {
    "an optimizer that is not fused": """
        class Trainer:
            def __init__(self, model, cfg):
                self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
                self.scaler = torch.amp.GradScaler("cuda", enabled=cfg.amp)

            def train_step(self, data):
                self.scaler.scale(self.model(data)).backward()
                self.scaler.step(self.optimizer)  # TPF108

        def train(model, loader):
            plain = torch.optim.SGD(model.parameters(), lr=0.1)
            scaler = torch.cuda.amp.GradScaler()
            for x in loader:
                scaler.scale(model(x)).backward()
                scaler.step(plain)  # TPF108
                scaler.update()
        """,
    "fused, unknown, without a kernel that fuses, or not scaled": """
        def train(model, loader, **options):
            fused = torch.optim.AdamW(model.parameters(), fused=True)
            open_ = torch.optim.AdamW(model.parameters(), **options)
            chosen = torch.optim.AdamW(model.parameters(), fused=model.fused)
            other = torch.optim.RMSprop(model.parameters())
            plain = torch.optim.SGD(model.parameters())
            scaler = torch.amp.GradScaler("cuda")
            off = torch.amp.GradScaler("cuda", enabled=False)
            for x in loader:
                scaler.scale(model(x)).backward()
                scaler.step(fused)
                scaler.step(open_)
                scaler.step(chosen)
                scaler.step(other)
                off.step(plain)
        """,
}
PACKED = {
    "rows that torch sorts": """
        class Net(nn.Module):
            def forward(self, x: Tensor, n):
                pack = nn.utils.rnn.pack_padded_sequence
                out, _ = self.lstm(pack(x, n, enforce_sorted=False))  # TPF108
                out, _ = nn.utils.rnn.pad_packed_sequence(out)  # TPF404
                return out
        """,
    "rows that are sorted": """
        class Net(nn.Module):
            def forward(self, x: Tensor, n):
                out, _ = self.lstm(nn.utils.rnn.pack_padded_sequence(x, n))
                return nn.utils.rnn.pad_packed_sequence(out)
        """,
}
COPIED = {
    "from memory that is not pinned, or has gaps": """
        class Rows:
            def __init__(self, n: int):
                self.there = torch.zeros(n, 8, device="cuda")
                self.pinned = torch.zeros(n, 8, pin_memory=True)

            def step(self, n: int):
                self.there[:n].copy_(torch.from_numpy(read()), non_blocking=True)  # TPF503
                self.there[:, :n].copy_(self.pinned[:, :n], non_blocking=True)  # TPF503
                self.there[:n].copy_(self.pinned[:n], non_blocking=True)
                self.pinned.copy_(torch.from_numpy(read()))
        """,
    "an attribute that the line above makes anew": """
        class Net(nn.Module):
            def forward(self, x: Tensor, n: int):
                self.places = torch.arange(n)
                self.places = self.places.to(x.device)  # TPF501
                self.alphas = self.alphas.to(x.device)
                return x[self.places] * self.alphas
        """,
}
PINNED = {
    "memory that a cast makes": """
        def step(x: Tensor, n: int):
            for _ in range(n):
                pinned = torch.from_numpy(read()).pin_memory()
                x = x + pinned.half().to(x.device, non_blocking=True)  # TPF503
                x = x + pinned.to(x.device, non_blocking=True).half()
            return x
        """,
    "a device is no text": """
        class Rows(torch.utils.data.Dataset):
            pass

        def loaders(device: torch.device, name: str):
            cuda = torch.device("cuda")
            a = torch.utils.data.DataLoader(Rows(), num_workers=4, pin_memory=cuda == "cuda")  # TPF505
            b = torch.utils.data.DataLoader(Rows(), num_workers=4, pin_memory=device == "cuda")  # TPF505
            c = torch.utils.data.DataLoader(Rows(), num_workers=4, pin_memory=device.type == "cuda")
            d = torch.utils.data.DataLoader(Rows(), num_workers=4, pin_memory=name == "cuda")
            return a, b, c, d
        """,
}


@table(ARRAYS)
def test_arrays_that_steps_and_inference_make(code: str) -> None:
    check(code)


@table(OPERATIONS)
def test_operations_that_steps_repeat(code: str) -> None:
    check(code)


@table(INDEXES)
def test_arrays_as_indexes(code: str) -> None:
    check(code)


@table(SCALED)
def test_steps_of_scaled_optimizers(code: str) -> None:
    check(code)


@table(PACKED)
def test_the_order_of_packed_rows(code: str) -> None:
    check(code)


@table(PINNED)
def test_memory_that_is_not_pinned(code: str) -> None:
    check(code)


@table(COPIED)
def test_copies_of_what_is_new(code: str) -> None:
    check(code)


UPLOAD = """
    import torch


    def upload(frame):
        return torch.from_numpy(frame).to("cuda", non_blocking=True)
    """
LOOP = """
    from .ops import upload


    def process(frames, model):
        for frame in frames:
            model({given})
    """


@pytest.mark.parametrize(("given", "codes"), [("upload(frame)", ["TPF503"]), ("frame", [])])
def test_a_loop_of_another_module_calls_what_nothing_heats(
    tmp_path: Path, given: str, codes: list[str]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "loop.py").write_text(textwrap.dedent(LOOP.format(given=given)))
    ops = package / "ops.py"
    ops.write_text(textwrap.dedent(UPLOAD))
    assert [one.code for one in lint(ops.read_text(), str(ops), Options())] == codes
