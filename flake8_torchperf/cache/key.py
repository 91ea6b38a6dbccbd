"""One digest of all that the findings of a whole run depend on.

Findings follow from the linter itself (its code, torch table and rule pages), the options and
Python. What differs from file to file is in `memory.py`. This module must not import what it
fingerprints: on a hit the interpreter is never loaded.
"""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf import __version__
from flake8_torchperf.digest import digest, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.options import Options

# Parts of the package that no finding depends on.
_NOT_LINTING = frozenset({"runtime", "__pycache__"})
_CONTENT = (".py", ".json", ".toml", ".md")
# Options that decide where and whether to cache and what to leave out, but not what is found.
_NOT_ABOUT_FINDINGS = frozenset({"cache", "cache_folder", "baseline"})


def conditions(options: Options, more: Iterable[str] = ()) -> str:
    """Return the digest of all that is the same for every file of a run.

    ``more`` lists other things that the stored rows depend on. The digest covers the linter's
    content, not only its version: a checkout under development has one version for a long time.
    """
    chosen = [
        f"{field.name}={getattr(options, field.name)!r}"
        for field in fields(options)
        if field.name not in _NOT_ABOUT_FINDINGS
    ]
    pages = [_pages(folder) for folder in options.rules]
    if options.profile is not None:
        from flake8_torchperf.history.profile import fingerprint

        chosen.append(fingerprint(options.profile))
    python = f"{sys.implementation.cache_tag} {sys.version}"
    return digest_of([__version__, _linter(), python, *chosen, "pages", *pages, "more", *more])


@cache
def _linter() -> str:
    """Return the digest of our code, table and pages: two hundred files, a few milliseconds."""
    package = Path(__file__).resolve().parents[1]
    parts: list[str] = []
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(set(folders) - _NOT_LINTING)
        for name in sorted(names):
            if name.endswith(_CONTENT):
                path = os.path.join(folder, name)
                parts += [os.path.relpath(path, package), digest(Path(path).read_bytes())]
    # In a checkout the pages lie next to the package (see findings/catalogue.py).
    if not (package / "rules").is_dir():
        parts.append(_pages(package.parent / "rules"))
    return digest_of(parts)


# A file that a folder of rules may hold besides its pages; not imported, see above.
_CONVENTIONS = "conventions.toml"


def _pages(folder: Path) -> str:
    """Return the digest of the rule pages and the conventions in a folder."""
    parts: list[str] = []
    for path in sorted((*folder.glob("*.md"), *folder.glob(_CONVENTIONS))):
        parts += [path.name, digest(path.read_bytes())]
    return digest_of(parts)
