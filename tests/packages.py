"""Packages for environments that need no index, and an installer that takes no time."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

# Stands in for uv. A requirement is the path of a wheel; `fail` fails; `hold @ DIRECTORY` makes
# the file `held` there and waits for the file `go`. Every installation adds a line to its log.
_UV = """#!{python}
import glob, pathlib, subprocess, sys, time, zipfile
command, *arguments = sys.argv[1:]
if command == "venv":
    base, venv = arguments[-2:]
    sys.exit(subprocess.call([base, "-m", "venv", "--without-pip", venv]))
if command != "pip":
    sys.exit(1)
with open({log!r}, "a") as log:
    log.write("install\\n")
site = glob.glob(str(pathlib.Path(arguments[3]).parent.parent / "lib/python*/site-packages"))[0]
for line in pathlib.Path(arguments[-1]).read_text().splitlines():
    print("taking", line, flush=True)
    if line == "fail":
        sys.exit("no such package")
    if line.startswith("hold @ "):
        place = pathlib.Path(line[7:])
        (place / "held").touch()
        while not (place / "go").exists():
            time.sleep(0.01)
    else:
        zipfile.ZipFile(line).extractall(site)
"""


def make_wheel(folder: Path, name: str = "tiny", source: str = "VALUE = 42\n") -> str:
    """A wheel of one module; its path."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": wheel,
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(file, text)
    return str(path)


def make_uv(folder: Path) -> Path:
    """Put a ``uv`` into ``folder``; the file in which its installations are counted."""
    log = folder / "installations"
    uv = folder / "uv"
    uv.write_text(_UV.format(python=sys.executable, log=str(log)))
    uv.chmod(0o755)
    return log
