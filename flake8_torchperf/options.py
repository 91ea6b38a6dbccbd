"""The linter's options: flake8's namespace enters, a validated ``Options`` leaves.

Imported at every start of flake8, so kept light.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.heat import Level

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from typing import Any

    from flake8.options.manager import Option, OptionManager

SCOPES = {"loop": Level.LOOP, "hot": Level.HOT, "all": Level.COLD}
# How sure a reason must be, the surest first; `absint.domain.values.Strength` has the same names.
CONFIDENCES = ("stated", "inferred", "assumed")

# The words configparser's getboolean takes, which is what flake8's own switches accept.
_YES = frozenset({"1", "yes", "true", "on"})
_NO = frozenset({"0", "no", "false", "off", ""})
UNSET = "unset"


class OptionError(ValueError):
    """An option that can't be used. The text is one line: what, where, what to do."""


@dataclass(frozen=True)
class Options:
    """What a person chose, checked.

    ``scope`` is the coldest level that is still reported, ``confidence`` (one of `CONFIDENCES`) the
    weakest reason that still supports a finding. ``hot`` and ``cold`` are globs over
    qualified function names; ``rules`` are existing folders with further rule pages and
    conventions, absolute.
    ``cache`` is None where nobody chose. ``assume_compiled`` counts every module's ``forward`` as
    compiled. ``baseline`` is the file that lists old findings. Every field pickles, since flake8
    may lint in other processes.
    """

    scope: Level = Level.HOT
    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    explain: bool = False
    rules: tuple[Path, ...] = ()
    cache: bool | None = None
    cache_folder: Path | None = None
    assume_compiled: bool = False
    confidence: str = "inferred"
    baseline: Path | None = None


def add_options(parser: OptionManager) -> None:
    """Register the options with flake8.

    Checks are left to `from_namespace`: values from a configuration file become argparse defaults,
    whose ``choices`` argparse never looks at, and flake8 reads a ``store_true`` option with
    ``getboolean``, which ends in a traceback where the value is neither true nor false.
    """
    parser.add_option(
        "--torchperf-scope",
        default="hot",
        metavar="{loop,hot,all}",
        parse_from_config=True,
        help="what to report: only inside loops; hot code, which is loops, functions that run "
        "every step and functions that compute on the tensors they are given; or cold code "
        "too (Default: hot)",
    )
    parser.add_option(
        "--torchperf-confidence",
        default="inferred",
        metavar="{stated,inferred,assumed}",
        parse_from_config=True,
        help="why a value must be known to be a tensor: its type is stated by an annotation, a "
        "docstring or torch itself; or inferred from how it is used too; or assumed by "
        "convention too (Default: inferred)",
    )
    _add_function_options(parser)
    parser.add_option(
        "--torchperf-explain",
        action="store_const",
        const="true",
        default="false",
        parse_from_config=True,
        help="append to each message why the value is known to be a tensor; in scope all also what "
        "hides the finding by default, as far as its own file tells",
    )
    parser.add_option(
        "--torchperf-rules",
        default="",
        metavar="folders",
        parse_from_config=True,
        comma_separated_list=True,
        normalize_paths=True,
        help="folders with rule pages and a conventions.toml of your own, e.g. ./perf-rules",
    )
    parser.add_option(
        "--torchperf-baseline",
        default="",
        metavar="file",
        parse_from_config=True,
        normalize_paths=True,
        help="leave out what this file lists; torchperf check --write-baseline writes it",
    )
    _add_cache_options(parser)
    for name in _PATHS:
        _normalise_only_text(parser.config_options_dict[name])


# The options whose values flake8 takes as relative to the configuration file.
_PATHS = ("torchperf_rules", "torchperf_cache_dir", "torchperf_baseline")


def _normalise_only_text(option: Option) -> None:
    """Let flake8 make paths of texts alone, for numbers and tables end it with a traceback.

    pyproject.toml holds such; they come to `from_namespace` as they are, which objects to them.
    """
    normalize = option.normalize

    def normalise(value: Any, *folder: str) -> Any:
        if isinstance(value, str) or _texts(value) is not None:
            return normalize(value, *folder)
        return value

    option.normalize = normalise  # type: ignore[method-assign]


def _add_function_options(parser: OptionManager) -> None:
    parser.add_option(
        "--torchperf-hot",
        default="",
        metavar="globs",
        parse_from_config=True,
        comma_separated_list=True,
        help="further functions that run every step, e.g. execute_model,Engine.*",
    )
    parser.add_option(
        "--torchperf-cold",
        default="",
        metavar="globs",
        parse_from_config=True,
        comma_separated_list=True,
        help="functions to treat as cold, e.g. *_debug,Trainer.report",
    )
    parser.add_option(
        "--torchperf-assume-compiled",
        action="store_const",
        const="true",
        default="false",
        parse_from_config=True,
        help="treat every module's forward as compiled, as where torch.compile is called elsewhere",
    )


