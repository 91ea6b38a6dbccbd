"""``for t in ts: if isinf(t).any(): return True`` -> all flags in a list, and one read of them.

If it matters which of them was true, each round gets its flag from that read.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import exits, fresh_name, names_in
from flake8_torchperf.fixes.shared.loops.flags import flag_text, tensor_read
from flake8_torchperf.fixes.shared.loops.gather import Rounds, rounds_of, stays
from flake8_torchperf.fixes.shared.loops.telling import only_tells

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop that only tests, and leaves or sets constants where the test is true."""
    if not place.site.loops:
        return None
    loop = place.site.loops[-1].node
    rounds = rounds_of(place, loop)
    if not isinstance(loop, ast.For) or rounds is None or len(rounds.body) != 1:
        return None
    test = rounds.body[0]
    if not isinstance(test, ast.If) or test.orelse:
        return None
    ends = _ends(test.body, rounds)
    # The rounds are stored in a list, for which a loader's batches are too large.
    tells = only_tells(test.body, names_in([loop.iter, test.test]), place.around)
    if not ends and not (tells and stays(place, loop.iter)):
        return None
    if place.around.statement(place.site.node) is not test:
        return None
    flag = flag_text(place, test.test)
    if isinstance(tensor_read(test.test), ast.BoolOp):
        flag = flag[1:-1]  # as the only item of the list it needs no brackets
    name = fresh_name(place, loop, ("flags", "nonfinite", "found_flags"))
    torch = place.around.name_of("torch")
    if not flag or not name:
        return None
    if not ends:
        return _each(place, loop, rounds, name, flag)
    facts = {
        "list": f"{name} = {rounds.listed(flag)}",
        "test": f"{name} and {torch or 'torch'}.stack({name}).any().item()",
    }
    return Edit((loop,), facts, () if torch else ("torch",))


def _each(place: FixPlace, loop: ast.For, rounds: Rounds, flags: str, flag: str) -> Edit | None:
    """Return the edit of a loop whose rounds need their own flags."""
    every = fresh_name(place, loop, ("rounds", "every_round", "all_rounds"))
    single = fresh_name(place, loop, ("hit", "is_hit", "found"))
    torch = place.around.name_of("torch") or "torch"
    if not every or not single:
        return None
    target = f"({rounds.target})" if isinstance(loop.target, ast.Tuple) else rounds.target
    taken = rounds.listed(target) if rounds.conditions else f"list({rounds.iterable})"
    text = _EACH.format(
        rounds=every, flags=flags, flag=flag, hit=single, torch=torch, target=target, taken=taken
    ).replace("in_rounds", f"for {rounds.target} in {every}")
    return Edit((loop,), {"each": text}, () if place.around.name_of("torch") else ("torch",))


_EACH = """\
{rounds} = {taken}
{flags} = [{flag} in_rounds]
for {target}, {hit} in zip({rounds}, {torch}.stack({flags}).tolist() if {flags} else []):
    if {hit}:
        pass
"""


def _ends(block: Sequence[ast.stmt], rounds: Rounds) -> bool:
    """True if a block runs at most once, or repeats without effect, and does not use the round."""
    if names_in(block) & rounds.bound - _set_by(block):
        return False
    if exits(block):
        return not _leaves(block)
    if isinstance(block[-1], ast.Break):
        return not _leaves(block[:-1]) and len(block) > 1
    return all(map(_is_constant, block))


def _set_by(block: Sequence[ast.stmt]) -> frozenset[str]:
    """Return the names that a block sets to constants."""
    return frozenset(
        one.targets[0].id
        for one in block
        if _is_constant(one)
        and isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Name)
    )


def _is_constant(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Constant()):
            return True
    return False


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(inner, (ast.Break, ast.Continue)) for one in block for inner in ast.walk(one)
    )


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Put the list before the test, which follows the former loop."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build
    from flake8_torchperf.fixes.shared.nodes import new_statements

    (loop,) = nodes
    assert isinstance(loop, cst.For)
    test = _innermost(new_statements.statements_of(loop.body))
    if "each" in edit.facts:
        *before, again = new_statements.parsed(edit.facts["each"])
        assert isinstance(again, cst.For)
        (asked,) = new_statements.statements_of(again.body)
        asked = asked.with_changes(body=test.body)
        again = again.with_changes(body=again.body.with_changes(body=[asked]))
        return [new_statements.with_comments_of(loop, [*before, again])]
    test = test.with_changes(
        test=build.expression(edit.facts["test"]),
        body=new_statements.without_break(test.body),
        leading_lines=[],
    )
    new = [*new_statements.parsed(edit.facts["list"]), test]
    return [new_statements.with_comments_of(loop, new)]


def _innermost(body: Sequence[cst.CSTNode]) -> cst.If:
    """Return the test in a loop's body, inside or after the tests that choose rounds."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import new_statements

    last = body[-1]
    assert isinstance(last, cst.If)
    inner = new_statements.statements_of(last.body)
    if len(inner) == 1 and isinstance(inner[0], cst.If):
        return _innermost(inner)
    return last
