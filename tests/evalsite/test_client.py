"""The client as a stranger uses it: taken from a running site, one file, a token, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from evalsite import client
from tests.evalsite.running import HALF, RIGHT, TASKS, Up, manage
from tests.evalsite.test_submit import upload

pytestmark = [pytest.mark.broker, pytest.mark.sandbox, pytest.mark.slow]

MAKE_TOKEN = """
from django.contrib.auth import get_user_model
from grading import tokens
print(tokens.make(get_user_model().objects.get(username="admin"), "test", ["read", "submit"])[0])
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The client, as the site hands it out, with a token; ``token=""`` leaves it out."""
    directory = tmp_path_factory.mktemp("client")
    data = directory / "data"
    tasks = directory / "tasks.jsonl"
    tasks.write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    assert manage(data, "import_benchmark", str(tasks), "--slug", "add").returncode == 0
    up = Up(data)
    try:
        address = f"http://127.0.0.1:{up.port}/client/evalsite.py"
        client = directory / "evalsite.py"
        client.write_bytes(urllib.request.urlopen(address, timeout=30).read())
        token = manage(data, "shell", "--no-imports", "-c", MAKE_TOKEN).stdout.strip()

        def call(*arguments: str, token: str = token) -> subprocess.CompletedProcess[str]:
            environment = {"PATH": os.environ["PATH"], "EVALSITE_TOKEN": token}
            return subprocess.run(
                [sys.executable, "-I", "-S", str(client), *arguments],
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )

        yield call
    finally:
        up.stop()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return upload(
        tmp_path / "up.jsonl",
        [
            {"task_id": "add/1", "generation": RIGHT.format(1)},
            {"task_id": "add/2", "generation": HALF.format(2)},
        ],
    )


SUBMIT = ("--benchmark", "add", "--model", "Quillfish")


def test_it_sends_waits_judges_and_reads(run: Run, file: str) -> None:
    done = run("submit", file, *SUBMIT, "--wait", "--fail-under", "0.5")
    assert done.returncode == 0, done.stderr
    assert "pass@1 is 0.5000, at least 0.5" in done.stderr
    answer = json.loads(done.stdout)
    assert (answer["state"], answer["pass_at_k"]) == ("done", {"1": 0.5})

    below = run("submit", file, *SUBMIT, "--wait", "--fail-under", "0.6")
    assert below.returncode == 1
    assert "pass@1 is 0.5000, below 0.6" in below.stderr

    assert json.loads(run("status", answer["id"]).stdout)["done"] == 2
    rows = run("results", answer["id"], "--outcome", "assertion_fail").stdout.splitlines()
    (row,) = map(json.loads, rows)
    place = (answer["id"], row["task_slug"], str(row["index"]))
    for named in (place, ("/".join(place),), (f"{answer['url']}{'/'.join(place[1:])}/",)):
        repro = run("repro", *named)
        assert json.loads(repro.stdout)["targets"] == ["add2(1, 2) == 3", "add2(2, 2) == 4"]

    ended = run("cancel", answer["id"])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Grading has ended" in ended.stderr


def test_it_adds_samples_to_a_submission(run: Run, file: str, tmp_path: Path) -> None:
    first = json.loads(run("submit", file, "-b", "add", "-m", "Heron", "--wait").stdout)
    more = upload(tmp_path / "more.jsonl", [{"task_id": "add/2", "generation": RIGHT.format(2)}])
    dry = run("submit", more, "--add-to", first["id"], "--dry-run")
    assert (dry.returncode, json.loads(dry.stdout)["after"]["samples"]) == (0, 3)
    added = run("submit", more, "--add-to", first["id"], "--wait", "--fail-under", "0.7")
    assert added.returncode == 0, added.stderr
    answer = json.loads(added.stdout)
    assert (answer["id"], answer["samples"], answer["done"]) == (first["id"], 3, 3)
    assert answer["pass_at_k"] == {"1": 0.75}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--add-to", "none"], "There is no such thing, or not for you"),
        (["--add-to", "x", "--model", "Heron"], "--add-to keeps benchmark"),
        (["--model", "Heron"], "name --benchmark and --model, or a submission by --add-to"),
    ],
)
def test_where_a_file_goes_is_one_of_two(
    run: Run, file: str, options: list[str], reason: str
) -> None:
    told = run("submit", file, *options)
    assert (told.returncode, reason in told.stderr) == (2, True), told.stderr


def test_a_dry_run_checks_and_stores_nothing(run: Run, file: str) -> None:
    done = run("submit", file, *SUBMIT[:-1], "Nobody", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 2
    read = run("submit", file, *SUBMIT[:-1], "Nobody", "--dry-run", "--reading", "completion")
    assert json.loads(read.stdout)["detected"]["readings"] == {"completion": 2}


def test_a_dry_run_says_what_is_wrong_and_what_looks_so(run: Run, tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [{"task_id": "add/1", "generation": "Gladly."}]
    odd = upload(tmp_path / "odd.jsonl", lines)
    done = run("submit", odd, *SUBMIT, "--dry-run")
    assert done.returncode == 0
    assert "1 of 1 samples looked at hold no Python" in done.stderr
    assert "1 tasks have no sample" in done.stderr
    bad = upload(tmp_path / "bad.jsonl", [*lines, {"task_id": "add/9\x1b[2J", "generation": "x"}])
    done = run("submit", bad, *SUBMIT, "--dry-run")
    assert done.returncode == 2
    assert "line 2: task_id unknown task" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("submit", "/nowhere.jsonl", *SUBMIT), "No such file"),
        (("status", "nothing"), "no such thing"),
        (("submit", "FILE", "--benchmark", "none", "--model", "m"), ""),
        (("submit", "FILE", *SUBMIT, "--fail-under", "0.5"), "needs --wait"),
        (("submit", "FILE", *SUBMIT, "--timeout", "soon"), "use 90s, 30m or 2h"),
        (("submit", "FILE", *SUBMIT, "--setting", "x"), "NAME=VALUE"),
        (("--url", "nonsense", "status", "x"), "nonsense"),
        (("repro", "nothing"), "not ID/TASK/NUMBER"),
        (("repro", "a/b/c"), "not ID/TASK/NUMBER"),
        (("cancel", "nothing"), "no such thing"),
        (("submit", "FILE", *SUBMIT, "--wait", "--fail-under", "0", "--score", "5"), "no pass@5"),
    ],
)
def test_what_is_wrong_is_said(
    run: Run, file: str, arguments: tuple[str, ...], reason: str
) -> None:
    done = run(*(file if one == "FILE" else one for one in arguments))
    assert done.returncode in (2, 3), done.stderr
    assert reason.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_without_a_token_it_says_where_to_get_one(run: Run, file: str) -> None:
    done = run("submit", file, *SUBMIT, token="")
    assert done.returncode == 2
    assert "Authorization" in done.stderr


def test_a_bad_file_is_refused_with_its_lines(run: Run, tmp_path: Path) -> None:
    bad = upload(tmp_path / "bad.jsonl", [{"task_id": "add/9", "generation": "x"}])
    done = run("submit", bad, *SUBMIT)
    assert done.returncode == 2
    assert "line 1" in done.stderr


def test_waiting_has_an_end(run: Run, tmp_path: Path) -> None:
    slow = upload(
        tmp_path / "slow.jsonl",
        [{"task_id": "add/1", "generation": f"while True:\n    {number}"} for number in range(4)],
    )
    done = run("submit", slow, *SUBMIT, "--wait", "--timeout", "1s")
    assert done.returncode == 4
    assert "not done within 1s" in done.stderr


class Elsewhere(BaseHTTPRequestHandler):
    """A server that is no Evalsite: one page for all, or an answer that breaks off."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "90" if "results" in self.path else "6")
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("command", "reason"),
    [("status", "not as an Evalsite does"), ("results", "the answer broke off")],
)
def test_another_server_is_told_apart(
    capsys: pytest.CaptureFixture[str], elsewhere: str, command: str, reason: str
) -> None:
    assert client.main(["--url", elsewhere, command, "x"]) == client.FAILED
    assert reason in capsys.readouterr().err
