"""The linter's options: flake8's namespace in, a validated ``Options`` out.

Imported at every start of flake8, so it imports little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.findings.chosen import Chosen
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from flake8.options.manager import Option, OptionManager

SCOPE_LEVELS = {"loop": Level.LOOP, "hot": Level.HOT, "all": Level.COLD}
# How strong a reason must be, the strongest first; `values.provenance.Strength` has these names.
CONFIDENCES = ("stated", "inferred", "assumed")
# How to treat reads of values that are only logged.
LOGGING = ("report", "ignore")

# The words configparser's getboolean takes, which is what flake8's own switches accept.
_YES = frozenset({"1", "yes", "true", "on"})
_NO = frozenset({"0", "no", "false", "off", ""})


NAN = float("nan")


class OptionError(ValueError):
    """An option that can't be used. The text is one line: what, where, what to do."""


@dataclass(frozen=True)
class Options:
    """The user's options, checked.

    ``scope`` is the coldest level that is still reported, ``confidence`` (one of `CONFIDENCES`) the
    weakest reason that still supports a finding. ``hot``, ``cold`` and ``sync_free`` are globs over
    qualified function names; ``rules`` are existing folders with further rule pages and
    conventions, absolute. ``cache`` is None if it was not set. ``assume_compiled`` treats every
    module's ``forward`` as compiled. ``logging`` is one of `LOGGING`. ``preview`` tells rules that
    are still in preview. ``min_worth`` is the least worth, from 0 to 1, of a finding that is
    reported; None if it was not set. ``allow_comments`` are words of comments that allow waits.
    ``chosen`` are the codes and files of [tool.torchperf]. ``baseline`` is the file that lists old
    findings, ``profile`` the file that a run recorded. ``without`` names causes and rows of
    conventions to switch off, to measure what each hides. ``review`` looks at callers in scope
    "all" too, for `torchperf why`. Users can't set these two. Every field pickles, since flake8 may
    lint in other processes.
    """

    scope: Level = Level.HOT
    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    sync_free: tuple[str, ...] = ()
    explain: bool = False
    rules: tuple[Path, ...] = ()
    cache: bool | None = None
    cache_folder: Path | None = None
    assume_compiled: bool = False
    confidence: str = "inferred"
    baseline: Path | None = None
    profile: Path | None = None
    logging: str = "report"
    preview: bool = False
    min_worth: float | None = None
    allow_comments: tuple[str, ...] = ()
    chosen: Chosen = field(default_factory=Chosen)
    without: tuple[str, ...] = ()
    review: bool = False

    def of_any_worth(self) -> Options:
        """Return the options for what runs or rewrites code: only a worth that was set counts."""
        return replace(self, min_worth=0.0) if self.min_worth is None else self

    def for_new_code(self) -> Options:
        """Return the options for code that is being written, which may have no callers yet."""
        return replace(self, without=(*self.without, Cause.NEVER_RUN.name))


# A word whose similarity (difflib's ratio) is below this is not a typo: --bogus is not --verbose.
_ALIKE = 0.65


def near(word: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: a known word if one is near, else ""."""
    from difflib import get_close_matches  # only where there is a mistake

    bare = {name.lstrip("-"): name for name in known}
    close = get_close_matches(word.lstrip("-"), bare, n=1, cutoff=_ALIKE)
    return f"; did you mean {bare[close[0]]!r}?" if close else ""


def _word(option: str, value: object, known: Iterable[str]) -> str:
    """Return one of the known words."""
    text, words = str(value), list(known)
    if text.strip() not in words:
        import difflib  # needed only to report a mistake

        close = difflib.get_close_matches(text.strip().lower(), words, n=1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise OptionError(f"{option}: {text!r} is not one of {', '.join(words)}{hint}")
    return text.strip()


def _texts(value: object) -> tuple[str, ...] | None:
    """Return the items of a list of texts; None for other values that pyproject.toml can hold."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    return None


def _listed(option: str, value: object, example: str) -> tuple[str, ...]:
    """Return the texts that an option lists."""
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


def _markers(option: str, value: object) -> tuple[str, ...]:
    """Return words that comments begin with, without the ``#`` and what follows the word."""
    words = _listed(option, value, '["gpu-sync-ok"]')
    for word in words:
        if not re.fullmatch(r"[\w-]+", word):
            raise OptionError(f"{option}: {word!r} is no word; write for example gpu-sync-ok")
    return words


def _switch(option: str, value: object) -> bool:
    word = str(value).strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise OptionError(f"{option}: {value!r} is neither true nor false")


def _scope(option: str, value: object) -> Level:
    return SCOPE_LEVELS[_word(option, value, SCOPE_LEVELS)]


def _confidence(option: str, value: object) -> str:
    return _word(option, value, CONFIDENCES)


def _logging(option: str, value: object) -> str:
    return _word(option, value, LOGGING)


def _share(option: str, value: object) -> float:
    """Return a number from 0 to 1."""
    try:
        share = float(value) if isinstance(value, (str, int, float)) else NAN
    except ValueError:
        share = NAN
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise OptionError(f"{option}: {value!r} is no number from 0 to 1; write for example 0.5")
    return share


def _cache_folder(option: str, name: object) -> Path | None:
    if not isinstance(name, str):
        raise OptionError(f"{option}: {name!r} is no path; write for example './remembered'")
    if not name:
        return None
    folder = _path(option, name)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{option}: {folder} is a file; name a folder")
    return folder


def _file(option: str, name: object) -> Path | None:
    if not isinstance(name, str):
        example = option.replace("-", " ").split()[-1]
        raise OptionError(f"{option}: {name!r} is no path; write for example './{example}.json'")
    return _path(option, name) if name else None


def _path(option: str, name: str) -> Path:
    """Return the absolute path of a file or folder, which need not exist."""
    try:
        path = Path(name).resolve()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        # Too long, a link that leads to itself, a null byte.
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"{option}: {name!r} can be no path: {reason}") from None
    return path


