"""The reasons for which a count of 0 does not refute a finding."""

from __future__ import annotations

from flake8_torchperf.values.site import SiteKind

IN_DATA_WORKERS = "it ran in workers of a DataLoader only, where tensors are the host's as a rule"


def unshown(kind: SiteKind, counter: str) -> str:
    """Return why a count of 0 refutes no finding of this kind; "" where it does."""
    if kind is SiteKind.MODULE_MOVE:
        return "nothing was copied, and the walk over the parameters is not counted"
    if counter == "early_reads":
        return "the copy had arrived when it was read, this time"
    return ""
