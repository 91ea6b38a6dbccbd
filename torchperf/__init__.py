"""The module that programs import: regions that may wait for the device. Imports no torch.

The linter and the tools for tests are in `flake8_torchperf`.
"""

from __future__ import annotations

from flake8_torchperf.runtime.allowed_regions import allow_sync

__all__ = ["allow_sync"]
