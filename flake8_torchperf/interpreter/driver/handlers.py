"""Fills the tables of `engine.dispatch` with the handlers for syntax and values."""

from __future__ import annotations

import ast

from flake8_torchperf.interpreter.calls import call_dispatch, instances, members
from flake8_torchperf.interpreter.engine import dispatch
from flake8_torchperf.interpreter.events.guards import after_leaving
from flake8_torchperf.interpreter.transfer import (
    attributes,
    comprehensions,
    expressions,
    operators,
    statements,
    subscripts,
)
from flake8_torchperf.values.values import Instance


def fill_tables() -> None:
    """Fill the tables; nothing can be evaluated before that."""
    dispatch.EXPRESSIONS.update(expressions.EXPRESSION_HANDLERS)
    dispatch.EXPRESSIONS.update(
        {
            ast.Attribute: attributes.attribute,
            ast.Call: call_dispatch.call,
            ast.Subscript: subscripts.subscript,
            ast.Compare: operators.comparison,
            ast.ListComp: comprehensions.comprehension,
            ast.SetComp: comprehensions.comprehension,
            ast.GeneratorExp: comprehensions.comprehension,
            ast.DictComp: comprehensions.dict_comprehension,
        }
    )
    dispatch.SIMPLE.update(statements.SIMPLE_HANDLERS)
    dispatch.COMPOUND.update(statements.COMPOUND_HANDLERS)
    dispatch.COMPOUND.update(statements.LEAVING_HANDLERS)
    dispatch.FOLLOWING[ast.If] = after_leaving
    dispatch.CALLABLES.update(call_dispatch.CALL_HANDLERS)
    dispatch.MEMBERS.update(members.MEMBER_HANDLERS)
    dispatch.MEMBERS[object] = members.of_any
    dispatch.ITEMS[Instance] = instances.container_item
    dispatch.ITERATED[Instance] = instances.iterated
