"""Two programs side by side: which, how they are drawn, and who may see them."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading.engine.outcome import Outcome
from grading.models import AttemptText, BenchmarkVersion, Submission
from leaderboard.program_diff import COMPARED_LINES, side_by_side
from tests.grading import web_records
from tests.leaderboard import builders

A = "def f(xs):\n    if not xs:\n        return 0\n    return sum(xs)\n"
B = "def f(xs):\n    return sum(xs)\n"


def drawn(view) -> list[tuple[int | None, str]]:
    return [(line.number, line.css.strip()) for line in view.lines]


def test_equal_lines_stand_level_with_gaps_between():
    diff = side_by_side(A, B, hits_b={2})
    assert drawn(diff.a) == [(1, ""), (2, "chg"), (3, "chg"), (4, "")]
    assert drawn(diff.b) == [(1, ""), (None, "void"), (None, "void"), (2, "hit")]
    assert diff.changed == (2, 0)


def test_a_changed_line_is_marked_on_both_sides():
    diff = side_by_side("a = 1\nb = 2\n", "a = 1\nb = 3\nc = 4\n", hits_b={2})
    assert drawn(diff.a) == [(1, ""), (2, "chg"), (None, "void")]
    assert drawn(diff.b) == [(1, ""), (2, "hit chg"), (3, "chg")]
    assert diff.changed == (1, 2)


def test_equal_and_empty_programs():
    assert side_by_side(A, A).same
    empty = side_by_side("", A)
    assert len(empty.a.lines) == len(empty.b.lines) == 4
    assert side_by_side("", "").same


def test_long_programs_are_compared_up_to_a_line():
    long = "".join(f"x{i} = {i}\n" for i in range(COMPARED_LINES + 7))
    diff = side_by_side(long, long + "y = 1\n")
    assert diff.same
    assert len(diff.a.lines) == len(diff.b.lines) == COMPARED_LINES
    assert (diff.a.cut, diff.b.cut) == (
        "7 more lines are not compared",
        "8 more lines are not compared",
    )


def test_hostile_programs_are_text():
    hostile = "</code><script>alert(1)</script>\u202e\0\n" + "y" * 100_000
    diff = side_by_side(hostile, A)
    html = "".join(line.html for line in (*diff.a.lines, *diff.b.lines))
    assert "<script" not in html
    assert "U+202E" in html
    assert len(html) < 20_000
    assert "cut at 2,000 characters" in diff.a.cut


@pytest.fixture
def version(db) -> BenchmarkVersion:
    return web_records.benchmark(tasks=3)


def run(version: BenchmarkVersion, model: str, *passing: int, n: int = 2) -> Submission:
    """Samples of this index pass, on every task; each program names its model and index."""

    def judge(task, index):
        outcome = Outcome.PASS if index in passing else Outcome.ASSERTION_FAIL
        program = f"def longest(items):\n    return {model!r}, {index}\n"
        return web_records.verdict(outcome, program=program)

    return web_records.submission(version, builders.user(), judge, n=n, model=model)


def address(query: str = "") -> str:
    return reverse("compare_pair", args=["tidepool", "heron", "skua"]) + query


def text_of(client: Client, query: str = "") -> str:
    response = client.get(address(query))
    assert response.status_code == 200
    body = re.sub(r"</?span[^>]*>", "", response.content.decode().split("<main", 1)[1])
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_the_better_model_shows_a_pass_and_the_other_a_failure(client, version):
    run(version, "Heron", 1)
    run(version, "Skua")
    said = text_of(client, "?task=Tidepool-2")
    assert "Programs for Tidepool/2" in said
    assert (
        "A passes more often: its first sample that passes, the other’s first that fails." in said
    )
    assert "return 'Heron', 1" in said
    assert "return 'Skua', 0" in said
    assert "1 line of A and 1 of B differ" in said
    assert "longest([]) is None : holds for A; B: IndexError: list index out of range" in said


def test_equally_good_models_show_their_first_samples(client, version):
    run(version, "Heron", 1)
    run(version, "Skua", 0)
    said = text_of(client, "?show=all")
    assert "Both pass equally often: the first sample of each." in said
    assert "return 'Heron', 0" in said
    assert "return 'Skua', 0" in said
    assert "holds for B; A: IndexError" in said


def test_programs_follow_the_list(client, version):
    run(version, "Heron", 0, 1)
    run(version, "Skua")
    body = client.get(address()).content.decode()
    assert "Programs for Tidepool/0" in body
    assert 'href="?task=Tidepool-1#programs" rel="next"' in body
    assert 'rel="prev"' not in body
    body = client.get(address("?task=Tidepool-1")).content.decode()
    assert 'href="?task=Tidepool-0#programs" rel="prev"' in body
    assert "Programs for Tidepool/0" in text_of(client, "?task=nothing")
    assert "Programs for" not in text_of(client, "?show=both")


def test_hidden_generations_are_not_shown(client, version):
    shy = run(version, "Heron", 0)
    run(version, "Skua")
    Submission.objects.filter(pk=shy.pk).update(generations_hidden=True)
    said = text_of(client)
    assert "The generations of A are hidden by their uploader" in said
    assert "'Heron'" not in said
    assert "'Skua'" not in said
    assert "holds for A" not in said
    client.force_login(shy.uploader)
    assert "return 'Heron', 0" in text_of(client)


def test_hidden_targets_are_not_told(client, version):
    run(version, "Heron", 0)
    run(version, "Skua")
    version.benchmark.targets_hidden = True
    version.benchmark.save()
    said = text_of(client)
    assert "return 'Heron', 0" in said
    assert "holds for" not in said


def test_runs_are_compared_by_their_ids(client, version):
    older = run(version, "Heron", n=1)
    newer = run(version, "Heron", 0, n=1)
    run(version, "Skua", n=1)
    where = reverse("compare_version", args=["tidepool", 1, older.public_id, "heron"])
    body = client.get(where).content.decode()
    assert f'<option value="{older.public_id}" selected>Heron, {older.public_id}</option>' in body
    assert newer.public_id in body
    assert "Programs for Tidepool/0" in body
    chosen = (
        reverse("compare", args=["tidepool"]) + f"?a={older.public_id}&b=heron&version=1&show=all"
    )
    assert client.get(chosen).url == f"{where}?show=all"
    Submission.objects.filter(pk=older.pk).update(visibility="private")
    assert client.get(where).status_code == 404
    client.force_login(older.uploader)
    assert client.get(where).status_code == 200


def test_a_run_of_another_version_is_not_compared(client, version):
    run(version, "Heron")
    run(version, "Skua")
    other = run(web_records.benchmark("saltworks", tasks=1), "Heron")
    where = reverse("compare_pair", args=["tidepool", other.public_id, "heron"])
    assert client.get(where).status_code == 404


def test_the_old_address_leads_to_the_new(client, version):
    run(version, "Heron", 0)
    run(version, "Skua")
    old = reverse("compare", args=["tidepool"])
    assert client.get(f"{old}?a=skua&b=heron&version=1&show=all").url == (
        "/b/tidepool/v1/compare/skua...heron/?show=all"
    )
    assert client.get(f"{old}?b=skua").url == "/b/tidepool/compare/heron...skua/"
    assert client.get(f"{old}?a=nobody").status_code == 404


def test_programs_cost_the_same_whatever_their_number(client, version):
    run(version, "Heron", 0, n=1)
    run(version, "Skua", n=1)

    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            text_of(client)
        return len(captured)

    before = cost()
    Submission.objects.all().delete()
    run(version, "Heron", 0, n=6)
    run(version, "Skua", n=6)
    assert cost() == before <= 20
    assert AttemptText.objects.count() == 36
