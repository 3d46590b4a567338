"""Sentences that say what a board means."""

from __future__ import annotations

import pytest

from grading.models import Submission
from leaderboard.queries import board
from leaderboard.ranking import Standing
from leaderboard.words import Finding, range_text, settings_text
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def found(*models: tuple[str, int] | tuple[str, int, int], tasks: int = 40) -> Finding:
    """Of a board where each model solves so many of the tasks, from the one given on."""
    version = builders.version(tasks=tasks)
    for name, solved, *first in models:
        builders.submission(version, name, builders.solving(solved, tasks, *first))
    return board(version).finding


def names(finding: Finding) -> list[str]:
    return sorted(
        one.language_model.name for one in Submission.objects.filter(public_id__in=finding.sharing)
    )


def test_nobody():
    finding = found()
    assert finding.strong == finding.top == "No model has a public result here yet."
    assert finding.rest == ""


def test_nobody_ranked():
    version = builders.version(tasks=2)
    builders.submission(version, scores=[(1, 1), None])
    assert board(version).finding.strong == "No model is ranked yet."


def test_one_model():
    finding = found(("A", 20))
    assert finding.strong == finding.top == "A has a pass@1 of 50.0 %."
    assert finding.rest == "It is the only ranked model, so there is no order."
    assert names(finding) == ["A"]


def test_a_clear_lead():
    finding = found(("A", 39), ("B", 2))
    assert finding.strong == "The order at the top is decisive."
    assert finding.rest == (
        "A leads with 97.5 % and is clearly ahead of every other model on these 40 tasks. "
        "Differences under about 12 points are usually noise here."
    )
    assert finding.top == "A leads, and that is decisive"
    assert names(finding) == ["A"]


def test_an_open_order():
    finding = found(("A", 20), ("B", 19), ("C", 18), ("D", 1))
    assert finding.strong == "The order at the top is not decisive."
    assert finding.rest.startswith(
        "A leads with 50.0 %, but ranks 1 to 3 cannot be told apart on these 40 tasks; "
        "it is clearly ahead from D down. Differences under about "
    )
    assert finding.top == "3 share the top: A to C"
    assert names(finding) == ["A", "B", "C"]


def test_nobody_apart():
    finding = found(("A", 20), ("B", 19))
    assert "A leads with 50.0 %, but ranks 1 to 2 cannot be told apart on" in finding.rest
    assert finding.top == "2 share the top: A and B"


def test_a_shared_lead():
    finding = found(("A", 20), ("B", 20))
    assert finding.strong == "The order at the top is not decisive."
    assert finding.rest == (
        "A and B share the lead with 50.0 %, "
        "but ranks 1 to 2 cannot be told apart on these 40 tasks."
    )


def test_a_shared_lead_that_is_clear_of_others():
    finding = found(("A", 40), ("B", 40), ("C", 1))
    assert "they are clearly ahead from C down." in finding.rest


def test_many_leaders_are_counted():
    finding = found(*((name, 20) for name in "ABCDE"))
    assert finding.rest.startswith("A, B and 3 more share the lead with 50.0 %")
    assert finding.top == "5 share the top: A to E"


def test_who_is_level_need_not_stand_in_one_piece():
    # B fails where A does; C solves other tasks, so that chance explains its distance to A.
    finding = found(("A", 90, 0), ("B", 80, 0), ("C", 79, 21), tasks=100)
    assert finding.rest.startswith(
        "A leads with 90.0 %, but 1 of the other 2 cannot be told apart from it on these 100 tasks."
    )
    assert "clearly ahead" not in finding.rest
    assert finding.top == "2 share the top: A and C"
    assert names(finding) == ["A", "C"]


def test_level_with_the_leader_but_not_with_each_other():
    finding = found(("A", 85, 15), ("B", 80, 0), ("C", 70, 0), tasks=100)
    assert "but 2 of the other 2 cannot be told apart from it on these 100 tasks" in finding.rest


def test_too_few_tasks_for_a_test():
    finding = found(("A", 9), ("B", 0), tasks=9)
    assert finding.strong == "The order at the top is not decisive."
    assert finding.rest == (
        "A leads with 100.0 %, but with fewer than 10 tasks no two models can be told apart."
    )


@pytest.mark.parametrize(
    ("held", "text"), [(Standing(1, 4, 10, 0, 3), "1–4"), (Standing(3, 3, 0, 2, 0), "3")]
)
def test_a_range_of_ranks(held, text):
    assert range_text(held) == text


def test_settings_in_a_cell():
    stated = {"temperature": 0.2, "n": 5, "prompt_style": "chat", "notes": "long", "top_p": ""}
    assert settings_text(stated) == "temperature 0.2, chat"
    assert settings_text({}) == ""
    assert settings_text({"prompt_style": "x" * 100}).endswith("…")
