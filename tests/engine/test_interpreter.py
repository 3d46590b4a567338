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


def test_a_version_is_asked_of_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\n[ "$1 $2" = "python find" ] && echo {sys.executable}\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolve_python("3.99").version == VERSION


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
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(PlatformError, match="does not answer as a Python interpreter"):
        resolve_python(str(broken))
