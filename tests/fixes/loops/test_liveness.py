"""Whether the value that a loop leaves in its variable is read later."""

from __future__ import annotations

import ast
import textwrap

from fixing import rows

from flake8_torchperf.fixes.shared.liveness import read_after

# The loop asked about is the one over `ps`.
PROGRAMS = {
    "never used": ("for p in ps: pass", False),
    "read behind it": ("for p in ps: pass\nprint(p)", True),
    "bound, then read": ("for p in ps: pass\np = 1\nprint(p)", False),
    "bound in one branch": ("for p in ps: pass\nif a:\n  p = 1\nprint(p)", True),
    "bound in both branches": (
        "for p in ps: pass\nif a:\n  p = 1\nelse:\n  p = 2\nprint(p)",
        False,
    ),
    "a branch that returns": (
        "for p in ps: pass\nif a:\n  p = 1\nelse:\n  return\nprint(p)",
        False,
    ),
    "added to": ("for p in ps: pass\np += 1", True),
    "deleted": ("for p in ps: pass\ndel p", True),
    "bound by a loop": ("for p in ps: pass\nfor p in qs:\n  print(p)\nprint(p)", False),
    "iterated by a loop": ("for p in ps: pass\nfor p in p:\n  print(p)", True),
    "bound by a comprehension": ("for p in ps: pass\nx = [p for p in qs]", False),
    "iterated by a comprehension": ("for p in ps: pass\nx = [p for p in p]", True),
    "read in a later function": ("for p in ps: pass\ndef f():\n  return p", True),
    "a parameter of a function": ("for p in ps: pass\ndef f(p):\n  return p", False),
    "bound in the next round": ("for q in qs:\n  p = q\n  print(p)\n  for p in ps: pass", False),
    "read in the next round": ("for q in qs:\n  print(p)\n  for p in ps: pass", True),
    "read after continue": (
        "for q in qs:\n  print(p)\n  for p in ps: pass\n  if q:\n    continue\n  p = 1",
        True,
    ),
    "read after break": (
        "for q in qs:\n  for p in ps: pass\n  if q:\n    break\n  p = 1\nprint(p)",
        True,
    ),
    "read by while": ("while p:\n  for p in ps: pass", True),
    "bound by while": ("for p in ps: pass\nwhile a:\n  p = 1\n  print(p)", False),
    "read where an error is caught": (
        "try:\n  for p in ps: pass\n  p = f()\nexcept E:\n  print(p)",
        True,
    ),
    "bound where an error is caught": (
        "try:\n  for p in ps: pass\nexcept E:\n  p = 1\nprint(p)",
        True,
    ),
    "read in finally": ("try:\n  for p in ps: pass\nfinally:\n  print(p)", True),
    "bound in with": ("for p in ps: pass\nwith a:\n  p = 1\nprint(p)", False),
    "a case binds": ("for p in ps: pass\nmatch a:\n  case 1:\n    p = 1\nprint(p)", True),
    "in a class": ("class A:\n  for p in ps: pass", True),
    "declared global": ("global p\nfor p in ps: pass", True),
}


@rows(PROGRAMS)
def test_a_name_is_read_after_its_loop(row: tuple[str, bool]) -> None:
    code, read = row
    (function,) = ast.parse(f"def f(ps, qs, a):\n{textwrap.indent(code, '  ')}").body
    assert isinstance(function, ast.FunctionDef)
    loops = [one for one in ast.walk(function) if isinstance(one, ast.For)]
    (loop,) = (one for one in loops if ast.unparse(one.iter) == "ps")
    assert read_after("p", loop, function.body) is read
