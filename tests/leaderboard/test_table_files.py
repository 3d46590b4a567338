"""Tables of tasks as files: their shape, hostile names, and nothing that was withdrawn."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.urls import reverse

from grading.models import LanguageModel, Submission, Task
from leaderboard import audit, snapshots
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db

PAGES = ("board", "snapshot", "model", "task", "heatmap", "compare", "audit")


@pytest.fixture
def version():
    """Three models on 12 tasks, the first task and the first model with hostile names."""
    made = builders.version(tasks=12)
    builders.submission(made, "Heron", builders.solving(12, 12))
    builders.submission(made, "Skua", builders.solving(5, 12))
    builders.submission(made, "Tern", [(2, 1)] * 12)
    Task.objects.filter(version=made, position=0).update(task_id="=Tide|<b>0")
    LanguageModel.objects.filter(name="Heron").update(name="=Her|<i>on")
    snapshots.take(made)
    audit.audit_due()
    return made


def addresses() -> dict[str, str]:
    return {
        "board": reverse("board", args=["tidepool"]),
        "snapshot": reverse("board_snapshot", args=["tidepool", 1, 1]),
        "model": reverse("model", args=["heron"]),
        "task": reverse("task", args=["tidepool", "tidepool-0"]),
        "heatmap": reverse("heatmap", args=["tidepool"]),
        "compare": reverse("compare_pair", args=["tidepool", "heron", "skua"]),
        "audit": reverse("audit", args=["tidepool", 1]),
    }


def file_of(client, page: str, name: str, query: str = "") -> str:
    response = client.get(f"{addresses()[page]}?format={name}{query}")
    assert response.status_code == 200, (page, name)
    assert response["Content-Disposition"].endswith(f'.{name}"')
    return response.content.decode()


def lines_of(client, page: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(file_of(client, page, "csv"), newline="")))


@pytest.mark.parametrize("page", PAGES)
def test_every_table_is_offered_in_three_formats(client, version, page):
    header, *rows = lines_of(client, page)
    assert rows
    assert {len(row) for row in rows} == {len(header)}
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "@", "+"))]
    json.loads(file_of(client, page, "json"))
    text = file_of(client, page, "md")
    assert "<" not in text.replace("\\<", "")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables[1].startswith("| --- |")
    for name in ("xlsx", "", "csv%00"):
        assert client.get(f"{addresses()[page]}?format={name}").status_code == 404
    body = client.get(addresses()[page]).content.decode()
    for name in ("csv", "json", "md"):
        assert f"format={name}" in body, name


def test_a_comparison_has_a_line_per_task(client, version):
    header, first, *_ = lines_of(client, "compare")
    assert header[:4] == ["task_id", "a_n", "a_c", "a_pass"]
    assert header[-1] == "difference"
    held = dict(zip(header, first, strict=True))
    assert (held["task_id"], held["a_c"], held["b_c"]) == ("'=Tide|<b>0", "1", "1")
    text = file_of(client, "compare", "md")
    assert text.startswith("=Her\\|\\<i\\>on is ahead by 58.3 points")
    assert "| Tidepool/5 | 1/1 | 0/1 | +100.0 |" in text
    assert "Tidepool/4" not in text
    held = json.loads(file_of(client, "compare", "json"))
    assert held["separation"]["win_rate"] == pytest.approx((7 + 5 / 2) / 12)


def test_a_task_has_a_line_per_submission(client, version):
    header, *rows = lines_of(client, "task")
    assert header[:5] == ["model", "submission", "n", "c", "fraction"]
    assert [row[0] for row in rows] == ["'=Her|<i>on", "Skua", "Tern"]
    assert json.loads(file_of(client, "task", "json"))["rows"][2]["assertion_fail"] == 1
    assert "f() == 1" not in "".join(
        file_of(client, "task", name) for name in ("csv", "json", "md")
    )


def test_an_audit_has_a_line_per_task(client, version):
    header, *rows = lines_of(client, "audit")
    assert header[0] == "task_id"
    assert header[-1] == "flags"
    assert len(rows) == 12
    assert "| Tidepool/11 | 3 | 0.667 | 0.500 | – | – | – | – |" in file_of(client, "audit", "md")


def test_a_heatmap_has_a_column_per_model(client, version):
    text = file_of(client, "heatmap", "md", "&columns=number")
    assert text.startswith(
        "Tidepool, version 1: pass rate\n\n| Task | =Her\\|\\<i\\>on | Tern | Skua |"
    )
    assert "| Tidepool/11 | 1.000 | 0.500 | 0.000 |" in text


def test_lone_surrogates_end_no_file(client, version):
    Submission.objects.filter(language_model__slug="skua").update(settings={"notes": "\ud800"})
    for name in ("csv", "json", "md"):
        file_of(client, "model", name)
    address = reverse("model", args=["skua"])
    for name in ("csv", "json", "md"):
        assert client.get(f"{address}?format={name}").status_code == 200


def test_what_was_withdrawn_is_in_no_file(client, version):
    gone = Submission.objects.get(language_model__slug="skua")
    assert any(gone.public_id in file_of(client, page, "json") for page in ("board", "heatmap"))
    Submission.objects.filter(pk=gone.pk).update(visibility="private")
    for page in set(PAGES) - {"compare"}:
        for name in ("csv", "json", "md"):
            text = file_of(client, page, name)
            assert gone.public_id not in text, (page, name)
            assert "Skua" not in text, (page, name)
    for name in ("csv", "json", "md"):
        assert client.get(f"{addresses()['compare']}?format={name}").status_code == 404
    assert client.get(reverse("badge", args=["tidepool", "skua"])).status_code == 404
    assert client.get(reverse("model", args=["skua"]) + "?format=json").status_code == 404
