"""A wrong target, from the triage queue to the board of the version in which it is put right."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from grading import benchmarks, grader, jobs, regrade_jobs, uploads
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.models import BenchmarkVersion, Chunk, Regrade
from leaderboard import snapshots
from tests.grading import web_records

pytest.importorskip("playwright", reason="needs the package playwright")
pytest.importorskip("axe_playwright_python", reason="needs the package axe-playwright-python")

from tests.e2e.browser import Visitor, launched, visiting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

ADD = "def add(a, b):\n    return a + b\n"
DOUBLE = "def double(a):\n    return 2 * a\n"
MODELS = ("Petrel 9B", "Gannet 22B", "Tern 13B")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


@pytest.fixture(autouse=True)
def own_sandbox(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    monkeypatch.setattr(grader, "sandbox", lambda: sandbox)


def imported(second: str, sandbox: Sandbox) -> BenchmarkVersion:
    """The benchmark's next version; ``second`` is the second target of its first task."""
    records = [
        TaskRecord(
            task_id="Sums/0",
            prompt="Write add(a, b).",
            targets=("assert add(1, 2) == 3", second, "assert add(0, 0) == 0"),
            reference=ADD,
        ),
        TaskRecord(
            task_id="Sums/1",
            prompt="Write double(a).",
            targets=("assert double(2) == 4",),
            reference=DOUBLE,
        ),
    ]
    version = benchmarks.import_version("sums", "Sums", records).version
    benchmarks.grade_references(version, sandbox)
    return version


def graded(version: BenchmarkVersion, model: str, by: Any) -> None:
    """Two samples per task, through the code that a worker runs."""
    answers = {"Sums/0": ADD, "Sums/1": DOUBLE}
    lines = "".join(
        json.dumps({"task_id": task, "generation": text, "sample": sample}) + "\n"
        for task, text in answers.items()
        for sample in range(2)
    )
    uploads.accept(io.BytesIO(lines.encode()), "sums.jsonl", version, model, by)
    while chunk := Chunk.objects.filter(state="queued").first():
        jobs.grade_chunk(chunk.pk)


def test_a_wrong_target_is_found_put_right_and_regraded(
    browser: Any, live_server: Any, sandbox: Sandbox
) -> None:
    rosa, _ = web_records.person("rosa"), web_records.person("sam", staff=True)
    old = imported("assert add(2, 2) == 5", sandbox)
    for model in MODELS:
        graded(old, model, rosa)
    snapshots.take_due()
    with visiting(browser, live_server.url) as visitor:
        visitor.sign_in("sam", web_records.PASSWORD)
        _triage(visitor)
        new = imported("assert add(2, 2) == 4", sandbox)
        _say_where_it_is_fixed(visitor)
        _ask_for_a_regrade(visitor)
        regrade = Regrade.objects.get()
        while regrade.state == "running":
            regrade_jobs.regrade(regrade.pk)
            regrade.refresh_from_db()
        _apply(visitor, regrade)
        snapshots.take_due()
        _read_the_story(visitor, new)


def _triage(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("link", name="Triage").click()
    row = page.get_by_role("row").filter(has_text="Sums/0: target 2 is not true")
    assert "grader bug?" in row.inner_text()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_text("The reference solution misses this target too.").wait_for()
    assert visitor.problems() == []
    page.keyboard.press("3")
    page.get_by_text("assert add(2, 2) == 5").wait_for()
    page.get_by_label("State").select_option("grader bug")
    page.get_by_label("Reason or note").fill("2 + 2 is 4")
    page.get_by_role("button", name="Save, stay").click()
    visitor.go("/b/sums/tasks/Sums-0/")
    assert "Under review" in page.inner_text("main")
    assert visitor.problems() == []


def _say_where_it_is_fixed(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/triage/?state=grader_bug")
    page.get_by_role("link", name="Sums/0: target 2 is not true · returned 4", exact=True).click()
    page.get_by_label("State").select_option("grader bug")
    page.get_by_text("Until when").click()
    page.get_by_label("Fixed in benchmark version").select_option("Sums, version 2")
    page.get_by_role("button", name="Save, stay").click()
    page.get_by_text("fixed in Sums version 2").wait_for()


def _ask_for_a_regrade(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/regrades/new/?benchmark=sums&version=1")
    page.get_by_label("Against the tasks of").select_option("Sums, version 2")
    page.get_by_label("Reason").fill("Target 2 of Sums/0 was wrong")
    page.get_by_role("button", name="Count").click()
    page.get_by_text("6 samples would be run.").wait_for()
    page.get_by_role("button", name="Start regrade").click()
    page.get_by_text("0 of 6 runs made.").wait_for()
    assert visitor.problems() == []


def _apply(visitor: Visitor, regrade: Regrade) -> None:
    visitor.go(f"/regrades/{regrade.public_id}/")
    assert visitor.problems() == []
    visitor.page.get_by_role("button", name="Apply all").click()
    visitor.page.get_by_text("Applied to 6 of 6 samples").wait_for()


def _read_the_story(visitor: Visitor, new: BenchmarkVersion) -> None:
    page = visitor.page
    for number, score in ((1, "50.0"), (2, "100.0")):
        visitor.go(f"/b/sums/v{number}/")
        rows = page.get_by_role("row").filter(has_text="Petrel 9B")
        assert score in rows.first.inner_text()
    visitor.go("/b/sums/v1/changes/")
    assert "Put right in version 2: Sums/0." in page.inner_text("main")
    visitor.go("/b/sums/v2/changes/")
    assert "6 samples of changed tasks graded anew" in page.inner_text("main")
    assert "Target 2 of Sums/0 was wrong" in page.inner_text("main")
    assert visitor.problems() == []
    visitor.go("/b/sums/tasks/Sums-0/?version=1")
    page.get_by_role("link", name="version 2").click()
    assert "Under review" not in page.inner_text("main")
    assert new.tasks.filter(status="suspect").count() == 0
