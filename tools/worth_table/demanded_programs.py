"""Programs that have to be told, whatever the names of functions, classes and files.

Each runs often by what it does: a training step in its loop, loops over gradients and their parts
(pytorch/pytorch#82206), a call from a loop in `forward`. ``{name}`` stands for the name of the
function. A line ends with the codes of its findings.
"""

IMPORTS = """\
import torch
from torch import Tensor, nn
"""
TRAINING = """

def {name}(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]) -> float:
    total = 0.0
    for batch in batches:
        loss = model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()  # TPF206
        if torch.isnan(loss):  # TPF301
            raise ValueError("the loss is not a number")
    return total
"""
SCALING = """

def {name}(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    for grad in grads:
        for part in grad:  # TPF201
            if torch.isinf(part).any().item() or torch.isnan(part).any().item():  # TPF203, TPF203
                found_inf.fill_(1.0)
                break
            part.data *= inv_scale.item()  # TPF101
"""
METHOD = """

class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(12):
            x = self.{name}(x)
        return x

    def {name}(self, x: Tensor) -> Tensor:
        if x.abs().max().item() > 10:  # TPF101
            x = x / 2
        return x[x > 0]  # TPF402
"""
