"""NVIDIA's guide to sync-free PyTorch, restated: every call it names, waiting or not, judged.

Source of the facts: the "Writing Sync-Free Code" chapter of NVIDIA's CUDA Graph Best Practice for
PyTorch (https://docs.nvidia.com/dl-cuda-graph/) and the catalogue of patterns that NVIDIA/TensorRT-LLM
derives from it (perf-torch-sync-free, nine categories). The programs are ours. Where the guide
and the issue's families part, the comment in the table says so.
"""

from __future__ import annotations

import re

from linting import PRELUDE, check, table

from flake8_torchperf.findings.catalogue import load_catalogue

CATALOGUE = frozenset(rule.code for rule in load_catalogue(()).rules)
READS_LOOPS_BRANCHES = frozenset(code for code in CATALOGUE if code[3] in "123")

GUIDE = {
    "1 explicit: what blocks Python": """
        def step(x: Tensor):
            stream = torch.cuda.Stream()
            event = torch.cuda.Event()
            event.record()
            event.synchronize()  # TPF106
            stream.synchronize()  # TPF106
            torch.cuda.current_stream().synchronize()  # TPF106
            torch.cuda.synchronize()  # TPF106
        """,
    "1 explicit: what only the device waits for": """
        def step(x: Tensor):
            stream = torch.cuda.Stream()
            event = torch.cuda.Event(enable_timing=False)
            event.record(stream)
            event.wait()
            event.wait(stream)
            stream.wait_event(event)
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                return x * 2
        """,
    "2 movement: to the host, blocking": """
        def step(n: int):
            x = torch.randint(0, 9, (n, 4), device="cuda")
            a = x.cpu()  # TPF102
            b = x.to("cpu")  # TPF102
            c = x.to(device="cpu")  # TPF102
            d = x.sum().numpy(force=True)  # TPF102
            e = x.tolist()  # TPF102
            return a, b, c, d, e
        """,
    "2 movement: to the host, queued": """
        def step(n: int):
            x = torch.randint(0, 9, (n, 4), device="cuda")
            return x.to("cpu", non_blocking=True), x.to(device="cpu", non_blocking=True)
        """,
    "2 movement: a legacy CPU type moves, a dtype does not": """
        def step(n: int):
            x = torch.randint(0, 9, (n, 4), device="cuda")
            y = x.type(torch.LongTensor)  # TPF102
            z = x.type(torch.long)
            w = x.type(torch.cuda.LongTensor)
            return y, z, w, x.long(), x.to(torch.int64), x.float()
        """,
    "3 creation: factories on the device": """
        def step(n: int):
            a = torch.zeros(n, 4, device="cuda")
            b = torch.ones(n, 4, device="cuda")
            c = torch.empty(n, 4, device="cuda")
            d = torch.randn(n, 4, device="cuda")
            e = torch.full((n,), 3.0, device="cuda")
            f = torch.arange(n, device="cuda")
            return a, b, c, d, e, f, torch.zeros(1, device="cuda", dtype=torch.int64).squeeze()
        """,
    "4 control flow: explicit and implicit reads": """
        def step(n: int):
            loss = torch.randn(1, device="cuda")
            loss.item()  # TPF101
            torch.is_nonzero(loss)  # TPF105
            if loss:  # TPF301
                n += 1
            return n
        """,
    "4 control flow: flags of reductions": """
        def step(x: Tensor):
            flag = x.sum() > 16
            if flag:  # TPF301
                x = x + 1
            bad = x.isnan().any()
            if bad:  # TPF301
                x = x + 2
            return x
        """,
    "4 control flow: Python's max, and torch's": """
        def step(x: Tensor):
            a = max(x[0, 0], x[0, 1])  # TPF103
            b = torch.max(x[0, 0], x[0, 1])
            return a + b
        """,
    "4 control flow: the gradient scaler's sum of reads": """
        def maybe_step(optimizer, found: dict[torch.device, Tensor]):
            if not sum(v.item() for v in found.values()):  # TPF101
                return optimizer.step()
        """,
    "4 control flow: chosen on the device": """
        def step(loss: Tensor, a: Tensor, b: Tensor, limit: float):
            return torch.where(loss > limit, a, b)
        """,
    "4 control flow: a read decides": """
        def step(loss: Tensor, a: Tensor, b: Tensor, limit: float):
            if loss.item() > limit:  # TPF101
                return a
            return b
        """,
    "4 control flow: several reads, and one": """
        def several_step(loss: Tensor, accuracy: Tensor, norm: Tensor):
            return loss.item(), accuracy.item(), norm.item()  # TPF101, TPF101, TPF101

        def one_step(loss: Tensor, accuracy: Tensor, norm: Tensor):
            a, b, c = torch.stack([loss, accuracy, norm]).tolist()  # TPF102
            return a, b, c
        """,
    "4 control flow: a debug print": """
        def step(loss: Tensor):
            print(loss)  # TPF104
            print(f"loss {loss.item()}")  # TPF101
        """,
    "5 indexing: numbers and device indices": """
        def step(x: Tensor):
            idx = torch.arange(3, device="cuda")
            y = torch.zeros(1, device="cuda")
            x[idx] = y
            return x[0], x[idx], torch.index_select(x, 0, idx), x[..., -1], x[None]
        """,
    "6 slicing: numbers": """
        def step(x: Tensor, n: int):
            return x[8:16], x[:, 8:16], x[: x.shape[0] // 2], x[n:], x[:, -n:]
        """,
    "6 slicing: tensors as bounds, each a read": """
        def step(n: int):
            x = torch.randn((32, 32), device="cuda")
            i = torch.full((), 8, dtype=torch.long, device="cuda")
            j = torch.full((), 16, dtype=torch.long, device="cuda")
            a = x[i:j]  # TPF107, TPF107
            b = x[:, i:j]  # TPF107, TPF107
            c = x[i:j, i:j]  # TPF107, TPF107, TPF107, TPF107
            return a, b, c
        """,
    "6 slicing: an index tensor instead": """
        def step(n: int):
            x = torch.randn((32, 32), device="cuda")
            s = torch.arange(8, 16, device="cuda")
            return x[:, s], x[s, :]
        """,
    "7 dynamic shapes: fixed shapes instead": """
        def step(x: Tensor, mask: Tensor):
            y = torch.where(x > 5, x, 0)
            mean = y.float().sum() / torch.sum(x > 5)
            x.masked_fill_(x > 5, -1)
            z = x.long() & mask.long()
            return mean, z, torch.where(mask, torch.zeros(1, device="cuda"), x)
        """,
    "7 dynamic shapes: repeats of a known total": """
        def step(x: Tensor, repeats: Tensor):
            return torch.repeat_interleave(x, repeats, dim=0, output_size=3)
        """,
    "8 embeddings": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(50304, 768)

            def forward(self, idx: Tensor):
                y = self.embedding(idx)
                y.sum().backward()
                return y
        """,
    "9 distributed: a barrier": """
        import torch.distributed as dist

        def step(x: Tensor):
            dist.barrier()  # TPF106
            torch.distributed.barrier()  # TPF106
        """,
    # The guide warns of the events within a collective; no family of the issue holds them.
    "9 distributed: collectives": """
        import torch.distributed as dist

        def step(x: Tensor):
            dist.all_reduce(x)
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            return x
        """,
}


@table(GUIDE)
def test_host_reads_loops_and_branches(code: str) -> None:
    check(code, only=READS_LOOPS_BRANCHES)


SHAPES_AND_TRANSFERS = {
    "2 movement: to the device, from pinned memory": """
        def step(n: int):
            x = torch.zeros(n).pin_memory()
            a = x.cuda()  # TPF503
            b = x.to("cuda")  # TPF503
            return a, b, x.cuda(non_blocking=True), x.to("cuda", non_blocking=True)
        """,
    "2 movement: a queued copy, read too early": """
        def step(x: Tensor):
            y = x.to("cpu", non_blocking=True)
            return y.sum()  # TPF504
        """,
    "3 creation: from Python numbers": """
        def step(n: int):
            return torch.tensor(0, device="cuda")  # TPF502
        """,
    "3 creation: from an array": """
        def step(n: int):
            # One that the caller gives is new each time, and left out: see test_interpreter_wanted.py.
            return torch.as_tensor(np.arange(n), device="cuda")  # TPF502
        """,
    "3 creation: from a list, by a legacy type": """
        def step(flag: bool):
            return torch.cuda.BoolTensor([flag, not flag])  # TPF502
        """,
    "3 creation: made on the host, then moved": """
        def step(n: int):
            return torch.zeros(n).to("cuda")  # TPF501
        """,
    "5 indexing: a list": """
        def step(n: int):
            x = torch.randn((32, 32), device="cuda")
            return x[[2, 0, 1]]  # TPF406
        """,
    "5 indexing: a host tensor": """
        def step(n: int):
            x = torch.randn((32, 32), device="cuda")
            idx = torch.tensor([2, 0, 1], device="cpu")
            return x[idx]  # TPF502
        """,
    "7 dynamic shapes: nonzero": """
        def step(x: Tensor):
            mask = x > 5
            a = torch.nonzero(mask)  # TPF401
            b = torch.where(mask)  # TPF401
            c = mask.nonzero()  # TPF401
            return a, b, c
        """,
    "7 dynamic shapes: through a mask": """
        def step(x: Tensor):
            mask = x > 5
            a = x[mask]  # TPF402
            b = torch.masked_select(x, mask)  # TPF402
            return a, b
        """,
    "7 dynamic shapes: assigning tensors through a mask": """
        def step(x: Tensor):
            x[x > 5] = torch.zeros(1, device="cuda")  # TPF403
        """,
    "7 dynamic shapes: assigning through the positions of a mask": """
        def step(x: Tensor):
            x[torch.where(x > 5)] = -1  # TPF401
        """,
    "7 dynamic shapes: assigning a number through a mask": """
        def step(x: Tensor):
            x[x > 5] = -1
        """,
    "7 dynamic shapes: backward through a mask": """
        def step(x: Tensor, grad: Tensor):
            mask = x > 5
            x[mask].backward(grad[mask])  # TPF402, TPF402
        """,
    "7 dynamic shapes: backward through device indices": """
        def step(x: Tensor, grad: Tensor):
            idx = torch.arange(3, device="cuda")
            x.backward(grad)
            x[0].backward(grad[0])
            x[idx].backward(grad[idx])
        """,
    "7 dynamic shapes: repeats": """
        def step(x: Tensor, repeats: Tensor):
            return torch.repeat_interleave(x, repeats, dim=0)  # TPF405
        """,
    "7 dynamic shapes: unique": """
        def step(idx: Tensor):
            return torch.unique(idx), torch.unique_consecutive(idx)  # TPF404, TPF404
        """,
}


@table(SHAPES_AND_TRANSFERS)
def test_shapes_and_transfers(code: str) -> None:
    check(code)


@table(SHAPES_AND_TRANSFERS)
def test_no_read_is_seen_where_only_a_shape_or_a_transfer_is(code: str) -> None:
    check(re.sub(r"#.*", "", code), prelude=PRELUDE, only=READS_LOOPS_BRANCHES)
