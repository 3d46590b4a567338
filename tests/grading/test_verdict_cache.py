"""Verdicts of equal runs are shared, and nothing but equal runs counts as equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from grading import chunks, jobs, verdict_cache, verdicts
from grading.engine.outcome import Extraction, Outcome, Verdict
from grading.engine.program import Program
from grading.engine.task import Task
from grading.models import Attempt, Submission, TaskScore
from tests.grading.pipeline_records import (
    PASSING,
    first_lease,
    stored_submission,
    unstarted_sandbox,
    verdict,
)

pytestmark = pytest.mark.django_db
FENCED = f"```python\n{PASSING}```\n"


@pytest.fixture
def runs(replaced_grade: Callable[[Callable[..., Verdict]], None]) -> list[str]:
    """Programs that were run, each as a pass of all three targets."""
    done: list[str] = []

    def run(task: Task, program: Any, *_: Any, **__: Any) -> Verdict:
        done.append(program.text)
        return verdict(program=program.text, extraction=program.extraction)

    replaced_grade(run)
    return done


def graded(submission: Submission) -> list[Attempt]:
    for chunk in submission.chunks.order_by("position"):
        chunks.ring(chunk.pk)
        jobs.grade_chunk(chunk.pk)
    return list(Attempt.objects.filter(sample__submission=submission).order_by("pk"))


def test_an_equal_program_is_not_run_again(runs: list[str]) -> None:
    submission = stored_submission(tasks=2, per_task=3, per_chunk=1)
    changed = submission.samples.order_by("task", "index")[1].generation
    changed.text = FENCED
    changed.save()
    attempts = graded(submission)
    assert runs == [PASSING, PASSING]
    by_task = [[one for one in attempts if one.sample.task.position == at] for at in (0, 1)]
    for first, *others in by_task:
        assert first.repeats is None
        assert [one.repeats for one in others] == [first, first]
        assert all(one.text.targets == first.text.targets for one in others)
    fenced = Attempt.objects.get(sample=changed.sample)
    assert fenced.text.extraction["rule"] != by_task[0][0].text.extraction["rule"]
    assert [score.c for score in TaskScore.objects.all()] == [3, 3]


def test_the_setting_turns_it_off(runs: list[str], settings: Settings) -> None:
    settings.VERDICT_CACHE = False
    attempts = graded(stored_submission(tasks=1, per_task=3, per_chunk=1))
    assert len(runs) == 3
    assert [one.repeats for one in attempts] == [None] * 3


def test_another_submission_shares_within_the_version_only(runs: list[str]) -> None:
    first = stored_submission(tasks=1, per_task=1)
    graded(first)
    again = stored_submission(tasks=1, per_task=1)
    again.samples.update(task=first.samples.get().task)
    (repeated,) = graded(again)
    assert repeated.repeats is not None and repeated.repeats.sample.submission == first
    graded(stored_submission(tasks=1, per_task=1))
    assert len(runs) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"task_pk": 2},
        {"program": "\n" + PASSING},
        {"program": PASSING.replace("a + b", "b + a")},
        {"task": replace(Task(("add(1, 2) == 3",)), timeout_s=4.0)},
        {"task": Task(("add(1, 2) == 4",))},
        {"task": replace(Task(("add(1, 2) == 3",)), in_place=True)},
        {"task": replace(Task(("add(1, 2) == 3",)), denylist=())},
        {"sandbox": {"tier": "rlimit"}},
        {"sandbox": {"hardening": []}},
        {"sandbox": {"python_version": "3.8.0"}},
        {"sandbox": {"address_space_limit": 1 << 30}},
        {"sandbox": {"environment": SimpleNamespace(stamp="0123456789ab")}},
        {"sandbox": {"variables": {"A": "1"}}},
    ],
)
def test_whatever_decides_a_verdict_is_in_the_key(changed: dict[str, Any]) -> None:
    facts: dict[str, Any] = {
        "task_pk": 1,
        "task": Task(("add(1, 2) == 3",)),
        "program": PASSING,
        "sandbox": unstarted_sandbox(),
    }
    before = verdict_cache.run_key(**facts)
    assert before == verdict_cache.run_key(**facts)
    if "sandbox" in changed:
        changed = {"sandbox": SimpleNamespace(**(vars(unstarted_sandbox()) | changed["sandbox"]))}
    assert before != verdict_cache.run_key(**(facts | changed))


def test_comments_are_no_part_of_it() -> None:
    task = Task(("add(1, 2) == 3",))
    keys = {
        verdict_cache.run_key(1, task, program, unstarted_sandbox())
        for program in (PASSING, PASSING + "# That is all.\n")
    }
    assert len(keys) == 1


def test_hostile_programs_have_keys() -> None:
    texts = ["\ud800", "\0", "\N{SNOWMAN}", ""]
    task = Task(("f() == 1",))
    keys = {verdict_cache.run_key(1, task, text, unstarted_sandbox()) for text in texts}
    assert len(keys) == len(texts)


def test_a_repeat_keeps_its_own_comments(runs: list[str]) -> None:
    submission = stored_submission(tasks=1, per_task=2, per_chunk=1)
    first, second = (sample.generation for sample in submission.samples.order_by("index"))
    second.text = PASSING + "# Here is another way.\n"
    second.save()
    run, repeat = graded(submission)
    assert runs == [PASSING] and repeat.repeats == run
    assert repeat.text.program == second.text and run.text.program == first.text


@pytest.mark.parametrize(
    ("second", "reused"),
    [
        (verdict(), True),
        (verdict(Outcome.ASSERTION_FAIL, passed=2), False),
        (verdict(Outcome.TIMEOUT, passed=0), False),
    ],
)
def test_runs_that_disagree_are_run_again(second: Verdict, reused: bool) -> None:
    store(lambda: verdict())
    store(lambda: second)
    assert ("key" in verdict_cache.find(["key"])) is reused


def test_what_the_host_may_have_killed_is_run_again() -> None:
    store(lambda: verdict(Outcome.ERROR, passed=0, detail="killed by SIGKILL"))
    assert verdict_cache.find(["key"]) == {}


def store(ruling: Callable[[], Verdict]) -> Attempt:
    """One sample with a run of its own under the key ``key``."""
    lease = first_lease(stored_submission(tasks=1, per_task=1))
    (sample_id,) = chunks.queued_samples(lease)
    assert chunks.begin(lease, sample_id)
    assert verdicts.record(sample_id, lease.token, ruling(), lease.worker, "key")
    return Attempt.objects.get(sample=sample_id)


def test_only_the_holder_of_the_lease_may_repeat() -> None:
    run = store(lambda: verdict())
    lease = first_lease(stored_submission(tasks=1, per_task=2))
    first, second = chunks.queued_samples(lease)
    repeats = {
        pk: verdicts.Repeat(run, Program(PASSING, Extraction("whole", None, 0)))
        for pk in (first, second)
    }
    assert verdicts.repeat(replace(lease, token="another"), repeats) == set()
    assert verdicts.record(first, lease.token, verdict(), lease.worker)
    assert verdicts.repeat(lease, repeats) == {second}
    assert verdicts.repeat(lease, repeats) == set()
    assert Attempt.objects.filter(repeats=run).count() == 1


def test_known_verdicts_of_a_chunk_cost_a_bounded_number_of_queries(
    runs: list[str], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    version = stored_submission(tasks=4, per_task=1, per_chunk=4)
    graded(version)
    again = stored_submission(tasks=4, per_task=1, per_chunk=4)
    again.version = version.version
    again.save()
    for sample, other in zip(again.samples.all(), version.samples.all(), strict=True):
        sample.task = other.task
        sample.save()
    (chunk,) = again.chunks.all()
    chunks.ring(chunk.pk)
    with django_assert_max_num_queries(40):
        jobs.grade_chunk(chunk.pk)
    assert Attempt.objects.filter(sample__submission=again, repeats__isnull=False).count() == 4


@pytest.mark.parametrize("visibility", ["public", "private"])
def test_the_page_names_the_run_to_those_who_may_see_it(
    runs: list[str], client: Client, visibility: str
) -> None:
    first = stored_submission(tasks=1, per_task=1)
    graded(first)
    Submission.objects.filter(pk=first.pk).update(visibility=visibility)
    again = stored_submission(tasks=1, per_task=1)
    Submission.objects.filter(pk=again.pk).update(
        version=first.version, uploader=get_user_model().objects.create(username="another")
    )
    again.refresh_from_db()
    again.samples.update(task=first.samples.get().task)
    graded(again)
    page = client.get(f"/s/{again.public_id}/t-0/0/").content.decode()
    assert (f"the same program in {first.public_id}" in page) is (visibility == "public")
    assert ("an earlier run of the same program" in page) is (visibility == "private")
