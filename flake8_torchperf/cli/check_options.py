"""flake8's options and those of our checker only: a command line in, plugins and options out.

Plugins are found and options parsed as flake8 does it, but only our checker is imported. Formatter
plugins are still loaded: they decide the output, and one of them, Flake8-pyproject, decides which
file holds the configuration.
"""

from __future__ import annotations

import argparse
import configparser
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import flake8
from flake8 import defaults
from flake8.main import options as flake8_options
from flake8.options import aggregator, config
from flake8.options.manager import OptionManager
from flake8.plugins import finder
from flake8.utils import parse_comma_separated_list

from flake8_torchperf.cli.check_files import STDIN
from flake8_torchperf.cli.codes import FAMILY, check_configured, check_given, with_groups
from flake8_torchperf.cli.notebooks.notebook_names import NOTEBOOKS, PYTHON_FILES
from flake8_torchperf.cli.parser import complain
from flake8_torchperf.cli.report.formats import settle_format
from flake8_torchperf.configuration import configuration_files
from flake8_torchperf.options import near
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.reserved import UNUSED_NOQA
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from flake8.plugins.finder import Plugin, Plugins

PATHS = "PATH"
# Stands before the words of a command line of `check` or `fix`, whose own ``--select`` decides.
SELECT_OURS = f"--select={FAMILY}"
_REPORT = "flake8.report"
_OURS = "flake8_torchperf."


@dataclass(frozen=True)
class Face:
    """The differences between the commands that take flake8's options.

    ``add`` registers a command's own options. ``settle`` may change the parsed options before the
    plugin gets them; it also takes flake8's formats. Plugins that a repository's configuration
    names, whose code flake8 runs, are left out unless ``local``. ``codes`` says that the command
    selects by code, so a code that no rule has is an error.
    """

    program: str
    description: str
    examples: str
    add: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    settle: Callable[[argparse.Namespace, Collection[str]], None] = lambda options, formats: None
    local: bool = True
    codes: bool = False


DESCRIPTION = """\
Find where Python makes the accelerator wait: what `flake8 --select TPF` prints, with flake8's
options and configuration, but without the time of its other checkers, and with a memory: a file is
linted again only when it has changed; a module that was read or looked for on its behalf; where it
has something to report, any module of its package; or the options, the rule pages, the linter or
Python. `torchperf cache` shows the folder and clears it."""
EXAMPLES = """\
example:
  torchperf check src
  torchperf check --scope=loop --format=grouped src tests
  torchperf check --format=sarif --output-file=torchperf.sarif src
  torchperf check --stdin-display-name src/model.py - < src/model.py
  torchperf check --write-baseline baseline.json src
  torchperf check --baseline baseline.json src
  torchperf check --profile profile.json src
  torchperf check --top 20 src
  torchperf check --fix src
  torchperf check --diff-base main src

exit status: 0 where nothing is found, 1 where something is, 2 for a wrong command line or a file
that cannot be read or parsed, 130 for Ctrl-C."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("check")
    group.add_argument(
        "--write-baseline",
        metavar="FILE",
        default="",
        help="write the findings to FILE instead of printing them, and keep in it what it says of "
        "files that are not linted; --baseline FILE leaves them out from then on",
    )
    group.add_argument(
        "--diff-base",
        metavar="REV",
        default="",
        help="report only findings in lines that differ from this commit of git, or in new files",
    )
    _add_comment_options(group)
    group.add_argument(
        "--sort",
        choices=("place", "worth"),
        help="the order of the findings: by file and line, or the best of all files first "
        "(Default: place; by measured cost with a profile)",
    )
    group.add_argument(
        "--top",
        metavar="N",
        type=_count,
        default=0,
        help="report only the N findings of the greatest worth",
    )
    group.add_argument(
        "--exit-zero-on-errors",
        action="store_true",
        help="let files that cannot be read or parsed not change the exit status",
    )
    group.add_argument(
        "--exit-zero-on-nothing",
        action="store_true",
        help="let a run that lints no file succeed: a hook may be given only excluded files",
    )
    group.add_argument(
        "--fix",
        action="store_true",
        help="make the safe fixes first, as torchperf fix does; report what is left",
    )
    # Those of fix alone.
    parser.set_defaults(diff=False, unsafe=False, suggested=False)
    parser.set_defaults(verify=False, require_verified=False, inputs="", harness=None)


def _add_comment_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--unused-noqa",
        action="store_true",
        help=f"report as {UNUSED_NOQA} each `# noqa: TPF...` that silences nothing",
    )
    group.add_argument(
        "--add-noqa",
        action="store_true",
        help="write a `# noqa` into the line of each finding instead of printing it",
    )
    group.add_argument(
        "--reason",
        metavar="TEXT",
        default="",
        help="with --add-noqa: what to write behind the codes",
    )


def _count(text: str) -> int:
    """Return a positive number."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


