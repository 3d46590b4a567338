"""The data directory and its secrets."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from evalsite import datadir


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    chosen = tmp_path / "deep" / "data"
    monkeypatch.setenv("EVALSITE_DATA_DIR", str(chosen))
    return chosen


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_look_inside(directory: Path) -> None:
    assert datadir.data_dir() == directory
    assert mode(directory) == 0o700


def test_a_secret_is_made_once_and_kept(directory: Path) -> None:
    first = datadir.secret("secret_key")
    assert len(first) >= 60
    assert datadir.secret("secret_key") == first
    assert datadir.secret("other") != first
    assert mode(directory / "secret_key") == 0o600
    assert {file.name for file in directory.iterdir()} == {"secret_key", "other"}


def test_processes_that_start_together_agree(directory: Path) -> None:
    code = "from evalsite import datadir; print(datadir.secret('secret_key'))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=datadir.BASE_DIR
        )
        for _ in range(6)
    ]
    answers = {process.communicate(timeout=60)[0].strip() for process in running}
    assert answers == {datadir.secret("secret_key")}
