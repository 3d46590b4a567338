"""Sentences that say what a board means."""

from __future__ import annotations

import pytest

from leaderboard.queries import board
from leaderboard.words import settings_text
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def finding(*models: tuple[str, int], tasks: int = 40) -> tuple[str, str]:
    """Of a board where each model solves so many of the tasks with its one sample."""
    version = builders.version(tasks=tasks)
    for name, solved in models:
        scores = [(1, 1)] * solved + [(1, 0)] * (tasks - solved)
        builders.submission(version, name, scores)
    found = board(version).finding
    return found.strong, found.rest


def test_nobody():
    assert finding() == ("No model has a public result here yet.", "")


def test_nobody_ranked():
    version = builders.version(tasks=2)
    builders.submission(version, scores=[(1, 1), None])
    assert board(version).finding.strong == "No model is ranked yet."


def test_one_model():
    strong, rest = finding(("A", 20))
    assert strong == "A has a pass@1 of 50.0 %."
    assert rest == "It is the only ranked model, so there is no order."


def test_a_clear_lead():
    strong, rest = finding(("A", 39), ("B", 2))
    assert strong == "A leads with 97.5 %."
    assert rest == "No other model's 95 % interval reaches its own."


def test_an_open_order():
    strong, rest = finding(("A", 20), ("B", 19), ("C", 18), ("D", 1))
    assert strong == "A leads with 50.0 %."
    assert rest.startswith("The 95 % intervals of 2 other models reach its own")


def test_a_shared_lead():
    assert finding(("A", 20), ("B", 20)) == (
        "A and B share the lead with 50.0 %.",
        "Every ranked model has the same score.",
    )


def test_many_leaders_are_counted():
    strong, _ = finding(*((name, 20) for name in "ABCDE"))
    assert strong == "A, B and 3 more share the lead with 50.0 %."


def test_settings_in_a_cell():
    stated = {"temperature": 0.2, "n": 5, "prompt_style": "chat", "notes": "long", "top_p": ""}
    assert settings_text(stated) == "temperature 0.2, chat"
    assert settings_text({}) == ""
    assert settings_text({"prompt_style": "x" * 100}).endswith("…")
