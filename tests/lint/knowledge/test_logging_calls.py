"""Values that are read to be logged: found by where they go, with advice and a switch of their own."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from check_run import check
from linting import lint

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.findings.message import LOG_SELDOM
from flake8_torchperf.knowledge.logging_calls import READING_FUNCTIONS, READING_METHODS
from flake8_torchperf.options import Options

PRELUDE = """\
import logging
import math
import mlflow
import numpy as np
import torch
import wandb
from math import log
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

LOG = logging.getLogger(__name__)


def train_step(model: torch.nn.Module, x: torch.Tensor, writer, run, bar, step, self):
    loss = model(x).mean()
    loss.backward()
"""

LOGGED = [
    "print(loss.item())",
    "print(f'loss {loss.item():.3f}')",
    "print('loss', float(loss))",
    "print(x.detach().cpu())",
    "print(x)",
    "LOG.info('loss %s', loss)",
    "logging.warning('loss %s', loss.item())",
    "wandb.log({'loss': loss.item()}, step=step)",
    "wandb.log(dict(loss=loss.item() / 2))",
    "mlflow.log_metric('loss', loss.item())",
    "tqdm.write(str(loss.item()))",
    "writer.add_scalar('loss', loss.item(), step)",
    "SummaryWriter().add_scalars('loss', {'a': loss.item()})",
    "self.logger.experiment.add_scalar('loss', loss.item())",
    "run.log({'loss': loss.item()})",
    "bar.set_postfix(loss=loss.item())",
    "bar.set_description(f'{loss.item()}')",
    "value = loss.item()\nprint(value)",
    "value: float = loss.item()\nhalf = value / 2\nbar.set_postfix(loss=half)",
    "logs = {'loss': loss.item()}\nwandb.log(logs)",
    "logs = {}\nlogs['loss'] = loss.item()\nwandb.log(logs)",
    "print(max(x))",
]
NOT_LOGGED = [
    "return loss.item()",
    "value = loss.item()\nprint(value)\nreturn value",
    "logs = {'loss': loss.item()}\nwandb.log(logs)\nreturn logs",
    "logs = {}\nlogs['loss'] = loss.item()\nwandb.log({})\nreturn logs['loss']",
    "y = math.log(loss.item())",
    "y = log(loss.item())",
    "y = np.log(loss.item())",
    "global value\nvalue = loss.item()\nprint(value)",
    "self.print_loss(loss.item())",
    "value = loss.item()\nif value > 3:\n    print(value)",
]


def linted(code: str, logging: str = "report") -> list[Finding]:
    source = PRELUDE + indent(code, "    ") + "\n"
    return lint(source, "model.py", Options(logging=logging))


def found(code: str, logging: str = "report") -> list[str]:
    return [one.message for one in linted(code, logging)]


@pytest.mark.parametrize("code", LOGGED)
def test_what_is_only_logged_has_advice_of_its_own_and_can_be_left_out(code: str) -> None:
    messages = found(code)
    assert [message.endswith(LOG_SELDOM) for message in messages] == [True]
    assert found(code, "ignore") == []


@pytest.mark.parametrize("code", NOT_LOGGED)
def test_what_is_used_elsewhere_is_an_ordinary_read(code: str) -> None:
    messages = found(code)
    assert messages
    assert not any(LOG_SELDOM in message for message in messages)
    assert found(code, "ignore") == messages


@pytest.mark.parametrize("method", sorted(READING_METHODS))
def test_each_method_of_the_table_that_reads_is_told(method: str) -> None:
    messages = found(f"writer.{method}('loss', loss)")
    assert [message.endswith(LOG_SELDOM) for message in messages] == [True]


@pytest.mark.parametrize("function", sorted(READING_FUNCTIONS))
def test_each_function_of_the_table_that_reads_is_told(function: str) -> None:
    messages = found(f"import {function.partition('.')[0]}\n{function}('loss', loss)")
    assert [message.endswith(LOG_SELDOM) for message in messages] == [True]


def test_reads_in_a_row_are_logged_if_all_are() -> None:
    logged, _ = linted("wandb.log({'a': loss.item(), 'b': float(loss)})")
    assert logged.lead.endswith(LOG_SELDOM)
    logged, other = linted("print(loss.item())\nreturn loss.tolist()")
    assert logged.message.endswith(LOG_SELDOM)
    assert LOG_SELDOM not in logged.lead + other.message
    (other,) = linted("print(loss.item())\nreturn loss.tolist()", "ignore")
    assert not other.row


def test_work_that_logging_repeats_is_no_read() -> None:
    """A mask's size, and a loop over elements, wait for other reasons than the log."""
    assert [LOG_SELDOM in message for message in found("print(x[x > 0].shape)")] == [False]
    messages = found("print([one.shape for one in x])")
    assert [LOG_SELDOM in message for message in messages] == [False]


def test_compiled_code_is_told_as_such() -> None:
    source = (
        "import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    print(x.sum().item())\n"
    )
    codes = {one.code for one in lint(source, "m.py", Options(logging="ignore"))}
    assert codes
    assert all(code.startswith("TPF6") for code in codes)


def test_the_switch_is_a_setting(tmp_path: Path) -> None:
    source = PRELUDE + "    wandb.log({'loss': loss.item()})\n"
    (tmp_path / "model.py").write_text(source, encoding="utf-8")
    assert check(cwd=tmp_path).status == 1
    assert check("--logging=ignore", cwd=tmp_path).status == 0
    (tmp_path / "pyproject.toml").write_text("[tool.torchperf]\nlogging = 'ignore'\n")
    assert check(cwd=tmp_path, isolated=False).status == 0
    run = check("--logging=ignroe", cwd=tmp_path)
    assert run.status == 2
    assert "'ignroe' is not one of report, ignore, did you mean 'ignore'?" in run.errors
