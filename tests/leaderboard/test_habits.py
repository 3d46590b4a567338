"""Points lost by failure habit: the parts make the whole, and no text of a program is in them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from grading.engine.outcome import Failure, Outcome
from grading.models import Fingerprint
from leaderboard.cards import card
from leaderboard.habits import habit_name, losses
from tests.grading import web_records
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def graded(n=2):
    """Five tasks; one outcome each, and one exception of the program's own making."""
    version = web_records.benchmark(tasks=5)

    def judge(task, index):
        outcome = list(Outcome)[task.position]
        if outcome is Outcome.ERROR and index:
            own = Failure(phase="import", exception="SecretError", message="x", frames=[])
            return web_records.verdict(outcome, failure=own)
        return web_records.verdict(outcome)

    return web_records.submission(version, web_records.person("rosa"), judge, n=n)


def test_outcomes_and_habits_add_up_to_what_is_lost():
    made = graded()
    found = losses(made.public_id, card("quillfish-8b", made.uploader).tasks)
    assert {one.outcome: (one.points, one.tasks, one.samples) for one in found} == {
        outcome.value: (pytest.approx(0.2), 1, 2) for outcome in Outcome if outcome != "pass"
    }
    for one in found:
        assert sum(habit.points for habit in one.habits) == pytest.approx(one.points)
        assert sum(habit.samples for habit in one.habits) == one.samples
    assert sum(one.points for one in found) == pytest.approx(0.8)  # pass@1 is 0.2


def test_habits_are_told_by_type_and_never_by_the_program_s_words():
    made = graded()
    found = losses(made.public_id, card("quillfish-8b", made.uploader).tasks)
    names = {one.outcome: [habit.name for habit in one.habits] for one in found}
    assert names["error"] == [
        "NameError while loading",
        "an exception that is not Python's own while loading",
    ]
    assert names["assertion_fail"] == ["a call raises IndexError"]
    assert names["syntax_error"] == ["SyntaxError when compiled"]


@pytest.mark.parametrize(
    ("kind", "parts", "name"),
    [
        ("assertion", [("where", "target 3")], "a target is not true"),
        ("timeout", [("where", "import in f")], "time limit passed while loading"),
        ("signal", [("kind", "signal:SIGKILL")], "ended by signal SIGKILL"),
        ("exit", [("kind", "exit:3")], "ended by status 3"),
        ("exception", [("type", "print"), ("where", "target")], None),
        ("denied import", [("message", "shutil")], "a denied import while loading"),
        ("ended", [("message", "output overflow")], "ended otherwise"),
    ],
)
def test_names_of_habits(kind, parts, name):
    expected = name or "an exception that is not Python's own when asked"
    assert habit_name(kind, parts) == expected


def test_fingerprints_cost_two_queries(django_assert_num_queries):
    made = graded()
    tasks = card("quillfish-8b", made.uploader).tasks
    assert Fingerprint.objects.count() > 3
    with django_assert_num_queries(2):
        losses(made.public_id, tasks)


def test_the_page_says_what_failures_cost(client):
    graded()
    body = client.get(reverse("model", args=["quillfish-8b"])).content.decode()
    assert "<strong>timeout</strong> costs 20.0 points in 1 task" in body
    assert "SecretError" not in body.partition('aria-labelledby="ls"')[2].partition("</section>")[0]


def test_scores_without_stored_samples_still_add_up():
    version = builders.version(tasks=2)
    made = builders.submission(version, "Heron", [(4, 1), {"n": 2, "c": 0, "timeout": 2}])
    found = losses(made.public_id, card("heron", builders.user()).tasks)
    assert [(one.outcome, one.points, one.habits) for one in found] == [
        ("timeout", 0.5, ()),
        ("assertion_fail", 0.375, ()),
    ]
