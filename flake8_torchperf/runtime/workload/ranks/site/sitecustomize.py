"""Runs first in each Python process that a counted one starts, so that workers are counted as well.

Python imports `sitecustomize` before anything else. The folder is removed from `sys.path` again,
and the `sitecustomize` that it hides is run as if this one did not exist.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_HERE = str(Path(__file__).parent)
_HOME = str(Path(__file__).parents[5])


def _take_over() -> None:
    """Import only the modules needed to decide, and only if there is something to decide."""
    if "TORCHPERF_PLAN" not in os.environ or sys.argv[0] in ("", "-"):
        return
    if sys.argv[0] == "-c" and not any("from multiprocessing." in one for one in sys.orig_argv):
        return
    before = list(sys.path)
    sys.path.append(_HOME)
    try:
        from flake8_torchperf.runtime.workload.ranks.takeover import take_over
    except ImportError:  # Another environment, or a package that was removed meanwhile.
        return
    finally:
        sys.path[:] = before
    take_over(Path(os.environ["TORCHPERF_PLAN"]), _HOME)


def _run_the_hidden_one() -> None:
    spec = PathFinder.find_spec(__name__, sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.path[:] = [one for one in sys.path if one != _HERE]
    _take_over()
    _run_the_hidden_one()
