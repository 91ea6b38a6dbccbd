"""Waits that engineers removed by hand: collectives of objects, loggers, schedulers, pinned rows.

Each restates a pattern, not the code, of the change that it names.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from linting import ALL, HOT, check, places, program, table

from flake8_torchperf.linter import lint

PREVIEWED = replace(HOT, preview=True)


@table(
    {
        # pytorch/torchtitan and NVIDIA/Megatron-LM exchange such objects once a step.
        "collectives of objects": """
        import torch.distributed as dist

        def train(model: nn.Module, loader, opt):
            for batch in loader:
                model(batch).sum().backward()
                opt.step()
                found = [None] * dist.get_world_size()
                dist.all_gather_object(found, {"tokens": 3})  # TPF106
                dist.broadcast_object_list(found)  # TPF106
        """,
        "a group on the host": """
        import torch.distributed as dist

        def host_group():
            return dist.new_group(backend="gloo")

        def train(model: nn.Module, loader, opt, group):
            for batch in loader:
                model(batch).sum().backward()
                opt.step()
                found = [None] * dist.get_world_size()
                dist.all_gather_object(found, {"tokens": 3}, group=group)
                dist.all_gather_object(found, {"tokens": 3})  # TPF106
        """,
        "streams of every backend": """
        def train(model: nn.Module, loader, opt):
            for batch in loader:
                model(batch).sum().backward()
                opt.step()
                torch.npu.current_stream().synchronize()  # TPF106
                torch.musa.synchronize()  # TPF106
        """,
        "a checkpoint in every step": """
        def train(model: nn.Module, loader, opt, path: str):
            for step, batch in enumerate(loader):
                model(batch).sum().backward()
                opt.step()
                torch.save(model.state_dict(), path)  # TPF102
                if step % 100 == 0:
                    torch.save(model.state_dict(), path)
            torch.save(model.state_dict(), path)
        """,
    }
)
def test_waits_of_a_step(code: str) -> None:
    check(code)


@table(
    {
        # torch/utils/tensorboard/_convert_np.py, make_np; tqdm/std.py, set_postfix
        "tensorboard and tqdm": """
        def train(model: nn.Module, bar, writer, opt):
            for step, batch in enumerate(bar):
                loss = model(batch).sum()
                loss.backward()
                opt.step()
                writer.add_scalar("loss", loss, step)  # TPF101
                bar.set_postfix(loss=loss)  # TPF101
                writer.add_scalar("lr", 0.1, step)
                if step % 100 == 0:
                    writer.add_scalar("loss", loss, step)
        """,
        "wandb, value by value": """
        import wandb

        def train(model: nn.Module, loader, opt):
            for step, batch in enumerate(loader):
                loss = model(batch).sum()
                loss.backward()
                opt.step()
                wandb.log({
                    "loss": loss,  # TPF101
                    "step": step,
                })
        """,
        # lightning/pytorch/trainer/connectors/logger_connector/logger_connector.py
        "Lightning reads what its progress bar shows": """
        import lightning.pytorch as pl

        class Net(pl.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self.net(batch).sum()
                norm = loss.detach().norm()
                self.log("loss", loss)
                self.log("norm", norm, prog_bar=True)  # TPF101
                self.log("same", norm, prog_bar=False)
                self.log("mean", norm, prog_bar=True, on_step=False, on_epoch=True)
                return loss
        """,
        # pyannote.audio, tasks/segmentation/speaker_diarization.py: the model logs for its task
        "Lightning reads nothing that it shows nowhere": """
        class Task:
            def validation_step(self, batch, batch_idx):
                loss = self.net(batch).sum().detach()
                self.model.log("loss", loss, prog_bar=True)  # TPF101
                self.model.log("loss/val", loss, on_step=False, on_epoch=True, prog_bar=False)
        """,
        "a logger of one's own is followed instead": """
        class Log:
            def add_scalar(self, name: str, value, step: int):
                self.rows.append((name, step))

        def train(model: nn.Module, loader, opt):
            log = Log()
            for step, batch in enumerate(loader):
                loss = model(batch).sum()
                loss.backward()
                opt.step()
                log.add_scalar("loss", loss, step)
        """,
    }
)
def test_loggers_read_the_tensors_that_they_are_given(code: str) -> None:
    check(code, only=frozenset(("TPF101", "TPF104")))


@table(
    {
        # huggingface/diffusers 14589: tables of a scheduler that stay on the host
        "a host's table at a device's step": """
        class Scheduler:
            def __init__(self):
                self.alphas = torch.cumprod(torch.linspace(0.9, 0.99, 1000), 0)

            def set_timesteps(self, count: int, device):
                self.timesteps = torch.arange(0, 1000, 1000 // count).to(device)

            def step(self, noise: Tensor, t: int, x: Tensor):
                return x * self.alphas[t] + noise  # TPF107

        @torch.no_grad()
        def sample(model: nn.Module, x: Tensor, device):
            scheduler = Scheduler()
            scheduler.set_timesteps(50, device)
            for t in scheduler.timesteps:
                x = scheduler.step(model(x, t), t, x)
            return x
        """,
        "integers stay integers": """
        class Scheduler:
            def __init__(self):
                self.alphas = torch.cumprod(torch.linspace(0.9, 0.99, 1000), 0)

            def step(self, noise: Tensor, t: int, x: Tensor):
                return x * self.alphas[t] + noise

        @torch.no_grad()
        def sample(model: nn.Module, x: Tensor):
            scheduler = Scheduler()
            for t in range(50):
                x = scheduler.step(model(x, t), t, x)
            return x
        """,
    }
)
def test_a_tensor_given_for_a_declared_integer(code: str) -> None:
    check(code, only=frozenset(("TPF107", "TPF201")))


@table(
    {
        # aten/src/ATen/native/cuda/Copy.cu, copy_requires_temporaries
        "rows of a pinned buffer": """
        class Feeder:
            def __init__(self):
                self.rows = torch.zeros(8, 128, pin_memory=True)
                self.there = torch.zeros(8, 128, device="cuda")

            def feed(self, count: int):
                for i in range(count):
                    self.there[i].copy_(self.rows[i], non_blocking=True)
                    yield self.rows[i].to("cuda", non_blocking=True)
                    yield self.rows[:i].to("cuda", non_blocking=True)
                    yield self.rows[:, i].to("cuda", non_blocking=True)  # TPF503
                    yield self.rows[::2].to("cuda", non_blocking=True)  # TPF503
                    self.there[:, i].copy_(self.rows[:, i], non_blocking=True)  # TPF503
        """,
    }
)
def test_pinned_rows_are_queued_and_columns_wait(code: str) -> None:
    check(code, ALL, only=frozenset(("TPF501", "TPF502", "TPF503")))


@table(
    {
        "in a block of a device": """
        def fill(model: nn.Module, count: int):
            with torch.device("cuda"):
                for _ in range(count):
                    if torch.rand(3).max() > 0.5:  # TPF301
                        yield torch.tensor([1.0, 2.0])  # TPF502
            with torch.device("cpu"):
                yield torch.tensor([1.0, 2.0])
        """,
        "by the default of the module": """
        torch.set_default_device("cuda")

        def fill(model: nn.Module, count: int):
            for _ in range(count):
                yield torch.tensor([1.0, 2.0])  # TPF502
                yield torch.zeros(3)
        """,
        "of any device": """
        def fill(model: nn.Module, device: torch.device, count: int):
            with device:
                for _ in range(count):
                    yield torch.tensor([1.0, 2.0])
        """,
    }
)
def test_factories_make_tensors_on_the_default_device(code: str) -> None:
    check(code, ALL)


@table(
    {
        # pytorch/torchtitan: values of a DTensor are read by every rank
        "values that are split over devices": """
        from torch.distributed.tensor import DTensor

        def norms(model: nn.Module, loader, opt, weight: DTensor):
            for batch in loader:
                model(batch).sum().backward()
                opt.step()
                if weight.isnan().any():  # TPF203
                    print("nan")
                yield weight.sum().item()  # TPF101

        def checked(model: nn.Module, loader, opt, weight):
            for batch in loader:
                model(batch).sum().backward()
                opt.step()
                if weight.full_tensor().sum() > 3:  # TPF301
                    print("large")
        """,
    }
)
def test_distributed_tensors(code: str) -> None:
    check(code)


@table(
    {
        # NVIDIA/NeMo and others left these on after a search for NaNs
        "for every run": """
        import os

        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # TPF508
        os.environ["OMP_NUM_THREADS"] = "1"
        torch.autograd.set_detect_anomaly(True)  # TPF508
        torch.cuda.set_sync_debug_mode("warn")  # TPF508

        def train(model: nn.Module, loader):
            with torch.autograd.detect_anomaly(check_nan=False):  # TPF508
                for batch in loader:
                    model(batch).sum().backward()

        if __name__ == "__main__":
            torch.autograd.set_detect_anomaly(True)  # TPF508
        """,
        "chosen, or switched off": """
        import os

        os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
        torch.autograd.set_detect_anomaly(False)
        torch.cuda.set_sync_debug_mode(0)

        def main(args):
            torch.autograd.set_detect_anomaly(args.detect_anomaly)
            if args.debug:
                torch.autograd.set_detect_anomaly(True)
                os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        """,
    }
)
def test_debugging_that_is_left_on(code: str) -> None:
    check(code, PREVIEWED)
    assert "TPF508" not in {code for _, code in places(program(code), HOT)}


@table(
    {
        # torch/optim/optimizer.py, `_cuda_graph_capture_health_check`
        "an optimizer that is not made for a graph": """
        def record(model: nn.Module, x: Tensor):
            plain = torch.optim.AdamW(model.parameters())
            made_for_it = torch.optim.AdamW(model.parameters(), capturable=True)
            simple = torch.optim.SGD(model.parameters(), lr=0.1)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                model(x).sum().backward()
                plain.step()  # TPF609
                made_for_it.step()
                simple.step()
            plain.step()
        """,
        # torch/optim/adam.py: a rate that is a tensor is read unless the optimizer is capturable
        "a rate on the device": """
        def made(model: nn.Module, rate: Tensor):
            there = torch.full((), 0.1, device="cuda")
            yield torch.optim.Adam(model.parameters(), lr=there)  # TPF506
            yield torch.optim.SGD(model.parameters(), lr=there)  # TPF506
            yield torch.optim.SGD(model.parameters(), lr=there, fused=True)
            yield torch.optim.Adam(model.parameters(), lr=there, capturable=True)
            yield torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
            yield torch.optim.Adam(model.parameters(), lr=rate)
        """,
    }
)
def test_optimizers(code: str) -> None:
    check(code, only=frozenset(("TPF506", "TPF609")))


@table(
    {
        # torch/nested/_internal/nested_tensor.py, `_max_seqlen`
        "a nested tensor without its longest row": """
        class Attention(nn.Module):
            def forward(self, values: Tensor, offsets: Tensor, longest: int):
                q = torch.nested.nested_tensor_from_jagged(values, offsets)  # TPF405
                k = torch.nested.nested_tensor_from_jagged(values, offsets, max_seqlen=longest)
                return F.scaled_dot_product_attention(q, k, k)
        """,
    }
)
def test_nested_tensors(code: str) -> None:
    check(code)


OPTION = """
import torch
from torch import nn


def clip(model: nn.Module, error_if_nonfinite: bool = False):
    return _clip(model, error_if_nonfinite)


def _clip(model: nn.Module, error_if_nonfinite: bool):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, 2.0, error_if_nonfinite)


def train(model: nn.Module, loader, opt):
    for batch in loader:
        model(batch).sum().backward()
        clip(model{given})
        opt.step()


train(*made())
"""


@pytest.mark.parametrize(("given", "told"), [("", []), (", error_if_nonfinite=True", ["TPF108"])])
def test_an_option_is_followed_into_a_private_function(
    given: str, told: list[str], tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    file = tmp_path / "train.py"
    file.write_text(OPTION.format(given=given), encoding="utf-8")
    found = lint(file.read_text(encoding="utf-8"), str(file), HOT)
    assert [one.code for one in found] == told
