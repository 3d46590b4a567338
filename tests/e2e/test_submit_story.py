"""From an invitation to results: in the browser, then by curl and the client with a token."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.evalsite.running import ROOT, Up, manage

pytest.importorskip("playwright", reason="needs the package playwright")
pytest.importorskip("axe_playwright_python", reason="needs the package axe-playwright-python")

from playwright.sync_api import Error

from tests.e2e.browser import Visitor, executable, launched, visiting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.broker,
    pytest.mark.sandbox,
    pytest.mark.slow,
]

GRADED_S = 300
PASSWORD = "gulls over the estuary 7"
TASKS, SAMPLES = 6, 3
# The events of a drag from a file manager.
DROP = """
([selector, name, content]) => {
  const bytes = Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
    document.querySelector(selector).dispatchEvent(event);
  }
}
"""
RIGHT = "def tide{0}(a, b):\n    return a + b\n"
WRONG = "def tide{0}(a, b):\n    return a * b\n"
# A second for its two targets, and wrong.
SLOW = "import time\n\n\ndef tide{0}(a, b):\n    time.sleep(0.5)\n    return a - b\n"


def slow(salt: str) -> list[str]:
    """Ten programs that are like no others, so that no verdict of theirs is known."""
    return [f"{SLOW}# {salt} {number}\n" for number in range(10)]


@dataclass(frozen=True)
class Instance:
    """A running site with a benchmark of `TASKS` tasks; files lie in ``home``."""

    url: str
    password: str
    home: Path

    def file(self, name: str, *programs: str) -> Path:
        """A file of generations; the programs stand in a field that no tool writes."""
        rows = [
            {"task_id": f"Tide/{task}", "completion": "Gladly.", "mine": program.format(task)}
            for task in range(TASKS)
            for program in programs
        ]
        path = self.home / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    executable()
    home = tmp_path_factory.mktemp("story")
    tasks = [
        {
            "task_id": f"Tide/{task}",
            "prompt": f"Write tide{task}(a, b).",
            "targets": [f"tide{task}(1, 2) == 3", f"tide{task}(2, 2) == 4"],
            "category": "code_exec",
            "metric_name": "code_exec",
            "post_process": "extract_code_block",
            "metadata": {},
        }
        for task in range(TASKS)
    ]
    file = home / "tasks.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    done = manage(home / "data", "import_benchmark", str(file), "--slug", "tide", timeout=GRADED_S)
    assert done.returncode == 0, done.stderr
    up = Up(home / "data")
    try:
        yield Instance(f"http://127.0.0.1:{up.port}", up.banner["Password"].split()[0], home)
    finally:
        up.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


def test_from_an_invitation_to_results_and_the_same_without_a_browser(
    browser: Any, instance: Instance
) -> None:
    if not shutil.which("curl"):
        pytest.skip("needs curl: apt-get install curl")
    link = _invited(browser, instance)
    with visiting(browser, instance.url) as visitor:
        _joins(visitor, link)
        _sends_corrects_and_watches(visitor, instance)
        _cancels_another(visitor, instance)
        token = _makes_a_token(visitor)
    _the_same_by_curl(Curl(instance.url, token), instance)
    _the_same_by_the_client(instance, token)
    with visiting(browser, instance.url) as visitor:
        _waits_for_the_snapshot(visitor, "Dunlin by client")
        for model in ("Dunlin 7B", "Dunlin by curl", "Dunlin by client"):
            row = visitor.page.get_by_role("row").filter(has_text=model)
            assert "33.3" in row.first.inner_text()
        assert visitor.problems() == []


def _invited(browser: Any, instance: Instance) -> str:
    """The link that the admin passes on."""
    with visiting(browser, instance.url) as visitor:
        visitor.sign_in("admin", instance.password)
        visitor.go("/people/")
        visitor.page.get_by_role("button", name="Make the link").click()
        link: str = visitor.page.locator("#secret").inner_text()
        assert visitor.problems() == []
        return link


def _waits_for_the_snapshot(visitor: Visitor, model: str) -> None:
    """The board once it shows a model whose run ended just now: it is stored by the sweep."""
    until = time.monotonic() + GRADED_S
    visitor.go("/b/tide/")
    while not visitor.page.get_by_role("row").filter(has_text=model).count():
        assert time.monotonic() < until, visitor.page.inner_text("main")
        visitor.page.wait_for_timeout(500)
        visitor.go("/b/tide/")


def _joins(visitor: Visitor, link: str) -> None:
    page = visitor.page
    page.goto(link)
    assert visitor.problems() == []
    page.get_by_label("Username").fill("rosa")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    page.get_by_role("button", name="Sign out", exact=True).wait_for()
    assert visitor.problems() == []


def _checked(visitor: Visitor, file: Path, model: str) -> None:
    """The report on a file that was dragged onto the page, its field put right."""
    page = visitor.page
    visitor.go("/submit/")
    content = base64.b64encode(file.read_bytes()).decode()
    page.evaluate(DROP, ["[data-drop]", file.name, content])
    page.get_by_label("Language model").fill(model)
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("samples looked at hold no Python").wait_for()
    assert visitor.problems() == []
    page.get_by_label("Text field").select_option("mine")
    page.get_by_label("Texts are").select_option("chat replies or whole programs")
    page.get_by_role("button", name="Check again").click()
    page.get_by_text("Every sample looked at yields Python").wait_for()
    assert visitor.problems() == []


def _sends_corrects_and_watches(visitor: Visitor, instance: Instance) -> None:
    page = visitor.page
    file = instance.file("dunlin.jsonl", RIGHT, WRONG, SLOW)
    _checked(visitor, file, "Dunlin 7B")
    page.get_by_role("button", name="Queue for grading").click()
    page.get_by_role("heading", name="Dunlin 7B on").wait_for()
    page.get_by_text("Grading", exact=True).wait_for()
    assert visitor.problems() == []
    shown = _watched(page)
    assert len(shown) > 1, f"the page was not seen moving: {shown}"
    assert f"{TASKS} of {TASKS}" in page.inner_text("main")
    assert "pass@1 is 33.3" in page.inner_text("main")
    assert visitor.problems() == []


def _watched(page: Any) -> set[int]:
    """The numbers of graded samples that the live page shows by itself until it says done."""
    shown: set[int] = set()
    until = time.monotonic() + GRADED_S
    while not page.get_by_text("✓ Done").is_visible():
        assert time.monotonic() < until, shown
        with suppress(Error):  # the page comes anew in between
            shown.update(page.locator("progress").evaluate_all("all => all.map(one => one.value)"))
        page.wait_for_timeout(200)
    return shown


def _cancels_another(visitor: Visitor, instance: Instance) -> None:
    page = visitor.page
    _checked(visitor, instance.file("slow.jsonl", *slow("page")), "Slow 1B")
    page.get_by_role("button", name="Queue for grading").click()
    page.get_by_role("button", name="Cancel grading").click()
    page.get_by_text("Cancelled at").wait_for()
    assert "by rosa" in page.inner_text("main")
    assert visitor.problems() == []


def _makes_a_token(visitor: Visitor) -> str:
    page = visitor.page
    page.get_by_role("link", name="Account of rosa").click()
    page.get_by_role("link", name="API tokens").first.click()
    page.get_by_label("Name", exact=True).fill("laptop")
    for scope in ("read what you can read", "submit and cancel"):
        page.get_by_role("checkbox", name=scope).check()
    page.get_by_role("button", name="Make token").click()
    token: str = page.locator("#secret").inner_text()
    assert visitor.problems() == []
    return token


@dataclass(frozen=True)
class Curl:
    """Calls of the API by the curl of this machine."""

    url: str
    token: str

    def __call__(self, place: str, *options: str, status: int = 200) -> Any:
        """The answer's JSON, or its lines."""
        answer = subprocess.run(
            [
                *("curl", "--silent", "--show-error", "--write-out", "\n%{http_code}"),
                *("--header", f"Authorization: Bearer {self.token}", *options),
                f"{self.url}/api/v1/{place}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        body, _, code = answer.stdout.rpartition("\n")
        assert int(code) == status, body
        if "results.jsonl" in place:
            return [json.loads(line) for line in body.splitlines()]
        return json.loads(body)

    def send(self, file: Path, model: str, status: int, **more: str) -> Any:
        named = {"benchmark": "tide", "model": model, "file_name": file.name, **more}
        corrected = named | {"text_field": "mine", "reading": "generation"}
        kind = ("--header", "Content-Type: application/octet-stream")
        place = f"submissions?{urlencode(corrected)}"
        return self(place, "--data-binary", f"@{file}", *kind, status=status)


def _the_same_by_curl(curl: Curl, instance: Instance) -> None:
    file = instance.file("curl.jsonl", WRONG, RIGHT, SLOW)
    report = curl.send(file, "Dunlin by curl", 200, dry_run="true")
    assert (report["ok"], report["samples"], report["without_code"]) == (True, 18, 0)
    sent = curl.send(file, "Dunlin by curl", 202)
    place = f"submissions/{sent['id']}"
    until = time.monotonic() + GRADED_S
    while (found := curl(place))["state"] == "grading":
        assert time.monotonic() < until, found
        time.sleep(1)  # as a script does that polls
    counts = {name: number for name, number in found["outcomes"].items() if number}
    assert counts == {"pass": 6, "assertion_fail": 12}
    lines = curl(f"{place}/results.jsonl?outcome=assertion_fail")
    assert [line["index"] for line in lines] == [0, 2] * TASKS
    record = curl(f"{place}/results/Tide-0/0")
    assert record["attempt"]["outcome"] == "assertion_fail"
    assert _repeated(instance, json.dumps(record["case"])) == "assertion_fail"
    other = curl.send(instance.file("curl2.jsonl", *slow("curl")), "Slow by curl", 202)
    ended = curl(f"submissions/{other['id']}/cancel", "--request", "POST")
    assert ended["state"] == "cancelled"


def _repeated(instance: Instance, case: str) -> str:
    """What the engine says of one case, without a site."""
    file = instance.home / "case.jsonl"
    file.write_text(case + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "grading.engine", "--cases", str(file), "--out", "-"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    outcome: str = json.loads(done.stdout)["exit_code"]
    return outcome


def _the_same_by_the_client(instance: Instance, token: str) -> None:
    client = instance.home / "evalsite.py"
    address = f"{instance.url}/client/evalsite.py"
    subprocess.run(["curl", "--silent", "--fail", "-o", str(client), address], check=True)

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [_plain_python(), "-I", "-S", str(client), *arguments],
            env={"PATH": os.environ["PATH"], "EVALSITE_TOKEN": token},
            capture_output=True,
            text=True,
            timeout=GRADED_S,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    def named(file: Path, model: str) -> list[str]:
        how = ["--text-field", "mine", "--reading", "generation"]
        return ["submit", str(file), "--benchmark", "tide", "--model", model, *how]

    mine = named(instance.file("client.jsonl", RIGHT, SLOW, WRONG), "Dunlin by client")
    assert json.loads(run(*mine, "--dry-run").stdout)["samples"] == 18
    done = run(*mine, "--wait", "--fail-under", "0.9", code=1)
    assert "pass@1 is 0.3333, below 0.9" in done.stderr
    answer = json.loads(done.stdout)
    assert json.loads(run("status", answer["id"]).stdout)["pass_at_k"]["1"] == pytest.approx(1 / 3)
    lines = run("results", answer["id"], "--outcome", "pass").stdout.splitlines()
    assert [json.loads(line)["index"] for line in lines] == [0] * TASKS
    repro = run("repro", f"{instance.url}/s/{answer['id']}/Tide-1/2/")
    assert _repeated(instance, repro.stdout) == "assertion_fail"
    other = named(instance.file("client2.jsonl", *slow("client")), "Slow by client")
    begun = json.loads(run(*other).stdout)
    assert json.loads(run("cancel", begun["id"]).stdout)["state"] == "cancelled"
    assert "Grading has ended" in run("cancel", begun["id"], code=2).stderr


def _plain_python() -> str:
    """A Python without the packages of this one, where the machine has another."""
    beside = str(Path(sys.executable).parent)
    places = [one for one in os.environ["PATH"].split(os.pathsep) if one != beside]
    return shutil.which("python3", path=os.pathsep.join(places)) or sys.executable