def _add_cache_options(parser: OptionManager) -> None:
    parser.add_option(
        "--torchperf-cache",
        action="store_const",
        const="true",
        default=UNSET,
        parse_from_config=True,
        help="remember findings, and look again only where something changed (Default: off; on in "
        "torchperf check)",
    )
    parser.add_option(
        "--no-torchperf-cache",
        action="store_const",
        const="false",
        default=UNSET,
        dest="torchperf_cache",
        help="remember nothing",
    )
    parser.add_option(
        "--torchperf-cache-dir",
        default="",
        metavar="folder",
        parse_from_config=True,
        normalize_paths=True,
        help="where to remember (Default: the platform's cache folder; torchperf cache shows it)",
    )


def from_namespace(namespace: argparse.Namespace) -> Options:
    """Check what flake8 parsed.

    Raises `OptionError` with a single line where a value can't be used.
    """
    hot = _globs("--torchperf-hot", namespace.torchperf_hot)
    cold = _globs("--torchperf-cold", namespace.torchperf_cold)
    for pattern in hot:
        if pattern in cold:
            raise OptionError(
                f"--torchperf-hot and --torchperf-cold both name {pattern!r}: keep it in one"
            )
    return Options(
        scope=SCOPES[_word("--torchperf-scope", namespace.torchperf_scope, SCOPES)],
        confidence=_word("--torchperf-confidence", namespace.torchperf_confidence, CONFIDENCES),
        hot=hot,
        cold=cold,
        explain=_switch("--torchperf-explain", namespace.torchperf_explain),
        rules=_folders(namespace.torchperf_rules),
        cache=_cache(namespace.torchperf_cache),
        cache_folder=_cache_folder(namespace.torchperf_cache_dir),
        baseline=_baseline(namespace.torchperf_baseline),
        assume_compiled=_switch("--torchperf-assume-compiled", namespace.torchperf_assume_compiled),
    )


def _word(option: str, value: object, known: Iterable[str]) -> str:
    """One of the known words."""
    text, words = str(value), list(known)
    if text.strip() not in words:
        import difflib  # only where there is a mistake to report

        near = difflib.get_close_matches(text.strip().lower(), words, n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"{option}: {text!r} is not one of {', '.join(words)}{hint}")
    return text.strip()


def _texts(value: object) -> tuple[str, ...] | None:
    """The items of a list of texts; None where it is something else, as pyproject.toml can hold."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    return None


def _listed(option: str, value: object, example: str) -> tuple[str, ...]:
    """The texts that an option lists."""
    texts = _texts(value)
    if texts is None:
        raise OptionError(f"{option}: {value!r} is no list of texts; write for example {example}")
    return texts


def _globs(option: str, value: object) -> tuple[str, ...]:
    patterns = _listed(option, value, '["execute_model", "Engine.*"]')
    if patterns:
        from flake8_torchperf.findings.globs import problem_with  # few people name any

        for problem in filter(None, map(problem_with, patterns)):
            raise OptionError(f"{option}: {problem}")
    return patterns


def _switch(option: str, value: object) -> bool:
    word = str(value).strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise OptionError(f"{option}: {value!r} is neither true nor false")


def _cache(value: object) -> bool | None:
    return None if value == UNSET else _switch("--torchperf-cache", value)


def _cache_folder(name: object) -> Path | None:
    option = "--torchperf-cache-dir"
    if not isinstance(name, str):
        raise OptionError(f"{option}: {name!r} is no path; write for example './remembered'")
    if not name:
        return None
    folder = _path(option, name)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{option}: {folder} is a file; name a folder")
    return folder


def _baseline(name: object) -> Path | None:
    option = "--torchperf-baseline"
    if not isinstance(name, str):
        raise OptionError(f"{option}: {name!r} is no path; write for example './baseline.json'")
    return _path(option, name) if name else None


def _path(option: str, name: str) -> Path:
    """The absolute path of a file or folder that there may be."""
    try:
        path = Path(name).resolve()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        # Too long, a link that leads to itself, a null byte.
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"{option}: {name!r} can be no path: {reason}") from None
    return path


def _folders(value: object) -> tuple[Path, ...]:
    option = "--torchperf-rules"
    names = _listed(option, value, '["./perf-rules"]')
    folders = tuple(_path(option, name) for name in names)
    for folder in folders:
        if not folder.exists():
            raise OptionError(f"{option}: there is no folder {folder}")
        if not folder.is_dir():
            raise OptionError(f"{option}: {folder} is a file; name the folder it is in")
    if folders:
        check_rules(option, folders)
    return folders


def check_rules(option: str, folders: tuple[Path, ...]) -> None:
    """Read pages and conventions now: a mistake is said once, and not for every linted file.

    Raises `OptionError` with a single line that begins with ``option``.
    """
    from flake8_torchperf.findings.catalogue import CatalogueError, load_catalogue
    from flake8_torchperf.knowledge.conventions import ConventionError, load_conventions

    try:
        load_catalogue(folders)
        load_conventions(folders)
    except (CatalogueError, ConventionError) as error:
        raise OptionError(f"{option}: {error}") from error
