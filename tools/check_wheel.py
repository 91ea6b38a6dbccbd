"""Tests a compiled wheel in the environment that it is installed in, as cibuildwheel does.

    python tools/check_wheel.py

The installed package must be compiled, start, and have the same findings in the fixtures as this
checkout's plain sources. The exit status is 1 otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = "from flake8_torchperf.interpreter.driver import function_analysis as f; print(f.__file__)"


def main() -> int:
    """Ask the installed package, from a folder in which no checkout can be imported."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    script, fixtures = str(ROOT / "benchmarks" / "same_findings.py"), str(ROOT / "fixtures")
    compared = ["--jobs", "1", "--before", str(ROOT), "--after", sys.prefix, fixtures]
    with tempfile.TemporaryDirectory() as folder:
        asked = [sys.executable, "-c", PLACE]
        place = subprocess.check_output(asked, cwd=folder, env=environment, text=True).strip()
        if not place.endswith(str(sysconfig.get_config_var("EXT_SUFFIX"))):
            print(f"not compiled: {place}", file=sys.stderr)
            return 1
        print(f"compiled: {place}", flush=True)
        for words in (["-m", "flake8", "--version"], [script, *compared]):
            status = subprocess.call([sys.executable, *words], cwd=folder, env=environment)
            if status:
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
