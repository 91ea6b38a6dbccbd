"""What the generator's parts hand to each other: signatures before they become overload strings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flake8_torchperf.knowledge.returns import UNKNOWN, Return, render_return


@dataclass(frozen=True)
class Parameter:
    """One parameter; `types` holds the alternatives of a union, best known first."""

    name: str
    types: tuple[str, ...]
    optional: bool = False
    form: str = "positional"  # positional | keyword | variadic | keywords


@dataclass(frozen=True)
class Signature:
    """One way to call something, and the return its annotation names (Unknown where there is none)."""

    parameters: tuple[Parameter, ...]
    returns: Return = UNKNOWN

    def without_first(self) -> Signature:
        """The signature as seen by the caller of a bound method."""
        return replace(self, parameters=self.parameters[1:])

    def expanded(self) -> list[Signature]:
        """One signature per alternative of its first union; further unions become unknown (`x`)."""
        at = next((i for i, p in enumerate(self.parameters) if len(p.types) > 1), None)
        if at is None:
            return [self]
        rest = tuple(
            replace(p, types=p.types if len(p.types) == 1 else ("x",)) for p in self.parameters
        )
        return [
            replace(self, parameters=(*rest[:at], replace(rest[at], types=(kind,)), *rest[at + 1 :]))
            for kind in self.parameters[at].types
        ]

    def text(self) -> str:
        """The overload string of INTERFACES: `PARAMS->RETURN`."""
        parts: list[str] = []
        keyword_only = False
        for p in self.parameters:
            kind = p.types[0] if len(p.types) == 1 else "x"
            if p.form == "variadic":
                keyword_only = True
                parts.append(f"*{p.name}:{kind}")
            elif p.form == "keywords":
                parts.append(f"**{p.name}:{kind}")
            else:
                if p.form == "keyword" and not keyword_only:
                    keyword_only = True
                    parts.append("*")
                parts.append(f"{p.name}:{kind}{'=' if p.optional else ''}")
        return f"{','.join(parts)}->{render_return(self.returns)}"


@dataclass
class Entry:
    """What the table will say of one function or method, before it is written."""

    signatures: list[Signature] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    unless: set[str] = field(default_factory=set)
    only_with: set[str] = field(default_factory=set)
    why: str = ""

    def data(self) -> str | list[str] | dict[str, object]:
        """The JSON form: always an object for torch's functions and methods."""
        texts = list(dict.fromkeys(sig.text() for sig in self.signatures))
        result: dict[str, object] = {"r": texts}
        if self.flags:
            result["f"] = "".join(sorted(self.flags))
        if self.unless:
            result["u"] = sorted(self.unless)
        if self.only_with:
            result["w"] = sorted(self.only_with)
        if self.why:
            result["why"] = self.why
        if len(result) == 1:
            return texts[0] if len(texts) == 1 else texts
        return result
