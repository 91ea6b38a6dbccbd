"""How the tests start a program that they interrupt."""

from __future__ import annotations

import signal


def hear_ctrl_c() -> None:
    """Give a child the default action for SIGINT; for ``preexec_fn``.

    A shell starts what it puts in the background with SIGINT ignored, as `nohup` and scripts do, and
    children inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
