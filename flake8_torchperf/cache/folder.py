"""The place of the cache: the user's setting in, a folder out."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TORCHPERF_CACHE_DIR"
_NAME = "flake8-torchperf"


def cache_folder(chosen: Path | None) -> Path:
    """Return the folder of the option, of the environment variable, or the platform's own."""
    if chosen is not None:
        return chosen
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    from platformdirs import user_cache_path  # not needed where a folder is chosen

    return user_cache_path(_NAME, appauthor=False)
