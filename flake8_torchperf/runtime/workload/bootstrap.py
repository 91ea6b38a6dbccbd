"""Starts the child process: `python bootstrap.py PLAN FOLDER`.

FOLDER is where the package is installed. The script is started by path, so the first entry of
`sys.path` is the script's folder, except under PYTHONSAFEPATH. The entry is removed so that the
folder's modules do not shadow the workload's imports.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):  # Python 3.10 lacks this flag.
        del sys.path[0]
    _, _plan, _folder = sys.argv
    if _folder not in sys.path:
        sys.path.append(_folder)
    from flake8_torchperf.runtime.workload.child_session import main
    from flake8_torchperf.runtime.workload.exchange import load_plan

    main(load_plan(Path(_plan)), Path(_plan))
