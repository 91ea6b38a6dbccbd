"""Codes that no rule page may take. Light, as every start imports it."""

from __future__ import annotations

# The linter itself failed in a file.
INTERNAL_ERROR = "TPF900"
# A comment begins as that of a contract and states none.
STRAY_CONTRACT = "TPF901"
# A comment of this linter's codes silences nothing (``check --unused-noqa``).
UNUSED_NOQA = "TPF902"
RESERVED = {
    INTERNAL_ERROR: "files that cannot be analysed",
    STRAY_CONTRACT: "contracts that apply to nothing",
    UNUSED_NOQA: "comments that silence nothing",
}
