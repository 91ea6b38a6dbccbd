"""Build the page to try the linter on: sources in, a folder for the site out.

    python docs/try/build.py [FOLDER]

FOLDER is build/try, where docs/conf.py looks for it; the files go to its folder ``try``, because
Sphinx puts what is in FOLDER into the site's ``_static``. npm and pip fetch what package-lock.json
and requirements.txt name. All of it is shipped with the page, which loads nothing from elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

SOURCES = Path(__file__).parent
ROOT = SOURCES.parents[1]
# Only the Python files of libcst's wheel are used, so that any platform and Python do.
ANY_LIBCST = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.13")
SEED = ROOT / "fixtures" / "issue82206_sharded_grad_scaler" / "before.py"
# Folders in wheels.
UNUSED = frozenset({"test", "tests", "sboms"})
# The marks of expected findings in fixtures.
EXPECTED = "  # TPF"


def main(folder: Path) -> None:
    """Build the page's files; a command that fails ends the build with its status."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("docs/try/build.py: npm is not installed; the site can be built without the page")
    work = ROOT / "build" / "try-work"
    shutil.rmtree(work / "python", ignore_errors=True)
    shutil.copytree(SOURCES, work, dirs_exist_ok=True)
    run(npm, "ci", "--no-audit", "--no-fund", "--loglevel=error", at=work)
    run(npm, "run", "--silent", "check", at=work)
    unpack(fetch(work / "wheels"), work / "python")
    shutil.copy(SOURCES / "linting.py", work / "python")
    (work / "example.py").write_text(example(), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    run(npm, "run", "--silent", "build", str(folder / "try"), at=work)


def fetch(wheels: Path) -> list[Path]:
    """Return the wheels that the page needs: ours, in plain Python, and the pinned others."""
    shutil.rmtree(wheels, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), ".", at=ROOT)
    listed = str(SOURCES / "requirements.txt")
    chosen = ("--no-deps", "--only-binary=:all:", *ANY_LIBCST)
    run(*pip, "download", *chosen, "--dest", str(wheels), "--requirement", listed, at=ROOT)
    return sorted(wheels.glob("*.whl"))


def unpack(wheels: list[Path], folder: Path) -> None:
    """Unpack wheels, except tests and what is compiled for a processor."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if is_used(name)]
            archive.extractall(folder, names)


def is_used(name: str) -> bool:
    """True if a file of a wheel is of use in the browser."""
    return UNUSED.isdisjoint(name.split("/")) and not name.endswith((".so", ".pyi"))


def example() -> str:
    """Return the code that the page starts with: the seed bug without the fixture's marks."""
    lines = SEED.read_text(encoding="utf-8").splitlines()
    return "".join(f"{line.partition(EXPECTED)[0]}\n" for line in lines)


def run(*command: str, at: Path) -> None:
    """Run a command in a folder; its failure ends the build with its status."""
    plain = {name: text for name, text in os.environ.items() if name != "FLAKE8_TORCHPERF_COMPILE"}
    done = subprocess.run(command, cwd=at, env=plain, check=False)
    if done.returncode:
        print(f"docs/try/build.py: {' '.join(command)} failed", file=sys.stderr)
        sys.exit(done.returncode)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "try").resolve())
