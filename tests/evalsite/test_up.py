"""`manage.py up` with everything real."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evalsite.running import Up, alive, free_port, manage, tree, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TASK = {
    "task_id": "loop/1",
    "category": "code_exec",
    "prompt": "Write f.",
    "targets": ["f() == 1"],
    "metric_name": "code_exec",
    "post_process": "extract_code_block",
    "metadata": {"timeout_s": 30},
}
FOREVER = {"task_id": "loop/1", "generation": "def f():\n    while True:\n        pass\n"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    running = Up(tmp_path_factory.mktemp("up") / "data")
    yield running
    running.kill()


def test_the_banner_says_what_a_newcomer_needs(up: Up) -> None:
    assert up.banner["URL"] == f"http://127.0.0.1:{up.port}/"
    assert up.banner["Data directory"] == str(up.data)
    assert up.banner["Sandbox tier"] in {"bwrap", "unshare", "unshare-root", "rlimit"}
    assert up.banner["User name"] == "admin"
    assert up.banner["Password"].endswith("(shown only now)")


def test_the_password_is_the_admins_and_stored_only_as_a_hash(up: Up) -> None:
    password = up.banner["Password"].split()[0]
    code = (
        "from django.contrib.auth import authenticate; "
        f"print(authenticate(username='admin', password={password!r}))"
    )
    assert manage(up.data, "shell", "--no-imports", "-c", code).stdout.strip() == "admin"
    files = [file for file in up.data.rglob("*") if file.is_file()]
    assert files and all(password.encode() not in file.read_bytes() for file in files)


def test_it_is_healthy_when_the_banner_is_there(up: Up) -> None:
    status, body = up.get("/healthz")
    assert (status, json.loads(body)) == (
        200,
        {"status": "ok", "database": "ok", "broker": "ok"},
    )
    assert up.get("/")[0] == 200


def test_all_parts_run_and_no_password_is_in_their_arguments(up: Up) -> None:
    lines = list(tree(up.process.pid).values())
    for part in ("gunicorn", "manage.py worker", "manage.py sweep"):
        assert any(part in line for line in lines), lines
    secret = (up.data / "broker_password").read_text()
    assert not any(secret in line for line in lines)


def test_a_second_one_on_the_same_data_says_so_and_ends(up: Up) -> None:
    second = manage(up.data, "up", "--port", str(free_port()))
    assert second.returncode == 1
    assert f"Evalsite already runs on {up.data} (manage.py up, process {up.process.pid})" in (
        second.stderr
    )


def test_a_taken_port_is_told_with_its_fix(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = manage(tmp_path / "data", "up", "--port", str(port))
    assert done.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port} (Address already in use)" in done.stderr
    assert f"--port {port + 1}" in done.stderr


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_within_ten_seconds(tmp_path: Path, signal_number: int) -> None:
    up = Up(tmp_path / "data")
    pids = list(tree(up.process.pid))
    began = time.monotonic()
    assert up.stop(signal_number) == 0
    assert time.monotonic() - began < 10
    assert len(pids) >= 5
    assert alive(pids) == []


def test_a_second_start_keeps_the_account(tmp_path: Path) -> None:
    Up(tmp_path / "data").kill()
    again = Up(tmp_path / "data")
    try:
        assert "changepassword admin" in again.banner["Password"]
    finally:
        again.kill()


@pytest.mark.sandbox
def test_sigkill_leaves_no_process_while_a_program_runs(tmp_path: Path) -> None:
    data, tasks, upload = tmp_path / "data", tmp_path / "tasks.jsonl", tmp_path / "upload.jsonl"
    tasks.write_text(json.dumps(TASK) + "\n")
    upload.write_text(json.dumps(FOREVER) + "\n")
    imported = manage(data, "import_benchmark", str(tasks), "--slug", "loop")
    assert imported.returncode == 0, imported.stdout + imported.stderr
    up = Up(data)
    try:
        sent = manage(data, "submit", str(upload), "--benchmark", "loop", "--model", "m")
        assert sent.returncode == 0, sent.stderr

        def cell_runs() -> bool:
            return any(" -B -S -c " in line for line in tree(up.process.pid).values())

        wait_until(cell_runs, 60, "no program was started")
        pids = list(tree(up.process.pid))
    finally:
        up.kill()
    wait_until(lambda: not alive(pids), 10, "processes were left behind")
