"""Fixtures of instances that a test can kill."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from evalsite import broker


@pytest.fixture
def database_url() -> Iterator[str]:
    """Empty for SQLite, else the URL of a new database that is dropped afterwards."""
    server = os.environ.get("EVALSITE_DATABASE_URL", "")
    if not server:
        yield ""
        return
    name = f"faults_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def env(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Environment of an instance of its own; this process looks at the same data directory."""
    monkeypatch.setenv("EVALSITE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("EVALSITE_DATABASE_URL", database_url)
    monkeypatch.delenv("EVALSITE_REDIS_URL", raising=False)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    return dict(os.environ)


@pytest.fixture
def server(env: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The broker's processes, the last one running."""
    processes = [broker.start()]
    yield processes
    for process in processes:
        broker.stop(process)
