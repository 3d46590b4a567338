"""`manage.py submit` on a data directory where nothing runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evalsite.running import (
    HALF,
    RIGHT,
    ROOT,
    Up,
    environment,
    manage,
    tree,
    wait_until,
    with_sums,
)

pytestmark = [pytest.mark.broker, pytest.mark.sandbox, pytest.mark.slow]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_sums(tmp_path_factory.mktemp("submit"))


def upload(path: Path, lines: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_it_grades_with_its_own_workers_and_prints_one_object(data: Path, tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"task_id": "add/1", "generation": RIGHT.format(1)},
        {"task_id": "add/2", "generation": HALF.format(2)},
    ]
    file = upload(tmp_path / "up.jsonl", lines)
    options = ["--benchmark", "add", "--model", "m", "--setting", "temperature=0.2"]
    done = manage(data, "submit", file, *options, "--wait", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["state"] == "done"
    assert result["samples"] == 2
    assert {name: count for name, count in result["outcomes"].items() if count} == {
        "pass": 1,
        "assertion_fail": 1,
    }
    assert result["pass_at_k"] == {"1": 0.5}
    assert result["mean_fraction"] == 0.75
    assert "Graded 2 of 2 samples" in done.stderr
    again = manage(data, "submit", file, *options, "--wait", "--json")
    assert json.loads(again.stdout) == result, "the same file is the same submission"


def test_a_bad_file_is_reported_by_line_and_stores_nothing(data: Path, tmp_path: Path) -> None:
    file = upload(tmp_path / "bad.jsonl", [{"task_id": "add/9", "generation": "x"}])
    done = manage(data, "submit", file, "--benchmark", "add", "--model", "bad", "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "bad.jsonl: 1 problem" in done.stderr
    assert "line 1: task_id unknown task" in done.stderr
    count = "from grading.models import LanguageModel as M; print(M.objects.filter(name='bad'))"
    assert "<QuerySet []>" in manage(data, "shell", "--no-imports", "-c", count).stdout


def test_a_dry_run_prints_the_report_and_stores_nothing(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "generations.json"
    file.write_text(json.dumps([[RIGHT.format(1)] * 2, [HALF.format(2)] * 2]))
    options = ["--benchmark", "add", "--model", "dry", "--dry-run"]
    done = manage(data, "submit", str(file), *options, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["samples"], report["detected"]["match"], report["n_min"]) == (4, "position", 2)
    refused = manage(data, "submit", str(file), *options, "--match", "id")
    assert refused.returncode == 2
    assert "missing field" in refused.stdout
    count = "from grading.models import LanguageModel as M; print(M.objects.filter(name='dry'))"
    assert "<QuerySet []>" in manage(data, "shell", "--no-imports", "-c", count).stdout


def test_good_lines_are_taken_alone_when_told(data: Path, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"task_id": "add/1", "mine": RIGHT.format(1), "generation": "prose"},
        {"task_id": "add/9", "mine": "x"},
    ]
    file = upload(tmp_path / "mixed.jsonl", rows)
    options = ["--benchmark", "add", "--model", "g", "--text-field", "mine", "--wait", "--json"]
    assert manage(data, "submit", file, *options).returncode == 2
    done = manage(data, "submit", file, *options, "--good-lines-only")
    result = json.loads(done.stdout)
    assert (result["samples"], result["outcomes"]["pass"]) == (1, 1)


def test_an_unknown_benchmark_is_told_what_there_is(data: Path, tmp_path: Path) -> None:
    file = upload(tmp_path / "up.jsonl", [])
    done = manage(data, "submit", file, "--benchmark", "nope", "--model", "m")
    assert done.returncode == 1
    assert "No benchmark 'nope'; there are: add." in done.stderr


def test_it_goes_on_by_itself_when_the_running_instance_ends(data: Path, tmp_path: Path) -> None:
    file = upload(
        tmp_path / "slow.jsonl", [{"task_id": "add/1", "generation": "while True:\n    pass"}]
    )
    up = Up(data)
    options = ["--benchmark", "add", "--model", "s", "--wait", "--json"]
    waiting = subprocess.Popen(
        [sys.executable, "manage.py", "submit", file, *options],
        cwd=ROOT,
        env=environment(data),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            lambda: any(" -B -S -c " in line for line in tree(up.process.pid).values()),
            60,
            "the instance did not take the submission",
        )
    finally:
        up.kill()
    out, errors = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, errors
    result = json.loads(out)
    assert (result["state"], result["outcomes"]["timeout"]) == ("done", 1)
