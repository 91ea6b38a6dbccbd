"""The evidence that the branches around a finding show."""

from __future__ import annotations

from linting import HOT, program, table

from flake8_torchperf.judgement.worth.features import IN_BRANCH, OFF_BY_DEFAULT, features
from flake8_torchperf.linter import lint

PROGRAMS = {
    "the default of a parameter leads elsewhere": """
        class Net(nn.Module):
            def forward(self, x: Tensor, mask: Tensor = None, log=True, *, kind="sum"):
                if mask is not None:
                    print(mask.max().item())  # off
                if log:
                    print(x.max().item())
                if kind == "mean" and log:
                    print(x.mean().item())  # off
                if kind == "sum" and log:
                    print(x.sum().item())
                if mask is None:
                    return x.min().item()
                return x.argmin().item()  # off


        def run(net: Net, x: Tensor):
            return net(x, kind=read_options().kind)
        """,
    "a constructor keeps the parameter": """
        class Net(nn.Module):
            def __init__(self, check=None, scale=2):
                super().__init__()
                self.check = check
                self.scale = scale

            def forward(self, x: Tensor):
                if self.check:
                    print(x.max().item())  # off
                if self.scale == 2:
                    print(x.min().item())
                return x


        net = Net(check=True)
        """,
    "no literal is the default": """
        class Net(nn.Module):
            def forward(self, x: Tensor, flag, other=FLAG):
                if flag or other:
                    print(x.max().item())
                return x
        """,
}


@table(PROGRAMS)
def test_a_branch_is_off_by_default(code: str) -> None:
    text = program(code)
    found = {
        one.line
        for one in lint(text, "model.py", HOT)
        if OFF_BY_DEFAULT in features(one.site, one.code)
    }
    lines = enumerate(text.splitlines(), 1)
    assert found == {number for number, line in lines if line.endswith("# off")}


# dust3r, utils/geometry.py, `inv`
BRANCHES = """
    class Net(nn.Module):
        def forward(self, x, y, flag):
            if isinstance(x, torch.Tensor):
                a = x.max().item()
            if isinstance(y, (np.ndarray, Tensor)) and torch.is_tensor(y):
                b = y.max().item()
            if torch.is_tensor(y):
                c = y.min().item()
                if flag:
                    c = y.argmin().item()  # branch
            if not isinstance(x, (int, list)):
                d = torch.sum(x).item()  # branch
            if not torch.is_tensor(y):
                return torch.sum(x).item()  # branch
            return a, b, c, d
    """


def test_a_test_for_a_tensor_is_no_branch() -> None:
    text = program(BRANCHES)
    found = {
        one.line for one in lint(text, "model.py", HOT) if IN_BRANCH in features(one.site, one.code)
    }
    lines = enumerate(text.splitlines(), 1)
    assert found == {number for number, line in lines if line.endswith("# branch")}
