"""What the use of a value shows of it: losses of one element, positions, ends of a program."""

from __future__ import annotations

from linting import check, program, table

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.values.values import tensor_of

# A copy that becomes an array of more than one number is asked for; of one element it is a read.
ONE_ELEMENT = {
    "backward on it": """
        class Trainer:
            def step(self, batch):
                loss = self.loss(self.network(batch.cuda()))
                loss.backward()
                self.optimizer.step()
                return {"loss": loss.detach().cpu().numpy()}  # TPF102
        """,
    "backward through a scaler": """
        class Trainer:
            def step(self, batch):
                loss = self.loss(self.network(batch.cuda()))
                self.scaler.scale(loss).backward()
                self.optimizer.step()
                return {"loss": loss.detach().cpu().numpy()}  # TPF102
        """,
    "backward of an accelerator": """
        def train(accelerator, model, loader, optimizer):
            model = accelerator.prepare(model)
            for x in loader:
                loss = model(x.cuda()).pow(2).sum(-1)
                accelerator.backward(loss)
                optimizer.step()
                print(loss.detach().cpu().numpy())  # TPF102
        """,
    "backward of a member": """
        class Trainer:
            def step(self, batch):
                loss = self.loss(self.network(batch.cuda()))
                self.fabric.backward(loss)
                self.optimizer.step()
                return loss.detach().cpu().numpy()  # TPF102
        """,
    "manual_backward": """
        class Model(nn.Module):
            def training_step(self, batch):
                loss = self.loss(self.network(batch))
                self.manual_backward(loss)
                self.optimizers().step()
                return loss.detach().cpu().numpy()  # TPF102
        """,
    "scaled before": """
        class Trainer:
            def step(self, batch):
                loss = self.loss(self.network(batch.cuda()))
                loss = loss / self.accumulate
                loss.backward()
                self.optimizer.step()
                return loss.detach().cpu().numpy()  # TPF102
        """,
}
ANY_SIZE = {
    "backward with a gradient": """
        class Trainer:
            def step(self, batch):
                out = self.network(batch.cuda())
                out.backward(gradient=torch.ones_like(out))
                self.optimizer.step()
                return out.detach().cpu().numpy()
        """,
    "a gradient by position": """
        class Trainer:
            def step(self, batch):
                out = self.network(batch.cuda())
                weight = self.weights(batch)
                out.backward(weight)
                self.optimizer.step()
                return weight.cpu().numpy()
        """,
    "another value of the name": """
        class Trainer:
            def step(self, batch):
                loss = self.network(batch.cuda()).sum()
                loss.backward()
                self.optimizer.step()
                loss = self.network(batch.cuda()).relu()
                return loss.detach().cpu().numpy()
        """,
}
POSITIONS = {
    "reversed": """
        def returns(rewards: Tensor, gamma: float):
            found = torch.zeros_like(rewards)
            last = 0.0
            for t in reversed(range(len(rewards))):  # TPF202
                last = rewards[t] + gamma * last
                found[t] = last
            return found
        """,
    "reversed, of a dimension": """
        def returns(rewards: Tensor, gamma: float):
            found = torch.zeros_like(rewards)
            last = 0.0
            for t in reversed(range(rewards.shape[0])):  # TPF202
                last = found[t] = rewards[t] + gamma * last
            return found
        """,
    "reversed layers": """
        def backwards(layers: nn.ModuleList, x: Tensor):
            for i in reversed(range(len(layers))):
                x = layers[i](x)
            return x
        """,
}
ENDS = {
    "sys.exit": """
        import sys

        def check_sizes(x: Tensor):
            if x.sum() > 0:  # TPF301
                print(x.max().item())
                sys.exit(1)
            return x
        """,
    "os._exit": """
        import os

        def check_sizes(x: Tensor):
            if x.sum() > 0:  # TPF301
                print(x.max().item())
                os._exit(1)
            return x
        """,
    "raise SystemExit": """
        def check_sizes(x: Tensor):
            if x.sum() > 0:  # TPF301
                print(x.max().item())
                raise SystemExit(1)
            return x
        """,
}
DECLARED = {
    "tensors, quoted": """
        def metrics(x: Tensor) -> tuple["torch.Tensor", dict[str, "torch.Tensor"]]:
            return x, {"mean": x.mean().item()}  # TPF101
        """,
    "all of it quoted": """
        def metrics(x: Tensor) -> "dict[str, Tensor]":
            return {"mean": x.mean().item()}  # TPF101
        """,
}


@table(ONE_ELEMENT)
def test_backward_without_a_gradient_shows_one_element(code: str) -> None:
    check(code)


@table(ANY_SIZE)
def test_other_values_may_have_any_size(code: str) -> None:
    found = lint(program(code), "code.py", Options(min_worth=0.0))
    [copied] = [tensor_of(one.site.operand) for one in found if one.site.operand is not None]
    assert copied is not None
    assert copied.scalar is not True


@table(POSITIONS)
def test_positions_in_reverse(code: str) -> None:
    check(code)


@table(ENDS)
def test_a_call_that_ends_the_program_ends_a_branch_like_raise(code: str) -> None:
    check(code)


@table(DECLARED)
def test_quoted_annotations_are_read(code: str) -> None:
    check(code)
