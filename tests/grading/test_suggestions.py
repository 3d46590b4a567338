"""What a group's spread suggests, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grading.engine.outcome import Label, Outcome, TargetResult
from grading.models import CrashGroup, Task, TaskFlag
from grading.queries import evidence
from grading.suggestions import Evidence, suggest
from tests.grading import web_records
from tests.grading.web_records import verdict

PLAIN = Evidence(kind="exception", title="NameError", samples=20, models=5, graded_models=5)
MISS = replace(PLAIN, kind="assertion", title="T/1: target 3 is not true")


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (PLAIN, ""),
        (MISS, ""),
        (replace(MISS, reference="misses"), "grader bug?"),
        (replace(MISS, reference="fails"), "grader bug?"),
        (replace(MISS, reference="passes", near=16, passes=4), "grader bug?"),
        (replace(MISS, near=15, passes=5), ""),
        (replace(MISS, near=20, models=2), ""),
        (replace(MISS, near=4, samples=4), ""),
        (replace(PLAIN, reference="misses"), ""),
        (replace(MISS, flags=frozenset({"suspect"})), "grader bug?"),
        (replace(MISS, flags=frozenset({"limit too tight", "saturated"})), ""),
        (replace(MISS, kind="timeout", flags=frozenset({"limit too tight"})), "grader bug?"),
        (replace(PLAIN, flags=frozenset({"suspect", "flaky"})), ""),
        (replace(PLAIN, kind="platform"), "platform?"),
        (replace(PLAIN, kind="signal", title="signal SIGKILL, when asked"), "platform?"),
        (replace(PLAIN, kind="signal", title="signal SIGSEGV, when asked"), ""),
        (replace(PLAIN, kind="ended", title="judge ended"), "platform?"),
        (replace(PLAIN, kind="timeout", starved=17), "platform?"),
        (replace(PLAIN, kind="timeout", starved=3), ""),
        (replace(PLAIN, worker=("w1", 20), workers=4), "platform?"),
        (replace(PLAIN, worker=("w1", 20), workers=1), ""),
        (replace(PLAIN, model=("Petrel", 19)), "model habit?"),
        (replace(PLAIN, model=("Petrel", 18)), ""),
        (replace(PLAIN, model=("Petrel", 20), graded_models=2), ""),
    ],
)
def test_what_is_suggested(found: Evidence, word: str) -> None:
    hint = suggest(found)
    assert (hint.word if hint else "") == word


@pytest.mark.django_db
def test_a_planted_wrong_target_is_suggested_as_a_bug() -> None:
    """Strong models meet all targets but the wrong one; the reference misses it as well."""
    version = web_records.benchmark(tasks=2)
    results = [TargetResult(at, at != 1, Label.SEALED) for at in range(3)]
    missing = verdict(Outcome.ASSERTION_FAIL, targets=results, passed=2)

    def judge(task: Any, index: int) -> Any:
        return missing if task.position == 0 else verdict(Outcome.PASS)

    rosa = web_records.person("rosa")
    for model in ("Petrel 9B", "Gannet 22B", "Tern 13B"):
        web_records.submission(version, rosa, judge, model=model)
    group = CrashGroup.objects.get()
    found = evidence.suggestions([group])[group.pk]
    assert found.state == "grader_bug"
    assert found.reason.startswith("6 of the 6 samples that meet every other target miss this one")
    Task.objects.filter(position=0).update(reference_verdict=missing.as_dict())
    found = evidence.suggestions([group])[group.pk]
    assert found.reason == "The reference solution misses this target too."


@pytest.mark.django_db
def test_missing_the_only_target_is_no_sign_of_a_bug() -> None:
    version = web_records.benchmark(tasks=1)
    results = [TargetResult(0, False, Label.SEALED)]
    missing = verdict(Outcome.ASSERTION_FAIL, targets=results, passed=0)
    rosa = web_records.person("rosa")
    for model in ("Petrel 9B", "Gannet 22B", "Tern 13B"):
        web_records.submission(version, rosa, lambda task, index: missing, model=model)
    group = CrashGroup.objects.get()
    assert evidence.suggestions([group]) == {}


@pytest.mark.django_db
def test_flags_of_the_task_are_a_reason_for_its_failures_alone() -> None:
    version = web_records.benchmark(tasks=2)
    web_records.submission(
        version, web_records.person("rosa"), lambda task, index: verdict(Outcome.ASSERTION_FAIL)
    )
    TaskFlag.objects.replace(version, {"Tidepool-0": ["suspect", "unsolved"], "Tidepool-1": []})
    groups = list(CrashGroup.objects.order_by("title"))
    found = evidence.suggestions(groups)
    assert list(found) == [groups[0].pk]
    assert found[groups[0].pk].reason == (
        "The task audit flags the task as suspect: better models do worse on it than weaker ones."
    )
