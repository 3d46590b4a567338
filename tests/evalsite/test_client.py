"""The client as a stranger uses it: taken from a running site, one file, a token, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.evalsite.running import Up, manage
from tests.evalsite.test_submit import HALF, RIGHT, TASKS, upload

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
    repro = run("repro", answer["id"], row["task_slug"], str(row["index"]))
    assert json.loads(repro.stdout)["targets"] == ["add2(1, 2) == 3", "add2(2, 2) == 4"]


def test_a_dry_run_checks_and_stores_nothing(run: Run, file: str) -> None:
    done = run("submit", file, *SUBMIT[:-1], "Nobody", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 2
    read = run("submit", file, *SUBMIT[:-1], "Nobody", "--dry-run", "--reading", "completion")
    assert json.loads(read.stdout)["detected"]["readings"] == {"completion": 2}


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
