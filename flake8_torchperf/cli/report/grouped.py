"""``--format grouped``: findings by file and function, with how many of each family there are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.reported import Gathered, rules
from flake8_torchperf.history.finding_record import MODULE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flake8_torchperf.cli.report.reported import Reported
    from flake8_torchperf.findings.rule import Rule

# Singular and plural by family; other families, from a user's own pages, are called "findings".
_NOUNS = {
    "host reads": ("read", "reads"),
    "per-element loops": ("per-element loop", "per-element loops"),
    "data-dependent control flow": ("branch on a tensor", "branches on tensors"),
    "dynamic shapes": ("dynamic shape", "dynamic shapes"),
    "transfers and training loops": ("transfer or loop cost", "transfers and loop costs"),
    "compiled code": ("problem in compiled code", "problems in compiled code"),
}
_FINDING = ("finding", "findings")


class Report(Gathered):
    """Text for people."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return a block for each file, files and functions in the order of their first finding."""
        known = rules()
        blocks = []
        by_file: dict[str, list[Reported]] = {}
        for one in found:
            by_file.setdefault(one.path, []).append(one)
        for path, in_file in by_file.items():
            by_function: dict[str, list[Reported]] = {}
            for one in in_file:
                by_function.setdefault(one.told.function, []).append(one)
            lines = [path]
            for function, ones in by_function.items():
                where = "at module level" if function == MODULE else f"in {function}"
                lines.append(f"  {counted(ones, known)} {where}")
                lines += [f"    {o.line}:{o.column}: {o.code} {o.message}" for o in ones]
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)


def counted(ones: Iterable[Reported], known: Mapping[str, Rule]) -> str:
    """Return the number of findings of each family, as in "5 reads, 1 dynamic shape"."""
    families = Counter(_noun(one.code, known) for one in ones)
    return ", ".join(f"{n} {one if n == 1 else many}" for (one, many), n in families.items())


def _noun(code: str, known: Mapping[str, Rule]) -> tuple[str, str]:
    rule = known.get(code)
    return _NOUNS.get(rule.family, _FINDING) if rule is not None else _FINDING
