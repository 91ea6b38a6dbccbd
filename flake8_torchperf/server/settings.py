"""Settings that an editor sends, and stamps of the files that configure a folder.

A process is replaced when one of them changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flake8_torchperf.configuration import near
from flake8_torchperf.options import SETTINGS, OptionError, Options, from_values
from flake8_torchperf.project.files import stamp

if TYPE_CHECKING:
    from collections.abc import Iterable

# The section of an editor's settings that is ours.
SECTION = "torchperf"


def stamps(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return a stamp of each file, which changes when the file does."""
    return {path: stamp(path) for path in paths}


def sent(settings: object) -> dict[str, object] | None:
    """Return the settings below ``torchperf`` in what an editor sent; None if it sent none.

    Settings that are null count as not set. Raises `OptionError` with a single line for an unknown
    name, and for values that are wrong in every folder.
    """
    if not isinstance(settings, Mapping) or SECTION not in settings:
        return None
    ours = settings[SECTION]
    if ours is None:
        return {}
    if not isinstance(ours, Mapping):
        raise OptionError(f"{SECTION}: {ours!r} is no table of settings")
    known = {one.name: one for one in SETTINGS}
    values: dict[str, object] = {}
    for key, value in ours.items():
        name = str(key).replace("_", "-")
        if name not in known:
            raise OptionError(f"{SECTION} has no setting {key!r}{near(str(key))}")
        if value is not None:
            values[name] = value
    # The folder decides which files the paths mean.
    used({name: value for name, value in values.items() if not known[name].path}, Options())
    return values


def used(values: Mapping[str, object], base: Options) -> Options:
    """Return ``base`` with an editor's settings, paths relative to the current folder.

    Raises `OptionError` with a single line.
    """
    return from_values(values, base, lambda name: f"{SECTION}.{name}")
