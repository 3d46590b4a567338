"""A PostgreSQL server of one's own on loopback, for the time of a block, with Debian's defaults."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")


class NoServer(Exception):
    """No PostgreSQL server is installed; the text says how to get one."""


@contextmanager
def server() -> Iterator[str]:
    """Yields the server's URL; its user may make databases. Raises `NoServer`."""
    binaries = _binaries()
    with tempfile.TemporaryDirectory(prefix="evalsite-postgres-") as name:
        home, port = Path(name), _free_port()
        password = home / "password"
        password.write_text(secrets.token_urlsafe(18))
        if os.geteuid() == 0:
            for path in (home, password):
                shutil.chown(path, "postgres")
        data = str(home / "data")
        user = ["-U", "evalsite", "--auth=scram-sha-256", f"--pwfile={password}"]
        _run([f"{binaries}/initdb", "-D", data, "-E", "UTF8", "--locale=C.UTF-8", *user])
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"
        control = [f"{binaries}/pg_ctl", "-D", data, "-w"]
        _run([*control, "-l", f"{home}/log", "-o", options, "start"])
        try:
            yield f"postgresql://evalsite:{password.read_text()}@127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "fast", "stop"])


def _binaries() -> Path:
    found = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise NoServer("needs a PostgreSQL server: apt-get install postgresql")
    return found[-1].parent if found else Path(str(on_path)).parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(command: list[str]) -> None:
    """The server refuses to run as root; Debian's package brings a user for it."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*as_user, *command], stdout=subprocess.DEVNULL, check=True, cwd="/")
