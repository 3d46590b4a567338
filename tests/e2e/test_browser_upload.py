"""The upload page in Chromium: its report in every theme and width, dropping a file, no script."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grading.models import BenchmarkVersion, Generation, Submission
from tests.grading import web_records

pytest.importorskip("playwright", reason="needs the package playwright")
pytest.importorskip("axe_playwright_python", reason="needs the package axe-playwright-python")

from tests.e2e.browser import SCHEMES, WIDTHS, launched, visiting

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

HOSTILE = (
    "<script>alert(1)</script> \u202e \0 \ud800\n```python\ndef longest(items):\n    return 1\n```"
)
DROP = """
([selector, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
    document.querySelector(selector).dispatchEvent(event);
  }
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


@pytest.fixture(autouse=True)
def rosa() -> Any:
    web_records.benchmark(tasks=6)
    return web_records.person("rosa")


def rows(count: int, **fields: Any) -> str:
    texts = {"generation": web_records.CHAT} | fields
    some = ({"task_id": f"Tidepool/{number}"} | texts for number in range(count))
    return "".join(json.dumps(row) + "\n" for row in some)


FILES = {
    "clean": rows(6),
    "peer": rows(6, passed=True, result="passed"),
    "faulty": rows(3, generation=HOSTILE) + rows(9, generation=7) + "{\n" * 30 + '{"x": NaN}\n',
    "suspicious": rows(5, completion="some prose that is no program", generation=None),
    "unusable": "",
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_report_is_clean(
    browser: Any, live_server: Any, tmp_path: Path, scheme: str, width: int
) -> None:
    with visiting(browser, live_server.url, scheme, width) as visitor:
        visitor.sign_in("rosa", web_records.PASSWORD)
        found = []
        for name, content in FILES.items():
            file = tmp_path / f"quillfish-{name}.jsonl"
            file.write_text(content, encoding="utf-8")
            visitor.go("/submit/")
            visitor.expected_status = 422
            visitor.page.get_by_label("Drop a file here or choose one").set_input_files(file)
            visitor.page.get_by_label("Language model").fill("Quillfish 8B")
            visitor.page.get_by_role("button", name="Check", exact=True).click()
            visitor.page.get_by_role("heading", name="Report").wait_for()
            found += visitor.problems()
            if directory := os.environ.get("EVALSITE_SCREENSHOTS"):
                visitor.shoot(Path(directory, f"report-{name}-{width}-{scheme}.png"))
        assert found == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_of_a_run_with_other_verdicts_is_clean(
    browser: Any, live_server: Any, rosa: Any, scheme: str, width: int
) -> None:
    made = web_records.submission(BenchmarkVersion.objects.get(), rosa)
    Generation.objects.filter(sample__task__position__lt=4).update(peer_passed=True)
    Generation.objects.filter(sample__task__position=4).update(peer_passed=False)
    Submission.objects.update(intake={"layout": "JSON Lines", "peer_verdicts": 10})
    with visiting(browser, live_server.url, scheme, width) as visitor:
        visitor.go(f"/s/{made.public_id}/")
        visitor.page.get_by_role("heading", name="Another grader's verdicts").wait_for()
        found = visitor.problems()
        if directory := os.environ.get("EVALSITE_SCREENSHOTS"):
            visitor.shoot(Path(directory, f"agreement-{width}-{scheme}.png"))
        assert found == []


def test_a_file_is_dropped_on_the_zone_checked_and_queued(browser: Any, live_server: Any) -> None:
    with visiting(browser, live_server.url) as visitor:
        visitor.sign_in("rosa", web_records.PASSWORD)
        visitor.go("/submit/")
        visitor.page.evaluate(DROP, ["[data-drop]", "dropped.jsonl", FILES["clean"]])
        assert visitor.page.evaluate("document.querySelector('[type=file]').files[0].name") == (
            "dropped.jsonl"
        )
        visitor.page.get_by_label("Language model").fill("Quillfish 8B")
        visitor.page.get_by_role("button", name="Check", exact=True).click()
        visitor.page.get_by_text("Kept from the last check").wait_for()
        visitor.page.get_by_label("Texts are").select_option("chat replies or whole programs")
        visitor.page.get_by_role("button", name="Check again").click()
        visitor.page.get_by_role("button", name="Queue for grading").click()
        visitor.page.get_by_role("heading", name="Quillfish 8B on Tidepool").wait_for()
        assert visitor.problems() == []
    assert Submission.objects.get().file_name == "dropped.jsonl"


def test_good_samples_are_queued_without_scripts(
    browser: Any, live_server: Any, tmp_path: Path
) -> None:
    file = tmp_path / "faulty.jsonl"
    file.write_text(FILES["faulty"], encoding="utf-8")
    with visiting(browser, live_server.url, javascript=False) as visitor:
        visitor.sign_in("rosa", web_records.PASSWORD)
        visitor.go("/submit/")
        visitor.expected_status = 422
        visitor.page.get_by_label("Drop a file here or choose one").set_input_files(file)
        visitor.page.get_by_label("Language model").fill("Quillfish 8B")
        visitor.page.get_by_role("button", name="Check", exact=True).click()
        visitor.page.get_by_role("button", name="Queue the 3 good samples only").click()
        visitor.page.get_by_role("heading", name="Quillfish 8B on Tidepool").wait_for()
        assert visitor.faults == []
    assert Submission.objects.get().sample_count == 3
