"""Decides whose lines count: turns `--owner` into the counter's test of file names.

Names of packages are looked up without importing them.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from flake8_torchperf.runtime.counting.user_frames import owner_predicate

_NOT_OURS = frozenset({"site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox"})


class OwnerError(ValueError):
    """A file, folder or package that `--owner` names does not exist. The text is one line."""


def owner_paths(name: str) -> list[Path]:
    """Return the files or folders of an existing path or of an installed package (`torchmetrics`).

    A dotted name is looked up as a folder or file inside its first package. Raises `OwnerError`.
    """
    path = Path(name)
    if path.exists():
        return [path.resolve()]
    first, *rest = name.split(".")
    try:
        spec = find_spec(first) if first.isidentifier() else None
    except (ImportError, ValueError):
        spec = None  # A package without a location cannot be owned.
    if spec is not None:
        roots = [Path(one) for one in spec.submodule_search_locations or [] if Path(one).is_dir()]
        if not roots and spec.origin and Path(spec.origin).is_file():
            roots = [Path(spec.origin)]
        inside = [root.joinpath(*rest) for root in roots]
        found = [one for one in inside if one.exists()]
        found += [one.with_suffix(".py") for one in inside if one.with_suffix(".py").exists()]
        if found:
            return [one.resolve() for one in found]
    raise OwnerError(f"--owner: {name} is no file, folder or installed package")


def is_installed_command(script: str) -> bool:
    """True if an installed package put a script where the shell finds it: `torchrun`."""
    folder = os.path.dirname(os.path.realpath(script))
    return folder == os.path.realpath(sysconfig.get_path("scripts"))


def owner_of(named: Sequence[str], defaults: Sequence[str]) -> Callable[[str], bool]:
    """Return the test of file names: for the named owners, or else the default folders.

    Under the default folders, installed packages do not count, even in an environment kept there.
    """
    if named:
        return owner_predicate([one for name in named for one in owner_paths(name)])
    usual = owner_predicate(None)
    under = owner_predicate(list(defaults))

    def owns(filename: str) -> bool:
        if filename.startswith("<") or not (usual(filename) and under(filename)):
            return False
        return _NOT_OURS.isdisjoint(os.path.realpath(filename).split(os.sep))

    return owns
