"""Files between their report and the decision to queue them, kept in the data directory.

Each lies in a directory of its own, named by a secret token, with a note of its owner beside it.
A directory appears complete or not at all; it goes when it is queued, with age, or when its owner
has checked enough others since.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

KEPT_FOR = timedelta(hours=24)
KEPT_PER_OWNER = 4
COPY_BYTES = 1024**2

_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Staged:
    """A file under check; ``directory`` holds it as ``upload``."""

    token: str
    owner_id: int
    file_name: str
    directory: Path

    def open(self) -> BinaryIO:
        """The file's bytes. Raises `FileNotFoundError` once it has gone."""
        return (self.directory / "upload").open("rb")

    def discard(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def stage(stream: BinaryIO, file_name: str, owner_id: int) -> Staged:
    """Copy a file to where it waits. Raises `OSError` where the disk does not take it."""
    expire()
    _make_room(owner_id)
    token = secrets.token_hex(16)
    draft = _root() / f".{token}"
    draft.mkdir(mode=0o700)
    try:
        stream.seek(0)
        with (draft / "upload").open("wb") as copy:
            shutil.copyfileobj(stream, copy, COPY_BYTES)
        about = {"owner_id": owner_id, "file_name": file_name}
        (draft / "about.json").write_text(json.dumps(about), encoding="ascii")
        os.rename(draft, _root() / token)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Staged(token, owner_id, file_name, _root() / token)


def staged(token: str, owner_id: int) -> Staged | None:
    """The file that ``owner_id`` staged under ``token``; None where it has gone or is another's."""
    found = _read(_root() / token) if _TOKEN.fullmatch(token) else None
    return found if found and found.owner_id == owner_id else None


def expire() -> int:
    """Remove what was left lying; returns how many."""
    oldest = time.time() - KEPT_FOR.total_seconds()
    old = [entry for entry in _root().iterdir() if _age_mark(entry) < oldest]
    for entry in old:
        shutil.rmtree(entry, ignore_errors=True)
    return len(old)


def _make_room(owner_id: int) -> None:
    own = [found for entry in _root().iterdir() if (found := _read(entry))]
    own = [found for found in own if found.owner_id == owner_id]
    own.sort(key=lambda found: _age_mark(found.directory), reverse=True)
    for found in own[KEPT_PER_OWNER - 1 :]:
        found.discard()


def _root() -> Path:
    root = Path(settings.DATA_DIR) / "staged"
    root.mkdir(mode=0o700, exist_ok=True)
    return root


def _read(directory: Path) -> Staged | None:
    if not _TOKEN.fullmatch(directory.name):
        return None
    try:
        about = json.loads((directory / "about.json").read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return Staged(directory.name, about["owner_id"], about["file_name"], directory)


def _age_mark(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:
        return time.time()
