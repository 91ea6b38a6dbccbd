"""Write [tool.torchperf]'s settings into package.json and README.md, as the extension's own.

python editors/vscode/settings.py           write them
python editors/vscode/settings.py --check   exit with status 1 if they are not current
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from flake8_torchperf import __version__
from flake8_torchperf.options import SETTINGS, Setting

PACKAGE = Path(__file__).with_name("package.json")
PAGE = Path(__file__).with_name("README.md")
_TABLE = re.compile(
    r"(?<=<!-- settings: settings.py -->\n).*?(?=<!-- end of settings -->)", re.DOTALL
)
INTERPRETER: dict[str, Any] = {
    "type": ["string", "null"],
    "default": None,
    "scope": "machine-overridable",
    "description": "the Python to use, such as ${workspaceFolder}/.venv/bin/python (Default: that "
    "of the Python extension, else python3 or python on PATH)",
}


def property_of(setting: Setting) -> dict[str, Any]:
    """Return a setting as VS Code describes it; null leaves it to the configuration files."""
    described: dict[str, Any] = {"default": None}
    if not setting.metavar:
        described["type"] = ["boolean", "null"]
    elif setting.listed:
        described |= {"type": ["array", "null"], "items": {"type": "string"}}
    else:
        described["type"] = ["string", "null"]
    if setting.metavar.startswith("{"):
        described["enum"] = [*setting.metavar.strip("{}").split(","), None]
    return described | {"description": setting.help}


def current(text: str) -> str:
    """Return the text of package.json with the settings and the version of the linter."""
    package = json.loads(text)
    package["version"] = __version__
    package["contributes"]["configuration"]["properties"] = {
        "torchperf.interpreter": INTERPRETER,
        **{f"torchperf.{one.name}": property_of(one) for one in SETTINGS},
    }
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def current_page(text: str) -> str:
    """Return the text of README.md with the table of the settings."""
    described = {"interpreter": INTERPRETER["description"]}
    described |= {one.name: one.help for one in SETTINGS}
    rows = [
        f"| `torchperf.{name}` | {text.replace('|', '/')} |\n" for name, text in described.items()
    ]
    table = "".join(["| setting | what it says |\n", "|---|---|\n", *rows])
    return _TABLE.sub(lambda _: table, text)


def main() -> int:
    """Write or check both files; returns the exit status."""
    status = 0
    for path, made in ((PACKAGE, current), (PAGE, current_page)):
        text = path.read_text(encoding="utf-8")
        wanted = made(text)
        if "--check" not in sys.argv[1:]:
            path.write_text(wanted, encoding="utf-8")
        elif text != wanted:
            print(f"{path} is not current: run {Path(__file__).name}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    raise SystemExit(main())