def _folders(option: str, value: object) -> tuple[Path, ...]:
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
    """Read pages and conventions now, so that a mistake is reported once, not for every file.

    Raises `OptionError` with a single line that begins with ``option``.
    """
    from flake8_torchperf.findings.catalogue import CatalogueError, load_catalogue
    from flake8_torchperf.knowledge.conventions import ConventionError, load_conventions

    try:
        load_catalogue(folders)
        load_conventions(folders)
    except (CatalogueError, ConventionError) as error:
        raise OptionError(f"{option}: {error}") from error


class Setting(NamedTuple):
    """An option: ``--torchperf-NAME`` in flake8, ``--NAME`` in our commands, NAME in a TOML table.

    ``check(spelt, value)`` returns the value for the field of `Options`, or raises `OptionError`
    with a line that begins with ``spelt``. A setting without ``metavar`` is a switch. ``example``
    is a value as TOML. ``finds`` is True for settings that change the findings, False for those
    that decide which of them are cached or left out.
    """

    name: str
    field: str
    check: Callable[[str, object], object]
    help: str
    example: str = "true"
    metavar: str = ""
    listed: bool = False
    path: bool = False
    finds: bool = True

    @property
    def dest(self) -> str:
        """Its name in flake8's namespace."""
        return f"{PREFIX}{self.name}".replace("-", "_")


# The prefix of our option names in flake8, which tells them from those of other plugins.
PREFIX = "torchperf-"
SETTINGS = (
    Setting(
        "scope",
        "scope",
        _scope,
        "what to report: only inside loops; hot code, which is loops, functions that run every "
        "step and functions that compute on the tensors they are given; or cold code too "
        "(Default: hot)",
        example='"hot"',
        metavar="{loop,hot,all}",
    ),
    Setting(
        "confidence",
        "confidence",
        _confidence,
        "why a value must be known to be a tensor: its type is stated by an annotation, a "
        "docstring or torch itself; or inferred from how it is used too; or assumed by "
        "convention too (Default: inferred)",
        example='"inferred"',
        metavar="{stated,inferred,assumed}",
    ),
    Setting(
        "hot",
        "hot",
        _globs,
        "further functions that run every step, e.g. execute_model,Engine.*",
        example='["execute_model", "Engine.*"]',
        metavar="globs",
        listed=True,
    ),
    Setting(
        "cold",
        "cold",
        _globs,
        "functions to treat as cold, e.g. *_debug,Trainer.report",
        example='["*_debug", "Trainer.report"]',
        metavar="globs",
        listed=True,
    ),
    Setting(
        "sync-free",
        "sync_free",
        _globs,
        "functions that must not wait, nor anything that they call, e.g. Engine.decode_*",
        example='["Engine.decode_*", "generate_step"]',
        metavar="globs",
        listed=True,
    ),
    Setting(
        "logging",
        "logging",
        _logging,
        "whether to report values that are read only to be logged, by print, logger.info, "
        "writer.add_scalar and the like (Default: report)",
        example='"ignore"',
        metavar="{report,ignore}",
    ),
    Setting(
        "min-worth",
        "min_worth",
        _share,
        "report only findings of at least this worth, which is the share of such findings, from 0 "
        "to 1, that engineers found worth telling; 0 reports all (Default: the threshold of the "
        "fitted table in scope hot, 0 in other scopes)",
        example="0.5",
        metavar="share",
    ),
    Setting(
        "allow-comments",
        "allow_comments",
        _markers,
        "words of comments that allow the waits of their line, with a reason: gpu-sync-ok for "
        "lines that end in # gpu-sync-ok: the sampler needs it",
        example='["gpu-sync-ok"]',
        metavar="words",
        listed=True,
    ),
    Setting(
        "explain",
        "explain",
        _switch,
        "append to each message why the value is known to be a tensor; in scope all also what "
        "hides the finding by default, as far as its own file tells",
    ),
    Setting(
        "assume-compiled",
        "assume_compiled",
        _switch,
        "treat every module's forward as compiled, as where torch.compile is called elsewhere",
    ),
    Setting(
        "preview",
        "preview",
        _switch,
        "report what rules in preview find, too; torchperf rules lists them",
    ),
    Setting(
        "rules",
        "rules",
        _folders,
        "folders with rule pages and a conventions.toml of your own, e.g. ./perf-rules",
        example='["./perf-rules"]',
        metavar="folders",
        listed=True,
        path=True,
    ),
    Setting(
        "baseline",
        "baseline",
        _file,
        "leave out what this file lists; torchperf check --write-baseline writes it",
        example='"./torchperf-baseline.json"',
        metavar="file",
        path=True,
        finds=False,
    ),
    Setting(
        "profile",
        "profile",
        _file,
        "take from this file what ran and waited; torchperf run --save-profile writes it",
        example='"./torchperf-profile.json"',
        metavar="file",
        path=True,
        finds=False,
    ),
    Setting(
        "cache",
        "cache",
        _switch,
        "remember findings, and look again only where something changed (Default: off; on in "
        "torchperf check)",
        finds=False,
    ),
    Setting(
        "cache-dir",
        "cache_folder",
        _cache_folder,
        "where to remember (Default: the platform's cache folder; torchperf cache shows it)",
        example='"./.torchperf"',
        metavar="folder",
        path=True,
        finds=False,
    ),
)