# Folders with third-party code, besides those that flake8 excludes by default, and where Jupyter
# keeps copies.
INSTALLED = (".venv", "venv", "node_modules", "site-packages", ".ipynb_checkpoints")


def look_for_notebooks(options: argparse.Namespace) -> None:
    """Let folders be searched for notebooks, too, if nbformat can read them.

    Names that flake8's option ``filename`` gives are kept.
    """
    if list(options.filename) == PYTHON_FILES and find_spec("nbformat") is not None:
        options.filename = [*PYTHON_FILES, NOTEBOOKS]


def _settle(options: argparse.Namespace, formats: Collection[str]) -> None:
    """Check and complete the options of `check`. Raises ValueError if they do not fit together.

    A baseline that is to be written is not read.
    """
    if options.reason and not options.add_noqa:
        raise ValueError("--reason needs --add-noqa")
    if options.add_noqa and options.write_baseline:
        raise ValueError("--add-noqa and --write-baseline exclude each other")
    if options.diff_base and options.write_baseline:
        raise ValueError("--diff-base and --write-baseline exclude each other")
    if options.top and options.write_baseline:
        raise ValueError("--top and --write-baseline exclude each other")
    if options.top and options.sort == "place":
        raise ValueError("--top sorts by worth; leave out --sort place")
    if options.add_noqa and STDIN in options.filenames:
        raise ValueError("--add-noqa needs files to write to, not standard input")
    if options.unused_noqa:
        options.extend_select = [*(options.extend_select or ()), UNUSED_NOQA]
    settle_format(options, formats)
    look_for_notebooks(options)
    if tuple(options.exclude) == defaults.EXCLUDE:
        # A folder that the command line names is linted.
        named = {os.path.basename(os.path.abspath(path)) for path in options.filenames}
        options.exclude = [*options.exclude, *(name for name in INSTALLED if name not in named)]
    if options.write_baseline:
        options.torchperf_baseline = ""


CHECK = Face("torchperf check", DESCRIPTION, EXAMPLES, _add_options, _settle, codes=True)


def parse(argv: Sequence[str], face: Face = CHECK) -> tuple[Plugins, argparse.Namespace]:
    """Return the plugins and options of flake8's own ``parse_args``, with ours as the only checker.

    All checkers are loaded only if the command line has an option of another one
    (``--max-complexity``). An unusable command line ends the process with a one-line error, where
    argparse prints two.
    """
    argv = with_groups(argv) if face.codes else argv
    early = flake8_options.stage1_arg_parser()
    known, rest = early.parse_known_args(argv)
    if known.output_file:
        rest += ["--output-file", known.output_file]  # the formatter asks for it
    flake8.configure_logging(known.verbose, known.output_file)
    _refuse_pipes(known)
    cfg, folder = config.load_config(
        config=known.config, extra=known.append_config, isolated=known.isolated
    )
    wanted = finder.parse_plugin_options(
        cfg,
        folder,
        enable_extensions=known.enable_extensions,
        require_plugins=known.require_plugins,
    )
    found = finder.find_plugins(cfg, wanted)
    if not face.local:
        found = [one for one in found if one.package != "local"]
        wanted = wanted._replace(local_plugin_paths=())
    plugins = finder.load_plugins([one for one in found if _needed(one)], wanted)
    manager = _manager(plugins, early, face)
    if manager.parser.parse_known_args(rest)[1]:
        plugins = finder.load_plugins(found, wanted)
        manager = _manager(plugins, early, face)
        _reject(manager.parser, manager.parser.parse_known_args(rest)[1])
    given = manager.parse_args(rest)
    if face.codes and rest[:1] == [SELECT_OURS]:
        rest = [_selecting(cfg), *rest[1:]]
    try:
        options = aggregator.aggregate_options(manager, cfg, folder, rest)
    except ValueError:
        if face.codes:
            check_configured(cfg, None, ())  # which names the nearest code
        raise
    options.isolated = known.isolated
    options.command_line = vars(given)
    face.settle(options, plugins.reporters)
    plugins = _ours_alone(plugins)
    _tell_all(plugins, manager, options)
    if face.codes:
        rules = TorchPerfPlugin.options().rules
        check_given(given, rules)
        check_configured(cfg, options, rules)
    return plugins, options


