"""The command that starts a process of ours in a folder of the user's."""

from __future__ import annotations

import sys


def own_command(module: str, *words: str) -> list[str]:
    """Return the command that calls ``main()`` of one of our modules, with ``words`` to read.

    Nothing is imported from the current folder, which is the user's: it may hold a ``json.py``.
    """
    start = (
        "import sys; sys.path[:] = [place for place in sys.path if place]; "
        f"from {module} import main; sys.exit(main())"
    )
    return [sys.executable, "-c", start, *words]
