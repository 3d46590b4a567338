"""Where interpreters are found: uv, PATH, and the directories of version managers."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterator

_UV_TIMEOUT_S = 30
_VERSION = re.compile(r"(?:python-?)?(\d+(?:\.\d+){0,2})")
# Installations of each manager, below a directory that a variable may name.
_MANAGERS = (
    ("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python", "*"),
    ("PYENV_ROOT", "~/.pyenv", "versions/*"),
    ("ASDF_DATA_DIR", "~/.asdf", "installs/python/*"),
    ("MISE_DATA_DIR", "~/.local/share/mise", "installs/python/*"),
)


def candidates(spec: str) -> Iterator[str]:
    """Paths of executables that may be what ``spec`` names, best first; none is tried here.

    ``spec`` is a path, a version of one to three parts, or a name on PATH. For a version, or a
    name like ``python3.9``: what uv answers, what is on PATH, then what version managers have
    installed, newest patch first. Shims on PATH may turn out to lead nowhere.
    """
    if os.sep in spec:
        yield from [spec] if os.access(spec, os.X_OK) else []
        return
    version = wanted_version(spec)
    yield from _asked_of_uv(version) if version else []
    names = [spec, _executable(version)] if version else [spec]
    for name in dict.fromkeys(names):
        if found := shutil.which(name):
            yield found
    yield from _installed(version) if version else []


def wanted_version(spec: str) -> str:
    """The version that a spec asks for; empty for a path or another name."""
    asked = _VERSION.fullmatch(spec)
    return asked[1] if asked else ""


def is_of(version: str, wanted: str) -> bool:
    """Whether ``version`` is the wanted one or a release of it; all are of an empty one."""
    return not wanted or f"{version}.".startswith(f"{wanted}.")


def _executable(version: str) -> str:
    return "python" + ".".join(version.split(".")[:2])


def _asked_of_uv(version: str) -> Iterator[str]:
    uv = shutil.which("uv")
    if not uv:
        return
    command = [uv, "python", "find", "--system", "--no-python-downloads", version]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_UV_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return
    if answer.returncode == 0:
        yield answer.stdout.strip()


def _installed(version: str) -> list[str]:
    found: dict[str, tuple[int, ...]] = {}
    for variable, default, pattern in _MANAGERS:
        root = os.environ.get(variable) or os.path.expanduser(default)
        places = os.path.join(glob.escape(root), pattern, "bin", _executable(version))
        for path in glob.glob(places):
            release = _release(path)
            if release and is_of(".".join(map(str, release)), version):
                found[path] = release
    return sorted(found, key=lambda path: found[path], reverse=True)


def _release(path: str) -> tuple[int, ...] | None:
    """The version in the name of an installation, as in ``cpython-3.12.1-linux-x86_64-gnu``."""
    installation = os.path.basename(os.path.dirname(os.path.dirname(path)))
    named = re.match(r"(?:cpython-)?(\d+)\.(\d+)\.(\d+)(?![\w.])", installation)
    return tuple(map(int, named.groups())) if named else None
