"""Finding the base interpreter and what it needs to see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grading.engine.interpreter import resolve_python
from grading.engine.isolation import choose
from grading.engine.isolation.view import View
from grading.engine.outcome import PlatformError

VERSION = "{}.{}.{}".format(*sys.version_info[:3])
SHORT = "{}.{}".format(*sys.version_info[:2])


def test_the_running_one_is_the_base_interpreter() -> None:
    found = resolve_python()
    assert found.version == VERSION
    assert not os.path.islink(found.python)
    assert os.path.realpath(sys.base_prefix) in os.path.realpath(found.python)
    answer = subprocess.check_output(
        [found.python, "-S", "-c", "import sys; print(sys.prefix == sys.base_prefix)"], text=True
    )
    assert answer == "True\n"


def test_a_path_into_a_virtual_environment_gives_its_base() -> None:
    assert resolve_python(sys.executable) == resolve_python()


def test_a_name_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mypython").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert resolve_python("mypython").version == VERSION


def test_a_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / f"python{SHORT}").symlink_to(resolve_python().python)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolve_python(SHORT).version == VERSION


def fake(path: Path, version: str) -> Path:
    """An interpreter that says it is of that version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho \'["{path}", "{version}", "/usr", "/usr"]\'\n')
    path.chmod(0o755)
    return path


def broken(path: Path) -> Path:
    path.write_text("#!/bin/sh\necho not here >&2\nexit 127\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without version managers, and an empty directory that is all of PATH."""
    for variable in ("UV_PYTHON_INSTALL_DIR", "PYENV_ROOT", "ASDF_DATA_DIR", "MISE_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_version_is_asked_of_uv(nothing_installed: Path) -> None:
    fake(nothing_installed / "python3.98", "3.98.1")
    found = fake(nothing_installed / "uvs" / "python", "3.98.2")
    uv = nothing_installed / "uv"
    uv.write_text(f'#!/bin/sh\n[ "$1 $2" = "python find" ] && echo {found}\n')
    uv.chmod(0o755)
    assert resolve_python("3.98").version == "3.98.2"


@pytest.mark.parametrize("spec", ["3.98", "python3.98", "3.98.10"])
def test_version_managers_are_asked_for_the_newest_patch(
    nothing_installed: Path, spec: str
) -> None:
    broken(nothing_installed / "python3.98")  # a shim that leads nowhere
    for release in ("3.98.2", "3.98.10", "3.98.9-dev", "3.99.11"):
        fake(nothing_installed / f".pyenv/versions/{release}/bin/python3.98", release)
    assert resolve_python(spec).version == "3.98.10"


@pytest.mark.parametrize(
    "place",
    [
        ".pyenv/versions/3.98.1",
        ".asdf/installs/python/3.98.1",
        ".local/share/mise/installs/python/3.98.1",
        ".local/share/uv/python/cpython-3.98.1-linux-x86_64-gnu",
    ],
)
def test_version_managers(nothing_installed: Path, place: str) -> None:
    fake(nothing_installed / place / "bin/python3.98", "3.98.1")
    assert resolve_python("3.98").version == "3.98.1"


def test_one_on_path_of_another_version_is_passed_over(nothing_installed: Path) -> None:
    fake(nothing_installed / "python3.98", "3.98.1")
    fake(nothing_installed / ".pyenv/versions/3.98.4/bin/python3.98", "3.98.4")
    assert resolve_python("3.98").version == "3.98.1"
    assert resolve_python("3.98.4").version == "3.98.4"


def test_the_cause_is_told(nothing_installed: Path) -> None:
    broken(nothing_installed / "python3.98")
    with pytest.raises(PlatformError, match=r"'3\.98': .*/python3\.98 does not answer"):
        resolve_python("3.98")


def test_every_spelling_is_bound(tmp_path: Path) -> None:
    # As uv does: an alias directory beside the versioned one, a link into it outside.
    found = resolve_python()
    prefix = os.path.dirname(os.path.dirname(found.python))
    (tmp_path / "alias").symlink_to(prefix)
    (tmp_path / "python").symlink_to(tmp_path / "alias/bin" / os.path.basename(found.python))
    alias = resolve_python(str(tmp_path / "python"))
    assert alias.python == found.python
    assert {f"{tmp_path}/alias/bin", f"{prefix}/bin", f"{prefix}/lib"} <= set(alias.binds)


@pytest.mark.sandbox
def test_the_alias_runs_inside(tmp_path: Path) -> None:
    found = resolve_python()
    (tmp_path / "alias").symlink_to(os.path.dirname(os.path.dirname(found.python)))
    spelled = str(tmp_path / "alias/bin" / os.path.basename(found.python))
    binds = resolve_python(spelled).binds
    try:
        isolation, _ = choose("bwrap", View(spelled, binds))
    except PlatformError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    assert isolation.tier == "bwrap"


@pytest.mark.parametrize("spec", ["/no/such/python", "no-such-python", "2.99"])
def test_none_there(spec: str) -> None:
    with pytest.raises(PlatformError, match="no Python interpreter"):
        resolve_python(spec)


def test_one_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="does not answer as a Python interpreter"):
        resolve_python(str(broken(tmp_path / "python")))
