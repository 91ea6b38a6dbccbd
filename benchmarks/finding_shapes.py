"""Packages with any number of findings, for tests that count the steps from source to message.

Takes a number; returns the texts of a package's files by name, the one to lint last. The module
does not know the plugin.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD = "import torch\n\n\n"
LOOP = (
    "def train{i}(net, loader, optimizer):\n    for batch in loader:\n"
    "        loss = net(batch).sum()\n        loss.backward()\n        optimizer.step()\n"
)
HELPER = "def scale{i}(x: torch.Tensor) -> torch.Tensor:\n    return x / x.sum().item()\n\n\n"
CALLER = "from package import model\n\n\n" + LOOP + "        model.scale{i}(batch)\n"
CONTRACT = (
    "class Engine{i}:\n    # torchperf: sync-free\n    def forward(self, x: torch.Tensor):\n"
    "        return self.scale(x)\n\n    def scale(self, x: torch.Tensor):\n"
    "        return x / x.sum().item()\n\n\n"
)
Texts = dict[str, str]


def _model(text: str) -> Texts:
    return {"model.py": HEAD + text}


def _each(unit: str) -> Callable[[int], Texts]:
    """Return a module that holds a unit again and again, each with its number."""
    return lambda count: _model("".join(unit.replace("{i}", str(i)) for i in range(count)))


def _in_one_loop(line: str) -> Callable[[int], Texts]:
    """Return a module with one training loop that holds a line again and again."""
    loop = LOOP.replace("{i}", "")
    return lambda count: _model(loop + "".join(line.replace("{i}", str(i)) for i in range(count)))


def _modules(count: int) -> Texts:
    """Return as many modules that call a helper in a loop, and that helper's module."""
    callers = {f"caller{i}.py": CALLER.replace("{i}", str(i)) for i in range(count)}
    return {"__init__.py": "", **callers, **_each(HELPER)(count)}


FINDINGS: dict[str, Callable[[int], Texts]] = {
    "functions": _each(LOOP + "        print(loss.item())\n\n\n"),
    "helpers of one loop": lambda count: _model(
        "".join(HELPER.replace("{i}", str(i)) for i in range(count))
        + LOOP.replace("{i}", "")
        + "".join(f"        batch = scale{i}(batch)\n" for i in range(count))
    ),
    "reads in one function": _in_one_loop("        print((loss * {i}).item())\n"),
    "fixes in one function": _in_one_loop("        batch += torch.arange(1{i}).to(batch.device)\n"),
    "branches in one function": _in_one_loop(
        "        loss = loss * {i}\n        if loss > {i}:\n            loss = loss * 2\n"
    ),
    "fixes": _each(LOOP + "        batch += torch.arange(9).to(batch.device)\n\n\n"),
    "rows": _in_one_loop(
        "        loss = loss * {i}\n        print(loss.item(), loss.item())\n"
        "        loss.tolist()\n"
    ),
    "rows in functions": _each(LOOP + "        print(loss.item(), loss.item())\n\n\n"),
    "noqa": _in_one_loop("        print((loss * {i}).item())  # noqa: TPF101\n"),
    "contracts": _each(CONTRACT),
    "modules": _modules,
}