def add_options(parser: OptionManager, *, short: bool = False) -> None:
    """Register the options with flake8; ``short`` adds spellings without a prefix (``--scope``).

    An option that is not set is None. `from_namespace` does all checks: values from a configuration
    file become argparse defaults, which argparse does not check against ``choices``, and flake8
    reads a ``store_true`` option with ``getboolean``, which ends in a traceback if the value is
    neither true nor false.
    """
    for one in SETTINGS:
        given: dict[str, Any] = {"dest": one.dest, "default": None, "parse_from_config": True}
        if one.metavar:
            given |= {"metavar": one.metavar, "comma_separated_list": one.listed}
            given |= {"normalize_paths": one.path}
        else:
            given |= {"action": "store_const", "const": "true"}
        parser.add_option(*spellings(one.name, short=short), **given, help=one.help)
        if one.path:
            _normalise_only_text(parser.config_options_dict[one.dest])
        if not one.metavar:
            given |= {"const": "false", "parse_from_config": False}
            parser.add_option(
                *spellings(one.name, short=short, no=True),
                **given,
                help=f"not --{PREFIX}{one.name}",
            )


def spellings(name: str, *, short: bool, no: bool = False) -> tuple[str, ...]:
    """Return a setting's spellings on a command line; ``no`` for those that turn a switch off."""
    not_ = "no-" if no else ""
    long = f"--{not_}{PREFIX}{name}"
    return (f"--{not_}{name}", long) if short else (long,)


def _normalise_only_text(option: Option) -> None:
    """Let flake8 resolve only texts as paths: numbers and tables would end it with a traceback.

    pyproject.toml can hold numbers and tables. `from_namespace` receives them and rejects them.
    """
    normalize = option.normalize

    def normalise(value: Any, *folder: str) -> Any:
        if isinstance(value, str) or _texts(value) is not None:
            return normalize(value, *folder)
        return value

    option.normalize = normalise  # type: ignore[method-assign]


def from_namespace(namespace: argparse.Namespace, base: Options | None = None) -> Options:
    """Return ``base`` with the checked options that flake8 parsed.

    Raises `OptionError` with a single line if a value can't be used.
    """
    given = {one.name: getattr(namespace, one.dest, None) for one in SETTINGS}
    given = {name: value for name, value in given.items() if value is not None}
    return from_values(given, base or Options(), lambda name: f"--{PREFIX}{name}")


def given_settings(values: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the settings that have a value, by their attributes in a namespace."""
    return frozenset(one.name for one in SETTINGS if values.get(one.dest) is not None)


def from_values(
    values: Mapping[str, object], base: Options, spelt: Callable[[str], str]
) -> Options:
    """Return ``base`` with these values, by setting; ``spelt`` names a setting in error messages.

    Raises `OptionError` with a single line.
    """
    known = {one.name: one for one in SETTINGS}
    changed: dict[str, Any] = {
        known[name].field: known[name].check(spelt(name), value) for name, value in values.items()
    }
    options = replace(base, **changed)
    for pattern in options.hot:
        if pattern in options.cold:
            raise OptionError(
                f"{spelt('hot')} and {spelt('cold')} both name {pattern!r}: keep it in one"
            )
    return options
