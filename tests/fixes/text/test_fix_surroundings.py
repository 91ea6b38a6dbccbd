"""The node around a node is found whatever was asked before, and wherever statements begin."""

from __future__ import annotations

import ast
import random

import pytest

from flake8_torchperf.fixes.engine.surroundings import Surroundings
from flake8_torchperf.project.module_index import read_module

TEXT = """\
import torch; x = (1,
    2); y = 3
@torch.no_grad()
@torch.inference_mode(
    mode=True)
def f(a, *, b=[i for i in range(3) if i]):
    with a as c: return c
class A:
    def g(self): return lambda: self
z = [
    4]; w = z
"""


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_one_of_the_tree(seed: int) -> None:
    tree = ast.parse(TEXT)
    around = Surroundings(read_module(tree, tuple(TEXT.splitlines(keepends=True)), None))
    pairs = [(child, node) for node in ast.walk(tree) for child in ast.iter_child_nodes(node)]
    # One object stands for every `Load()` and every operator.
    pairs = [(c, n) for c, n in pairs if not isinstance(c, (ast.expr_context, ast.operator))]
    random.Random(seed).shuffle(pairs)
    for child, node in pairs:
        assert around.parent(child) is node
        assert around.holds(child)
    assert not around.holds(ast.parse("1").body[0])
