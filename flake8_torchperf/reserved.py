"""Codes that no rule page may use. Imported at every start, so it imports nothing."""

from __future__ import annotations

# The linter itself failed in a file.
INTERNAL_ERROR = "TPF900"
# A comment begins like a contract but states none.
STRAY_CONTRACT = "TPF901"
# A ``# noqa`` with codes of this linter silences nothing (``check --unused-noqa``).
UNUSED_NOQA = "TPF902"
RESERVED = {
    INTERNAL_ERROR: "files that cannot be analysed",
    STRAY_CONTRACT: "contracts that apply to nothing",
    UNUSED_NOQA: "comments that silence nothing",
}
