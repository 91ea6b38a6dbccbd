"""Triton kernels that compile again for each size (TPF610): by parameters and by arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from linting import HOT, check, findings, in_package, program, table

PREVIEWED = replace(HOT, preview=True)
SIZES = frozenset(("TPF610",))
PRELUDE = """\
import torch
import triton
import triton.language as tl
from torch import Tensor, nn


@triton.jit
def scale(x, out, n: tl.constexpr, d: tl.constexpr, BLOCK: tl.constexpr):
    pass


@triton.autotune(configs=[triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr, T: tl.constexpr = 1):
    pass

"""
TOLD = {
    "elements, by position": """
        def scaled(x: Tensor):
            out = torch.empty_like(x)
            scale[(8,)](x, out, x.numel(), 64, BLOCK=128)  # TPF610
            return out
        """,
    "a length, by keyword": """
        def scaled(x: Tensor):
            out = torch.empty_like(x)
            length = len(x)
            scale[lambda meta: (8,)](x, out, d=64, n=length, BLOCK=128)  # TPF610
            return out
        """,
    # linkedin/Liger-Kernel, issue 146: src/liger_kernel/ops/rope.py, `rope_forward`
    "the batch of what is returned": """
        def rope_forward(q: Tensor, k: Tensor, cos: Tensor):
            q = q.transpose(1, 2)
            batch_size, seq_len, n_q_head, head_dim = q.shape
            pad_hd = triton.next_power_of_2(head_dim)
            n_row = batch_size * seq_len
            q = q.contiguous()
            scale[(n_row,)](
                q,
                cos,
                batch_size,  # TPF610
                head_dim,
                BLOCK=pad_hd,
            )
            return q.transpose(1, 2)
        """,
    # fangwei123456/spikingjelly, pull request 690: triton_kernel/neuron_kernel/integrate_and_fire.py
    "the steps of a sequence, autotuned": """
        def multistep(x_seq: Tensor):
            s_seq = torch.empty_like(x_seq)
            T = x_seq.shape[0]
            NCL = x_seq[0].numel()
            tuned[lambda meta: (triton.cdiv(NCL, meta["BLOCK"]),)](x_seq, s_seq, NCL, T=T)  # TPF610
            return s_seq
        """,
    # XPU-Forces/mojo_opset, pull request 398: kernels/npu/fused_add_rmsnorm.py
    "rows of a view": """
        def norm(x: Tensor, weight: Tensor):
            flat = x.reshape(-1, x.shape[-1])
            n_rows, n_cols = flat.shape
            y = torch.empty_like(flat)
            scale[(n_rows,)](flat, y, n_rows, n_cols, BLOCK=128)  # TPF610
            return y.view(x.shape)
        """,
    "a count of blocks, in a function of autograd": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x: Tensor, weight: Tensor):
                B, T, D = x.size()
                out = x.new_empty(B, T, D)
                scale[(B,)](x, out, triton.cdiv(T, 64), D, BLOCK=128)  # TPF610
                return out
        """,
    "in a module": """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))
                self.cache = torch.zeros(8)

            def forward(self, x):
                scale[(8,)](x, self.cache, x.shape[0], x.shape[-1], BLOCK=64)  # TPF610
                return self.cache
        """,
}
SILENT = {
    "a power of two, the last size, constants": """
        def scaled(x: Tensor):
            out = torch.empty_like(x)
            scale[(8,)](x, out, triton.next_power_of_2(x.numel()), x.shape[-1], BLOCK=64)
            return out
        """,
    "a plain parameter": """
        def scaled(x: Tensor):
            out = torch.empty_like(x)
            tuned[(8,)](x, out, x.numel())
            return out
        """,
    "whether it divides": """
        def scaled(x: Tensor):
            out = torch.empty_like(x)
            n = x.numel()
            scale[(8,)](x, out, n % 64 == 0, n % 64, BLOCK=min(n, 64))
            return out
        """,
    "the second of two, heads": """
        def scaled(x: Tensor, q: Tensor):
            rows, columns = x.shape
            b, h, t, d = q.shape
            out = torch.empty_like(x)
            scale[(rows,)](x, out, columns, h, BLOCK=64)
            return out, torch.empty_like(q)
        """,
    "a weight": """
        def linear(x: Tensor, weight: Tensor):
            out = torch.empty(x.shape[0], weight.shape[0])
            scale[(8,)](x, out, weight.shape[0], weight.numel(), BLOCK=64)
            return out

        class Layer(nn.Module):
            def __init__(self, hidden):
                super().__init__()
                self.hidden = hidden
                self.weight = nn.Parameter(torch.ones(hidden, 8))

            def forward(self, x):
                out = torch.empty_like(x)
                scale[(8,)](x, out, self.hidden, self.weight.shape[0], BLOCK=64)
                return out
        """,
    # linkedin/Liger-Kernel: ops/backends/_ascend/ops/fused_linear_jsd.py
    "a weight whose gradient is summed": """
        def fused(x: Tensor, weight: Tensor):
            grad_weight = torch.zeros_like(weight)
            V = weight.shape[0]
            scale[(8,)](x, grad_weight, V, 64, BLOCK=64)
            return grad_weight
        """,
    "a parameter that is given": """
        def halved(w: Tensor):
            out = torch.empty_like(w)
            scale[(8,)](w, out, w.shape[0], 8, BLOCK=64)
            return out

        class Layer(nn.Module):
            def __init__(self, hidden):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(hidden, 8))

            def forward(self, x):
                return x @ halved(self.weight)
        """,
    "a number that is given, a choice": """
        def scaled(x: Tensor, n: int, exact: bool):
            out = torch.empty_like(x)
            m = 64
            if exact:
                m = x.numel()
            scale[(8,)](x, out, n, m, BLOCK=64)
            return out
        """,
    "the last size in front": """
        def scaled(x: Tensor):
            out = torch.empty_like(x)
            y = x.transpose(0, 1)
            scale[(8,)](y, out, y.shape[0], x.t().shape[0], BLOCK=64)
            return out
        """,
    "no kernel of Triton": """
        def table(x, out, n: tl.constexpr):
            return n

        HANDLERS = {"a": table}

        def scaled(x: Tensor):
            out = torch.empty_like(x)
            HANDLERS["a"](x, out, x.numel())
            return out
        """,
}


@table(TOLD)
def test_kernels_compiled_for_each_size(code: str) -> None:
    check(code, PREVIEWED, prelude=PRELUDE, only=SIZES)
    assert not [one for one in findings(program(code, PRELUDE)) if "TPF610" in one]


@table(SILENT)
def test_kernels_compiled_a_few_times(code: str) -> None:
    check(code, PREVIEWED, prelude=PRELUDE, only=SIZES)


def test_a_kernel_of_another_module(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    in_package(folder, "app/kernels/scaling.py", PRELUDE)
    code = program(
        """
        from ..kernels.scaling import scale, tuned

        class Layer(torch.nn.Module):
            def forward(self, x):
                return scaled(x)

        def scaled(x: torch.Tensor):
            out = torch.empty_like(x)
            tuned[(8,)](x, out, x.numel())
            scale[(8,)](x, out, x.numel(), 8, BLOCK=triton.next_power_of_2(8))
            return out
        """,
        "import torch\nimport triton\n",
    )
    name = in_package(folder, "app/ops/scaled.py", code)
    found = [one for one in findings(code, PREVIEWED, name) if "TPF610" in one]
    assert [one.partition(":")[0] for one in found] == ["13"]
