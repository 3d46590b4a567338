"""`make env` with every prerequisite missing in turn; nothing is installed here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "env"
STAMP = ".venv/.lock-installed"

# A python3 that says what the test wants; `-m venv` makes a directory whose python notes pip's
# arguments.
PYTHON = r"""#!/bin/sh
echo "python $*" >>calls
case "$*" in
*ensurepip*) exit "$NO_ENSUREPIP" ;;
*version_info*) exit "$TOO_OLD" ;;
-V) echo "Python 3.9.2" ;;
"-m venv"*)
    rm -rf .venv
    mkdir -p .venv/bin
    printf '#!/bin/sh\n[ "$1" = -c ] || echo "venv $*" >>calls\nexit "$NO_PIP"\n' >.venv/bin/python
    chmod +x .venv/bin/python ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a lock, and a PATH with nothing but a shell's tools and that python3."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cmp", "cp", "rm", "mkdir", "chmod"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    (tools / "python3").write_text(PYTHON)
    (tools / "python3").chmod(0o755)
    (tmp_path / "requirements.lock").write_text("one==1\n")
    return tmp_path


def make_env(checkout: Path, **switches: str) -> subprocess.CompletedProcess[str]:
    defaults = {"NO_ENSUREPIP": "0", "TOO_OLD": "0", "NO_PIP": "0", "PYTHON": "python3"}
    path = {"PATH": str(checkout / "bin"), "STAMP": STAMP}
    (checkout / "calls").unlink(missing_ok=True)
    return subprocess.run(
        ["sh", str(SCRIPT)],
        cwd=checkout,
        env={**defaults, **path, **switches},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def installs(checkout: Path) -> int:
    calls = checkout / "calls"
    return calls.read_text().count("--require-hashes") if calls.exists() else 0


def test_it_builds_once(checkout: Path) -> None:
    first = make_env(checkout)
    assert first.returncode == 0, first.stderr
    assert installs(checkout) == 1
    again = make_env(checkout)
    assert (again.returncode, again.stdout, installs(checkout)) == (0, "", 0)


def test_a_new_lock_is_installed(checkout: Path) -> None:
    make_env(checkout)
    (checkout / "requirements.lock").write_text("one==2\n")
    assert make_env(checkout).returncode == 0
    assert installs(checkout) == 1
    assert (checkout / STAMP).read_text() == "one==2\n"


def test_a_half_built_environment_is_built_again(checkout: Path) -> None:
    assert make_env(checkout, NO_PIP="1").returncode != 0
    assert not (checkout / STAMP).exists()
    assert make_env(checkout).returncode == 0
    assert installs(checkout) == 1


def test_an_environment_whose_python_is_gone_is_built_again(checkout: Path) -> None:
    make_env(checkout)
    (checkout / ".venv/bin/python").unlink()
    assert make_env(checkout).returncode == 0
    assert installs(checkout) == 1


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        ({"NO_ENSUREPIP": "1"}, "python3 has no ensurepip. Fix: apt-get install python3-venv"),
        ({"TOO_OLD": "1"}, "Python 3.9.2 is too old. Fix: make env PYTHON=python3.11"),
        ({"PYTHON": "python9"}, "python9 not found. Fix: apt-get install python3 python3-venv"),
    ],
)
def test_what_is_missing_is_told_with_its_fix(
    checkout: Path, switches: dict[str, str], said: str
) -> None:
    done = make_env(checkout, **switches)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert not (checkout / ".venv").exists()


def test_uv_is_used_where_it_works_and_pip_where_it_does_not(checkout: Path) -> None:
    uv = checkout / "bin" / "uv"
    uv.write_text('#!/bin/sh\necho "uv $*" >>calls\nexit 1\n')
    uv.chmod(0o755)
    done = make_env(checkout)
    assert done.returncode == 0, done.stderr
    assert installs(checkout) == 1
    uv.write_text('#!/bin/sh\necho "uv $*" >>calls\nmkdir -p .venv/bin\n')
    os.remove(checkout / STAMP)
    assert make_env(checkout).returncode == 0
    calls = (checkout / "calls").read_text()
    assert "uv pip sync --quiet --require-hashes requirements.lock" in calls
    assert "-m venv" not in calls
