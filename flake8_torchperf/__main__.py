"""Runs the command line: `python -m flake8_torchperf` does what `torchperf` does."""

import sys

from flake8_torchperf.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
