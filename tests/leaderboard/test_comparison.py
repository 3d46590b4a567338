"""Two models side by side: what is compared, what is said, at what cost."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from django.db import connection
from django.http import Http404
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from leaderboard.comparison import Comparison, chosen, compare
from leaderboard.comparison_charts import bars, difference
from leaderboard.comparison_words import finding, p_text, signed
from leaderboard.discordance import TwoByTwo
from leaderboard.statistics import paired
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def solvers(*models: tuple[str, int, int], tasks: int = 40):
    """A version where each model solves so many tasks from the one given on."""
    version = builders.version(tasks=tasks)
    for name, solved, first in models:
        builders.submission(version, name, builders.solving(solved, tasks, first))
    return version


def found(*models: tuple[str, int, int], tasks: int = 40) -> Comparison:
    comparison = compare(solvers(*models, tasks=tasks))
    assert comparison is not None
    return comparison


def address(query: str = "") -> str:
    return reverse("compare", args=["tidepool"]) + query


def text_of(client: Client, query: str = "") -> str:
    response = client.get(address(query), follow=True)
    assert response.status_code == 200
    body = response.content.decode().split("<main", 1)[1]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_counts_and_tests_of_a_pair():
    pair = found(("A", 30, 0), ("B", 20, 5))
    assert (pair.a.model, pair.b.model) == ("A", "B")
    assert pair.solved == TwoByTwo(both=20, only_a=10, only_b=0, neither=10)
    assert (pair.a_better, pair.b_better, pair.equal) == (10, 0, 30)
    assert pair.paired.difference == 0.25
    assert pair.adjusted_p == pytest.approx(pair.paired.p)  # one pair: nothing to adjust for
    assert pair.one_sample
    assert pair.flips_p == pair.solved.mcnemar_p == 2 / 2**10
    assert pair.matrix()[0][:2] == [20, 10]
    assert sum(map(sum, pair.matrix())) == 40


def test_only_common_tasks_are_compared():
    version = builders.version(tasks=20)
    builders.submission(version, "A", [(2, 1)] * 20)
    builders.submission(version, "B", [None, None, *[(4, 1)] * 18])
    pair = compare(version, "a", "b")
    assert len(pair.tasks) == pair.paired.tasks == 18
    assert pair.adjusted_p is None
    assert {one.difference for one in pair.tasks} == {Fraction(1, 4)}
    assert not pair.one_sample


def test_a_task_is_solved_by_more_than_half():
    version = builders.version(tasks=1)
    builders.submission(version, "A", [(4, 2)])
    builders.submission(version, "B", [(4, 3)])
    assert compare(version, "a", "b").solved == TwoByTwo(0, 0, 1, 0)


def test_the_usual_outcome_is_the_most_frequent_then_the_first():
    version = builders.version(tasks=2)
    builders.submission(version, "A", [{"n": 5, "c": 1, "timeout": 3, "error": 1}, (2, 1)])
    builders.submission(version, "B", [{"n": 2, "c": 0, "error": 1, "timeout": 1}, (1, 0)])
    usual = [pair.outcomes for pair in compare(version, "a", "b").tasks]
    assert usual == [("timeout", "error"), ("pass", "assertion_fail")]


def test_who_is_compared():
    version = solvers(("Best", 30, 0), ("Second", 20, 0), ("Third", 10, 0))
    names = [
        (pair.a.model, pair.b.model)
        for pair in (
            compare(version),
            compare(version, "third"),
            compare(version, "", "best"),
            compare(version, "third", "second"),
        )
    ]
    assert names == [
        ("Best", "Second"),
        ("Third", "Best"),
        ("Second", "Best"),
        ("Third", "Second"),
    ]
    with pytest.raises(Http404):
        compare(version, "best", "nobody")


def test_one_model_is_compared_with_nobody(client):
    version = solvers(("A", 3, 0))
    assert compare(version) is None
    assert "A comparison needs two models" in text_of(client)


def test_which_tasks_are_listed():
    pair = found(("A", 30, 0), ("B", 20, 5))
    anything = ("", "")
    assert len(chosen(pair.tasks, "different", anything)) == 10
    assert len(chosen(pair.tasks, "all", anything)) == 40
    assert len(chosen(pair.tasks, "both", anything)) == 20
    assert len(chosen(pair.tasks, "only_b", anything)) == 0
    assert len(chosen(pair.tasks, "all", ("pass", "assertion_fail"))) == 10
    assert abs(chosen(pair.tasks, "all", anything)[0].difference) == 1


def test_words_of_a_decisive_pair():
    said = finding(found(("A", 40, 0), ("B", 10, 0), ("C", 9, 0)))
    assert said.strong == "A is ahead by 75.0 points, and that is decisive."
    assert "p < 0.001, paired over 40 common tasks." in said.rest
    assert "Among all 3 pairs of the board it is decisive too (Holm, p < 0.001)." in said.rest
    assert said.rest.endswith("A passes more often on 30 tasks, B on 0; 10 are equal.")


def test_words_of_a_pair_decisive_only_alone():
    others = [(f"M{i}", 32 - i, 0) for i in range(4)]
    version = solvers(("A", 40, 0), *others)
    said = finding(compare(version, "m3", "a"))
    assert said.strong == "A is ahead by 27.5 points, and that is decisive."
    said = finding(compare(version, "a", "m0"))
    assert said.strong == "A is ahead by 20.0 points: decisive for this pair alone."
    assert "Among all 10 pairs of the board it is not decisive (Holm, p = " in said.rest


def test_words_where_chance_explains_it():
    said = finding(found(("A", 20, 0), ("B", 19, 1)))
    assert said.strong == "A is ahead by 2.5 points, which may be chance."
    assert "95 % interval −" in said.rest
    assert "Among all" not in said.rest


def test_words_of_equals():
    assert finding(found(("A", 20, 0), ("B", 20, 20))).strong == "Both have the same score."


def test_words_of_one_run_twice():
    version = solvers(("A", 20, 0), ("B", 2, 0))
    assert finding(compare(version, "a", "a")).strong == "These are the same run."


def test_few_common_tasks_are_not_tested(client):
    solvers(("A", 9, 0), ("B", 0, 0), tasks=9)
    said = text_of(client)
    assert "Too few common tasks for a test: 9." in said
    assert "Exact cross-check" not in said


@pytest.mark.parametrize(
    ("value", "text"), [(0.041, "+4.1"), (-0.0066, "−0.7"), (0, "0.0"), (Fraction(-1, 2), "−50.0")]
)
def test_points_are_signed(value, text):
    assert signed(value) == text


@pytest.mark.parametrize(
    ("p", "text"), [(0.0001, "p < 0.001"), (0.0126, "p = 0.013"), (0.179, "p = 0.18")]
)
def test_p_values_are_short(p, text):
    assert p_text(p) == text


def test_the_charts_place_what_they_say():
    drawn = difference(paired([1.0] * 30, [1.0] * 20 + [0.0] * 10))
    assert 'aria-label="Difference +33.3 points, 95 % interval ' in drawn
    assert 'class="gl zero" x1="8.00%"' in drawn
    up, down = re.findall(r'class="ab-(?:a|b)" x="[\d.]+" y="([\d.]+)"', bars([-0.5, 0, 1], "x"))
    assert (up, down) == ("4.0", "70.0")


def test_the_page_links_to_its_evidence(client):
    version = builders.version(tasks=12)
    a = builders.submission(
        version, "A", [(5, 4)] * 12, settings={"temperature": 0.2, "prompt_style": "chat"}
    )
    builders.submission(
        version, "B", [(5, 1)] * 12, settings={"temperature": 0.8, "prompt_style": "chat"}
    )
    body = client.get(address(), follow=True).content.decode()
    samples = reverse("submission-samples", args=[a.public_id])
    assert f'href="{samples}?task=tidepool-3"' in body
    assert body.count('class="differs"') == 1
    said = text_of(client)
    assert "temperature 0.2 0.8 differs" in said
    assert "12 tasks that differ" in said
    assert "12 tasks solved by A only" in text_of(client, "?show=only_a")
    assert "12 tasks from pass to assertion_fail" in text_of(client, "?from=pass&to=assertion_fail")
    assert "No task goes from pass to timeout." in text_of(client, "?from=pass&to=timeout")
    assert "12 tasks that differ" in text_of(client, "?show=<b>&from=x&to=y&page=z")
    assert client.get(address("?a=nobody")).status_code == 404
    assert client.get(address("?version=7")).status_code == 404


def test_rank_ranges_open_the_comparison(client):
    solvers(("A", 20, 0), ("B", 19, 0))
    body = client.get(reverse("board", args=["tidepool"])).content.decode()
    assert f'href="{address()}?a=b&amp;version=1"' in body


def test_the_start_leads_to_a_board_with_results(client):
    assert client.get(reverse("compare_start")).url == reverse("home")
    solvers(("A", 20, 0), ("B", 19, 0))
    builders.version(slug="saltworks")
    assert client.get(reverse("compare_start")).url == address()
    assert 'aria-current="true">Compare' in client.get(address(), follow=True).content.decode()


def test_hostile_names_are_text_and_nothing_is_inline(client):
    version = builders.version(tasks=12)
    builders.submission(
        version, "<script>alert(1)</script>", [(1, 1)] * 12, settings={"<b>": "<i>"}
    )
    builders.submission(version, "B", [(1, 0)] * 12)
    body = client.get(address(), follow=True).content.decode()
    assert "&lt;script&gt;alert(1)" in body
    assert not re.search(r"<script>alert|<b>\W*</th>|<i>|\sstyle=|\son[a-z]+=", body)


def test_costs_do_not_grow(client):
    version = solvers(("A", 20, 0), ("B", 19, 0))

    where = reverse("compare_pair", args=["tidepool", "a", "b"])

    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(where).status_code == 200
        return len(captured)

    before = cost()
    for i in range(15):
        builders.submission(version, f"M{i}", builders.solving(i, 40))
    assert cost() == before <= 15
