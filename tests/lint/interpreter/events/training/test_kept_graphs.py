"""Losses kept with their graph inside of something (TPF507): told in preview only."""

from __future__ import annotations

from dataclasses import replace

import pytest
from linting import HOT, check, findings, program

PREVIEWED = replace(HOT, preview=True)
KEPT = frozenset(("TPF507",))

LOOP_OF_STEPS = """
from collections import defaultdict, deque

def train(model: nn.Module, loader, opt):
    kept = {start}
    for i, x in enumerate(loader):
        out = model(x)
        loss = F.mse_loss(out, x)
        loss.backward()
        opt.step()
        {use}
    return kept
"""
HOT_USES = {
    "an entry for each round": ("{}", "kept[i] = loss"),
    "a place of a list": ("[None] * 100", "kept[i] = loss"),
    "two keys": ("{}", 'kept["train", i] = loss.mean()'),
    "scaled": ("[]", "kept.append(loss * 2)"),
    "reduced": ("[]", "kept.append(loss.sum())"),
    "moved, which keeps the graph": ("[]", "kept.append(loss.cpu())"),
    "in a tuple": ("[]", "kept.append((i, loss))"),
    "in a dict": ("[]", 'kept.append({"loss": loss, "step": i})'),
    "a list of one": ("[]", "kept += [loss]"),
    "extended": ("[]", "kept.extend([loss])"),
    "a total of a part": ("0.0", "kept += loss.sum()"),
    "a total that is assigned": ("0.0", "kept = kept + loss.mean()"),
    "a list in a dict": ("defaultdict(list)", 'kept["loss"].append(-loss)'),
}
COLD_USES = {
    "detached": ("{}", "kept[i] = loss.detach()"),
    "read": ("{}", "kept[i] = loss.item()"),
    "detached in a tuple": ("[]", "kept.append((i, loss.detach()))"),
    "detached, then scaled": ("[]", "kept.append(loss.detach() * 2)"),
    "compared": ("[]", "kept.append(loss > 2)"),
    "another value": ("{}", "kept[i] = x"),
    "one entry, written anew": ("{}", 'kept["loss"] = loss'),
    "a ring": ("[None] * 8", "kept[i % 8] = loss"),
    "the last ones": ("deque(maxlen=8)", "kept.append((i, loss))"),
    "emptied": ("[]", "kept.append((i, loss)); kept.clear()"),
    "emptied in part": ("[]", "kept.append((i, loss)); del kept[:-3]"),
    "made anew in each round": ("[]", "kept = []; kept.append((i, loss))"),
    "an unknown function's result": ("[]", "kept.append(summary(loss))"),
    "without gradients": ("[]", "\n        with torch.no_grad(): kept.append(loss * 2)"),
}


@pytest.mark.parametrize("case", list(HOT_USES.values()), ids=list(HOT_USES))
def test_kept_inside_of_something(case: tuple[str, str]) -> None:
    start, use = case
    check(LOOP_OF_STEPS.format(start=start, use=f"{use}  # TPF507"), PREVIEWED, only=KEPT)
    without = findings(program(LOOP_OF_STEPS.format(start=start, use=use)))
    assert not [one for one in without if "TPF507" in one]


@pytest.mark.parametrize("case", list(COLD_USES.values()), ids=list(COLD_USES))
def test_kept_without_the_graph_or_not_for_long(case: tuple[str, str]) -> None:
    start, use = case
    check(LOOP_OF_STEPS.format(start=start, use=use), PREVIEWED, only=KEPT)


def test_an_attribute_outlives_the_method() -> None:
    code = """
        class Trainer:
            def __init__(self, net: nn.Module, opt):
                self.net, self.opt = net, opt
                self.history = {}
                self.outputs = []

            def fit(self, loader):
                for step, x in enumerate(loader):
                    loss = F.mse_loss(self.net(x), x)
                    loss.backward()
                    self.opt.step()
                    self.history[step] = loss  # TPF507
                    self.outputs.append((step, loss))  # TPF507
        """
    check(code, PREVIEWED, only=KEPT)


def test_a_function_that_hands_the_loss_back() -> None:
    code = """
        def step(model, x, opt):
            loss = F.mse_loss(model(x), x)
            loss.backward()
            opt.step()
            return loss

        def train(model: nn.Module, loader, opt):
            losses = {}
            for i, x in enumerate(loader):
                loss = step(model, x, opt)
                losses[i] = loss  # TPF507
            return losses
        """
    check(code, PREVIEWED, only=KEPT)


def test_the_sum_that_backward_runs_through_needs_the_graph() -> None:
    code = """
        def train(model: nn.Module, loader, opt):
            losses = []
            for i, x in enumerate(loader):
                loss = F.mse_loss(model(x), x)
                losses.append(loss / 4)
                if i % 4 == 3:
                    sum(losses).backward()
                    opt.step()
                    losses = []
            by_step = {}
            for i, x in enumerate(loader):
                by_step[i] = F.mse_loss(model(x), x)
            torch.stack(list(by_step.values())).sum().backward()
            opt.step()
        """
    check(code, PREVIEWED, only=KEPT)


def test_the_losses_of_one_step_are_few() -> None:
    code = """
        def train(model: nn.Module, loader, tasks, opt):
            for x in loader:
                losses = {}
                for name in tasks:
                    loss = tasks[name](model(x))
                    loss.backward()
                    losses[name] = loss
                opt.step()
                log(losses)

        def step(model: nn.Module, batches, opt):
            parts = []
            for x in batches:
                loss = F.mse_loss(model(x), x)
                loss.backward()
                parts.append(loss * len(x))
            opt.step()
            return sum(parts)
        """
    check(code, PREVIEWED, only=KEPT)
