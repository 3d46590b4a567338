"""`manage.py submit_many`: a folder of runs, taken in and graded by one call."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evalsite.running import (
    HALF,
    RIGHT,
    ROOT,
    environment,
    manage,
    tree,
    wait_until,
    with_sums,
)

pytestmark = [pytest.mark.broker, pytest.mark.sandbox, pytest.mark.slow]

ENDLESS = "while True:\n    pass"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_sums(tmp_path_factory.mktemp("submit_many"))


def run(folder: Path, name: str, *programs: str, task: str = "add/{}") -> Path:
    folder.mkdir(exist_ok=True)
    lines = [
        {"task_id": task.format(number), "generation": program.format(number)}
        for number, program in enumerate(programs, 1)
    ]
    file = folder / name
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def submit_many(data: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return manage(data, "submit_many", str(folder), "--benchmark", "add", *options)


def test_all_good_files_are_graded_and_bad_ones_named(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    run(folder, "half_STYLE_A.jsonl", RIGHT, HALF)
    run(folder, "good.jsonl", RIGHT, RIGHT)
    run(folder, "wrong_task.jsonl", RIGHT, task="sub/{}")
    (folder / "README.md").write_text("not a run")
    options = ["--pattern", "_(?P<prompt_style>STYLE.*)", "--setting", "temperature=0", "--wait"]
    done = submit_many(data, folder, *options, "--json")
    assert done.returncode == 2, done.stderr
    found = json.loads(done.stdout)
    assert [(one["model"], one["state"], one["pass_at_k"]) for one in found["runs"]] == [
        ("good", "done", {"1": 1.0}),
        ("half STYLE A", "done", {"1": 0.5}),
    ]
    assert [one["settings"] for one in found["runs"]] == [
        {"temperature": 0},
        {"temperature": 0, "prompt_style": "STYLE A"},
    ]
    assert [one["file"] for one in found["refused"]] == ["wrong_task.jsonl"]
    assert "3 files: 2 new, 0 submitted before, 1 refused." in done.stderr
    assert "1 of 3 files were refused:" in done.stderr
    assert "wrong_task.jsonl: 1 problem" in done.stderr
    assert "line 1: task_id unknown task" in done.stderr

    (folder / "wrong_task.jsonl").unlink()
    again = submit_many(data, folder, *options)
    assert again.returncode == 0, again.stderr
    assert "2 files: 0 new, 2 submitted before, 0 refused." in again.stderr
    rows = [re.split("  +", line) for line in again.stdout.splitlines()]
    assert rows[2:] == [
        ["good", found["runs"][0]["submission"], "done", "2/2", "100.0 %", "100.0 %"],
        ["half STYLE A", found["runs"][1]["submission"], "done", "2/2", "50.0 %", "75.0 %"],
    ]


def test_a_stopped_call_is_gone_on_with(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for number in range(3):
        run(folder, f"slow{number}.jsonl", ENDLESS, RIGHT)
    command = ["manage.py", "submit_many", str(folder), "--benchmark", "add", "--wait"]
    first = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(data),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            lambda: any(" -B -S -c " in line for line in tree(first.pid).values()),
            60,
            "nothing was graded",
        )
    finally:
        first.send_signal(signal.SIGTERM)
        out, errors = first.communicate(timeout=60)
    assert (first.returncode, out) == (1, "")
    assert "the same command goes on" in errors
    done = submit_many(data, folder, "--wait", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["runs"]
    assert [one["model"] for one in found] == ["slow0", "slow1", "slow2"]
    assert [(one["state"], one["outcomes"]["timeout"]) for one in found] == [("done", 1)] * 3
    assert not found[0]["created"], "the first call had stored it"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: No such file or directory"),
        ([str(ROOT / "docs")], "holds no upload; their names end in .jsonl, .json, .ndjson"),
        ([str(ROOT), "--pattern", "("], "no regular expression"),
        ([str(ROOT), "--pattern", "a.b"], "name what it finds: (?P<model>...)"),
    ],
)
def test_what_is_wrong_with_the_call_is_said(
    data: Path, arguments: list[str], message: str
) -> None:
    done = submit_many(data, Path(arguments[0]), *arguments[1:])
    assert done.returncode != 0
    assert message in done.stderr