def _refuse_pipes(known: argparse.Namespace) -> None:
    """Raise OSError for a pipe in place of a configuration: flake8 would wait for its writer."""
    if known.config is None and not known.isolated:
        for path in configuration_files(os.getcwd()):
            refuse_special(path)


def _selecting(cfg: configparser.RawConfigParser) -> str:
    """Return the option that selects the codes of ours that flake8's files select.

    All of them, where those files select none: flake8's own checkers may be all they choose among.
    """
    words = [
        word
        for name in ("select", "extend-select", "extend_select")
        for word in parse_comma_separated_list(cfg.get("flake8", name, fallback=""))
    ]
    ours = [word for word in words if word.startswith(FAMILY)]
    return (
        f"--select={','.join(ours)}" if ours and cfg.has_option("flake8", "select") else SELECT_OURS
    )


def _needed(plugin: Plugin) -> bool:
    entry = plugin.entry_point
    return entry.group == _REPORT or entry.value.startswith(_OURS)


def _ours_alone(plugins: Plugins) -> Plugins:
    checkers = finder.Checkers(
        tree=[loaded for loaded in plugins.checkers.tree if loaded.obj is TorchPerfPlugin],
        logical_line=[],
        physical_line=[],
    )
    return plugins._replace(checkers=checkers)


def _manager(plugins: Plugins, early: argparse.ArgumentParser, face: Face) -> OptionManager:
    """Return flake8's option manager, with the name and the texts of our command."""
    manager = OptionManager(
        version=flake8.__version__,
        plugin_versions=plugins.versions_str(),
        parents=[early],
        formatter_names=list(plugins.reporters),
    )
    parser = manager.parser
    parser.prog = face.program
    parser.usage = f"{face.program} [options] [{PATHS} ...]"
    parser.description = face.description
    parser.epilog = face.examples
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.error = partial(complain, parser)  # one line, without the usage
    for action in parser._actions:
        if action.dest == "filenames":
            action.metavar = PATHS  # as the usage calls them
    flake8_options.register_default_options(manager)
    face.add(parser)
    TorchPerfPlugin.short_names = True
    try:
        manager.register_plugins(plugins)
    finally:
        TorchPerfPlugin.short_names = False
    return manager


def _reject(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Reject the first word that no option takes."""
    for word in words:
        name = word.partition("=")[0]
        if not name.startswith("-"):
            parser.error(f"write {word} next to the other paths")
        known = (option for action in parser._actions for option in action.option_strings)
        parser.error(f"there is no option {name}{near(name, known)}")


def _tell_all(plugins: Plugins, manager: OptionManager, options: argparse.Namespace) -> None:
    for loaded in plugins.all_plugins():
        parse_options = getattr(loaded.obj, "parse_options", None)
        if parse_options is not None:
            _tell(parse_options, manager, options)


def _tell(
    parse_options: Callable[..., object], manager: OptionManager, options: argparse.Namespace
) -> None:
    """Give a plugin the options, in either of the forms that flake8 allows."""
    try:
        parse_options(manager, options, options.filenames)
    except TypeError:
        parse_options(options)
