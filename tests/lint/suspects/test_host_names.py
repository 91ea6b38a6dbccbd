"""A name lies on the host only if every statement that binds it gives it a host value."""

import ast

import pytest

from flake8_torchperf.syntax.host_expressions import host_names
from flake8_torchperf.syntax.traversal import Nodes

BINDING = {
    "a loop": "for found in batches:\n    pass",
    "an asynchronous loop": "async def f():\n    async for found in batches:\n        pass",
    "a comprehension": "kept = [found for found in batches]",
    "a with statement": "with opened() as found:\n    pass",
    "a pattern": "match batches:\n    case [found]:\n        pass",
    "a starred pattern": "match batches:\n    case [*found]:\n        pass",
    "a walrus": "print(found := batches)",
    "an unpacking": "found, other = batches",
}


@pytest.mark.parametrize("code", BINDING.values(), ids=BINDING)
def test_name_bound_twice(code):
    assert "found" in host_names(None, Nodes(ast.parse("found = False").body))
    both = ast.parse(f"found = False\n{code}").body
    assert "found" not in host_names(None, Nodes(both))
