"""Run one of our commands in this process and write down what it did that linting must not do.

    python audited.py FOLDER REPORT flake8|torchperf ARGUMENTS...

FOLDER is what is linted. The report names every process started, socket made, file opened for
writing, and module of FOLDER that was imported or run.
"""

from __future__ import annotations

import json
import os
import sys

FOLDER, REPORT, COMMAND = sys.argv[1:4]
del sys.argv[1:4]
del sys.path[0]

# https://docs.python.org/3/library/audit_events.html
PROCESSES = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
    "os.forkpty", "os.startfile", "pty.spawn",
)  # fmt: skip
events: list[str] = []


def hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in PROCESSES or event.startswith(
        ("socket.", "urllib.", "http.", "ftplib.", "smtplib.")
    ):
        events.append(f"{event} {arguments[:1]!r}")
    elif event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and path not in (os.devnull, REPORT):
            events.append(f"open {path!r} {mode!r}")
    elif event == "exec":
        name = str(getattr(arguments[0], "co_filename", ""))
        if name.startswith(FOLDER):
            events.append(f"exec {name}")
    elif event == "import" and str(arguments[1] or "").startswith(FOLDER):
        events.append(f"import {arguments[:2]!r}")


sys.addaudithook(hook)
status: object = 1
try:
    if COMMAND == "flake8":
        from flake8.main.cli import main

        status = main(sys.argv[1:])
    else:
        from flake8_torchperf.cli.main import main as torchperf

        status = torchperf(sys.argv[1:])
except SystemExit as leaving:
    status = leaving.code
finally:
    sys.stdout.flush()
    loaded = sorted(
        name
        for name, module in sys.modules.items()
        if str(getattr(module, "__file__", "") or "").startswith(FOLDER) or name == "torch"
    )
    with open(REPORT, "w") as file:
        json.dump({"events": events, "loaded": loaded, "status": status}, file)
sys.exit(0)
