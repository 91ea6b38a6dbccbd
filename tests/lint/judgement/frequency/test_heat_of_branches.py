"""Branches that run seldom: what stands in one is silent by default, what stands beside it is not."""

from __future__ import annotations

from linting import check_pair, table

BRANCHES = {
    "errors and warnings": """
        import warnings

        class Net(nn.Module):
            def forward(self, x: Tensor):
                if x.shape[0] > 3:
                    raise ValueError(f"too large: {x.max().item()}")
                if x.shape[0] > 2:
                    warnings.warn(f"large: {x.min().item()}")  # TPF101
                return x / x.max().item()  # TPF101
        """,
    "every so many steps": """
        class Net(nn.Module):
            def training_step(self, x: Tensor, step: int):
                if step % 100 == 0:
                    print(x.max().item())
                return x / x.max().item()  # TPF101
        """,
    "where names say that it is one step in several": """
        class Net(nn.Module):
            def training_step(self, x: Tensor, step: int, every: int):
                save = every and step % every == 0
                show = step % 100 == 0
                if save or show:
                    self.saved(x)
                if save or self.training:
                    self.shown(x)
                if not show:
                    self.hidden(x)
                return x / x.max().item()  # TPF101

            def saved(self, x: Tensor):
                print(x.max().item())

            def shown(self, x: Tensor):
                print(x.max().item())  # TPF101

            def hidden(self, x: Tensor):
                print(x.max().item())  # TPF101
        """,
    "beside pickling": """
        import pickle
        import torch.distributed as dist

        def gathered(data: object):
            tensor = torch.frombuffer(pickle.dumps(data), dtype=torch.uint8).cuda()
            return pickle.loads(_padded(tensor).cpu().numpy().tobytes())

        def _padded(tensor: Tensor):
            size = torch.tensor([tensor.numel()], device=tensor.device)
            dist.all_reduce(size)
            return tensor.new_zeros(size.item())

        def scaled(tensor: Tensor):
            return tensor / tensor.max().item()  # TPF101
        """,
    "what is made once": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if self.limit is None:
                    self.limit = x.max().item()
                return x / x.min().item() + self.limit  # TPF101
        """,
    "options that are off by default": """
        def scaled(x: Tensor, exact: bool = False, clipped: bool = True):
            if exact:
                x = x / x.max().item()
            if clipped:
                x = x / x.min().item()  # TPF101
            return x
        """,
    "without a device, but for loops over elements": """
        class Net(nn.Module):
            def forward(self, x: Tensor, device: torch.device):
                if device.type == "cpu":
                    x = x / x.max().item()
                    for row in x:  # TPF201
                        x = x + row.sum()
                return x / x.min().item()  # TPF101
        """,
    "where no device is available, but for loops over elements": """
        class Net(nn.Module):
            def forward(self, x: Tensor):
                if not torch.cuda.is_available():
                    x = x / x.max().item()
                    for i in range(x.shape[0]):  # TPF202
                        x = x + x[i].sum()
                return x / x.min().item()  # TPF101
        """,
}


@table(BRANCHES)
def test_branches_that_run_seldom(code: str) -> None:
    check_pair(code)
