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
