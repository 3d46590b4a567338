"""Files that wait for a decision: complete or absent, owned, and not for ever."""

from __future__ import annotations

import io
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from grading.intake import staging


@pytest.fixture(autouse=True)
def root(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "staged"


def stage(owner: int = 1, content: bytes = b"text") -> staging.Staged:
    return staging.stage(io.BytesIO(content), "a \u00e9\ud800.jsonl", owner)


def test_a_staged_file_comes_back_to_its_owner_alone(root: Path) -> None:
    made = stage()
    found = staging.staged(made.token, 1)
    assert found == made
    assert found.file_name == "a \u00e9\ud800.jsonl"
    with found.open() as stream:
        assert stream.read() == b"text"
    assert staging.staged(made.token, 2) is None
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    found.discard()
    assert staging.staged(made.token, 1) is None
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("token", ["", ".", "..", "../x", "0" * 33, "G" * 32, "0" * 32 + "\n"])
def test_a_token_is_no_path(token: str) -> None:
    assert staging.staged(token, 1) is None


def test_only_the_newest_files_of_an_owner_are_kept() -> None:
    other = stage(owner=2)
    made = []
    for age in range(staging.KEPT_PER_OWNER + 2, 0, -1):
        made.append(stage())
        mark = time.time() - age
        os.utime(made[-1].directory, (mark, mark))
    kept = [one for one in made if staging.staged(one.token, 1)]
    assert kept == made[-staging.KEPT_PER_OWNER :]
    assert staging.staged(other.token, 2)


def test_old_files_and_drafts_go(root: Path) -> None:
    old, new = stage(), stage()
    draft = root / ".draft"
    draft.mkdir()
    past = time.time() - staging.KEPT_FOR.total_seconds() - 1
    for directory in (old.directory, draft):
        os.utime(directory, (past, past))
    assert staging.expire() == 2
    assert list(root.iterdir()) == [new.directory]


def test_a_failed_copy_leaves_nothing(root: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        staging.stage(Broken(), "a", 1)
    assert list(root.iterdir()) == []
