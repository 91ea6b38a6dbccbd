"""The module that programs import: regions that may wait, and regions to record. Imports no torch.

The linter and the tools for tests are in `flake8_torchperf`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flake8_torchperf.runtime.allowed_regions import allow_sync

if TYPE_CHECKING:
    from flake8_torchperf.cli.region.cell_magic import load_ipython_extension
    from flake8_torchperf.cli.region.recording import Recorded, RecordingError, recording

__all__ = ["Recorded", "RecordingError", "allow_sync", "load_ipython_extension", "recording"]


def __getattr__(name: str) -> Any:
    """Import what records when it is first asked for: programs that record nothing start fast."""
    if name == "load_ipython_extension":
        from flake8_torchperf.cli.region import cell_magic

        return cell_magic.load_ipython_extension
    if name in ("Recorded", "RecordingError", "recording"):
        from flake8_torchperf.cli.region import recording as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
