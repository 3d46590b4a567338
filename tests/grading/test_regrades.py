"""Regrades: nothing moves until they are applied, then exactly what was found does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from grading import regrade_apply, regrade_results, regrade_runs, regrades
from grading.engine.outcome import Outcome, Verdict
from grading.models import (
    Attempt,
    BenchmarkVersion,
    ChangeLogEntry,
    CrashGroup,
    GroupEvent,
    Regrade,
    RegradeRun,
    Sample,
    Submission,
    Task,
    TaskScore,
)
from grading.regrades import Selection
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db

WRONG = verdict(Outcome.ASSERTION_FAIL)
RIGHT = verdict(Outcome.PASS)
Judge = Callable[[RegradeRun], Verdict | str]


@pytest.fixture
def rosa() -> Any:
    return web_records.person("rosa")


@pytest.fixture
def sam() -> Any:
    return web_records.person("sam", staff=True)


def wrong(task: Task, index: int) -> Verdict:
    return WRONG


def ask(
    by: Any, repeats: int = 1, target: BenchmarkVersion | None = None, **chosen: Any
) -> Regrade:
    return regrades.ask(Selection(**chosen), "a reason", by, repeats, target)


def run_all(regrade: Regrade, judge: Judge = lambda run: RIGHT) -> None:
    """Make every run as the job does; ``judge`` gives a verdict or a failure of the platform."""
    while claim := regrade_runs.claim(regrade.pk, "w9-1"):
        found = judge(claim.run)
        if isinstance(found, str):
            regrade_runs.fail(claim, found)
        else:
            assert regrade_runs.record(claim, found, "")
    regrade.refresh_from_db()


def figures() -> Any:
    """Everything that a board, a submission or a sample shows."""
    scores = TaskScore.objects.order_by("submission", "task").values()
    samples = Sample.objects.order_by("pk").values("state", "current_attempt", "fingerprint")
    return list(scores), list(samples)


def test_nothing_moves_until_it_is_applied(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), rosa, wrong)
    before = figures()
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade)
    assert regrade.state == "ready"
    assert Attempt.objects.filter(kind="regrade", number=2).count() == 6
    assert figures() == before
    assert regrade_apply.apply(regrade, sam) == regrade_apply.Applied(6, 6, 0)
    for score in TaskScore.objects.all():
        assert (score.n, score.c, score.fraction_sum, score.assertion_fail) == (2, 2, 2.0, 0)
    assert not Sample.objects.exclude(fingerprint=None).exists()
    entry = ChangeLogEntry.objects.of_version(BenchmarkVersion.objects.get().pk).get()
    assert entry.what == "6 samples regraded, 6 with another verdict"
    assert (entry.reason, entry.by, entry.regrade) == ("a reason", sam, regrade)


def test_task_scores_follow_from_what_is_applied(rosa: Any, sam: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa, n=5)
    regrade = ask(sam, submission=made.public_id)
    run_all(regrade, lambda run: RIGHT if run.sample.index % 2 else verdict(Outcome.TIMEOUT))
    foretold = regrade_results.score_changes(regrade_results.results(regrade))
    regrade_apply.apply(regrade, sam)
    for score in TaskScore.objects.all():
        assert (score.n, score.c, score.fraction_sum, score.timeout) == (5, 2, 2.0, 3)
        assert (score.error, score.syntax_error, score.assertion_fail) == (0, 0, 0)
    (change,) = foretold
    assert (change.before, change.after) == (pytest.approx(1 / 5), pytest.approx(2 / 5))


@pytest.mark.parametrize("n", [2, 20])
def test_applying_asks_no_more_for_more_samples(rosa: Any, sam: Any, n: int) -> None:
    web_records.submission(web_records.benchmark(), rosa, wrong, n=n)
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade, lambda run: verdict(Outcome.ERROR))
    with CaptureQueriesContext(connection) as made:
        assert regrade_apply.apply(regrade, sam).changed == 3 * n
    assert len(made) <= 30


def test_a_fixed_group_that_a_regrade_meets_again_has_regressed(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), rosa, wrong)
    CrashGroup.objects.update(state="grader_bug", fixed_in_grader=WRONG.grader_version)
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade, lambda run: WRONG if run.task.position else RIGHT)
    regrade_apply.apply(regrade, sam)
    states = CrashGroup.objects.order_by("title").values_list("title", "state")
    assert [state for _, state in states] == ["grader_bug", "regressed", "regressed"]
    assert GroupEvent.objects.count() == 2


def test_only_what_was_chosen_is_applied(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), rosa, wrong)
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade)
    one = Sample.objects.order_by("pk")[0]
    assert regrade_apply.apply(regrade, sam, [one.pk]).applied == 1
    assert sorted(TaskScore.objects.values_list("c", flat=True)) == [0, 0, 1]
    assert RegradeRun.objects.get(applied=True).sample == one


def test_a_platform_failure_never_takes_the_place_of_a_score(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(tasks=1), rosa, wrong)
    before = figures()
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade, lambda run: "no sandbox")
    summary = regrade_results.summary(regrade_results.results(regrade))
    assert summary.matrix == {("assertion_fail", "platform"): 2}
    assert regrade_apply.apply(regrade, sam) == regrade_apply.Applied(0, 0, 2)
    assert figures() == before
    assert not ChangeLogEntry.objects.exists()


def test_a_sample_that_the_platform_gave_up_gets_a_score(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(tasks=1), rosa, lambda *_: "no sandbox")
    assert not TaskScore.objects.exists()
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade)
    regrade_apply.apply(regrade, sam)
    score = TaskScore.objects.get()
    assert (score.n, score.c) == (2, 2)
    assert set(Sample.objects.values_list("state", flat=True)) == {"done"}


def test_repeats_that_disagree_are_counted_and_keep_the_old_verdict(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(tasks=1), rosa, wrong, n=4)
    regrade = ask(sam, repeats=3, benchmark="tidepool")

    def judge(run: RegradeRun) -> Verdict:
        return WRONG if run.sample.index == 0 and run.repeat == 2 else RIGHT

    run_all(regrade, judge)
    summary = regrade_results.summary(regrade_results.results(regrade))
    assert (summary.samples, summary.changed, summary.flaky) == (4, 3, 1)
    assert summary.flake_rate == 0.25
    assert regrade_apply.apply(regrade, sam) == regrade_apply.Applied(3, 3, 1)
    assert TaskScore.objects.get().c == 3


def test_a_sample_decided_otherwise_meanwhile_is_left_alone(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(tasks=1), rosa, wrong, n=1)
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade)
    Sample.objects.update(current_attempt=Attempt.objects.get(kind="regrade"))
    assert regrade_apply.apply(regrade, sam).applied == 0


@pytest.mark.parametrize("state", ["running", "applied", "cancelled"])
def test_only_a_ready_regrade_is_applied(rosa: Any, sam: Any, state: str) -> None:
    web_records.submission(web_records.benchmark(tasks=1), rosa, wrong)
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade)
    Regrade.objects.update(state=state)
    before = figures()
    with pytest.raises(regrade_apply.NotReady):
        regrade_apply.apply(regrade, sam)
    assert figures() == before


def test_cancelling_ends_it_and_late_verdicts_change_nothing(rosa: Any, sam: Any) -> None:
    web_records.submission(web_records.benchmark(tasks=1), rosa, wrong)
    regrade = ask(sam, benchmark="tidepool")
    claim = regrade_runs.claim(regrade.pk, "w9-1")
    assert claim is not None
    assert regrades.cancel(regrade, sam)
    assert not regrades.cancel(regrade, sam)
    assert not regrade_runs.record(claim, RIGHT, "")
    assert regrade_runs.claim(regrade.pk, "w9-1") is None
    assert not Attempt.objects.filter(kind="regrade").exists()


def test_who_is_graded_has_no_say(sam: Any) -> None:
    ada = web_records.person("ada", staff=True)
    rosa = web_records.person("rosa")
    web_records.submission(web_records.benchmark(tasks=1), ada, wrong)
    regrade = ask(sam, benchmark="tidepool")
    run_all(regrade)
    for person in (ada, rosa):
        with pytest.raises(regrades.NotAllowed):
            regrades.cancel(regrade, person)
        with pytest.raises(regrades.NotAllowed):
            regrade_apply.apply(regrade, person)
    regrade.refresh_from_db()
    assert regrade.state == "ready"
    own = Regrade.objects.create(asked_by=ada, reason="mine")
    assert regrades.refusal(ada, own) == ""


def test_the_same_again_joins_and_overlaps_are_named(rosa: Any, sam: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa, wrong)
    part = ask(sam, benchmark="tidepool", task="Tidepool/0")
    again = ask(rosa, submission=made.public_id, task="Tidepool/0")
    assert again == part
    assert [one["by"] for one in again.joined] == ["rosa"]
    rest = ask(sam, submission=made.public_id)
    assert rest.left_out == {part.public_id: 2}
    assert rest.runs.count() == 4
    with pytest.raises(regrades.NothingToRegrade, match=f"{part.public_id}|{rest.public_id}"):
        ask(sam, benchmark="tidepool")
    regrades.cancel(part, sam)
    assert ask(sam, benchmark="tidepool").runs.count() == 2


@pytest.mark.parametrize(
    ("chosen", "samples"),
    [
        ({"benchmark": "tidepool"}, 15),
        ({"benchmark": "tidepool", "version": 2}, 0),
        ({"task": "Tidepool/1"}, 5),
        ({"outcome": "timeout"}, 3),
        ({"model": "Quillfish 8B", "outcome": "pass"}, 3),
        ({"worker": "w1-77"}, 15),
        ({"grader_below": 1}, 0),
        ({"grader_below": RIGHT.grader_version + 1}, 15),
    ],
)
def test_what_is_chosen(rosa: Any, chosen: dict[str, Any], samples: int) -> None:
    web_records.submission(web_records.benchmark(), rosa, n=5)
    assert Selection(**chosen).samples().count() == samples


def test_a_group_is_chosen_by_its_id(rosa: Any) -> None:
    web_records.submission(web_records.benchmark(), rosa, n=5)
    group = CrashGroup.objects.get(kind="exception")
    assert Selection(group=group.public_id).samples().count() == 3


@pytest.mark.parametrize(
    ("chosen", "reason", "repeats"),
    [
        ({}, "why", 1),
        ({"task": "x"}, " ", 1),
        ({"task": "x"}, "why", 0),
        ({"task": "x"}, "why", 11),
    ],
)
def test_what_cannot_be_asked(sam: Any, chosen: Any, reason: str, repeats: int) -> None:
    with pytest.raises(ValueError):
        regrades.ask(Selection(**chosen), reason, sam, repeats)
    with pytest.raises(regrades.NothingToRegrade):
        ask(sam, task="nothing")


def test_a_task_put_right_is_graded_for_the_next_version(rosa: Any, sam: Any) -> None:
    """Only samples of the changed task are run; the old version stays as it is."""
    old = web_records.benchmark()
    made = web_records.submission(old, rosa, lambda task, index: RIGHT if task.position else WRONG)
    target = next_version(old)
    before = figures()
    regrade = ask(sam, target=target, benchmark="tidepool")
    assert {run.task for run in regrade.runs.all()} == {target.tasks.get(position=0)}
    assert regrade.runs.count() == 2
    run_all(regrade)
    assert figures() == before
    regrade_apply.apply(regrade, sam)
    new = Submission.objects.get(version=target)
    assert (new.state, new.sample_count, new.language_model) == ("done", 6, made.language_model)
    assert new.settings["taken_over_from"] == made.public_id
    scores = TaskScore.objects.filter(submission=new)
    assert [(score.n, score.c) for score in scores] == [(2, 2)] * 3
    kinds = Attempt.objects.filter(sample__submission=new).order_by("sample__task__position")
    assert [attempt.kind for attempt in kinds] == ["regrade"] * 2 + ["first"] * 4
    assert all(attempt.repeats_id for attempt in kinds)
    first = TaskScore.objects.get(submission=made, task__position=0)
    assert (first.n, first.c) == (2, 0)
    assert ChangeLogEntry.objects.of_version(old.pk).get().what == (
        "Put right in version 2: Tidepool/0"
    )
    assert ChangeLogEntry.objects.of_version(target.pk).get().what == (
        "2 samples of changed tasks graded anew, the rest taken over from before"
    )


def test_a_run_against_another_version_is_shown_with_its_targets(
    rosa: Any, sam: Any, client: Client
) -> None:
    old = web_records.benchmark()
    made = web_records.submission(old, rosa, wrong)
    target = next_version(old)
    target.tasks.filter(position=0).update(targets=["assert longest(['put right'])"])
    run_all(ask(sam, target=target, benchmark="tidepool"))
    address = f"/s/{made.public_id}/Tidepool-0/0/"
    assert "?attempt=2" in client.get(address).content.decode()
    shown = client.get(f"{address}?attempt=2").content.decode()
    assert "put right" in shown and "Tidepool version 2" in shown
    BenchmarkVersion.objects.filter(pk=target.pk).update(published=False)
    assert "?attempt=2" not in client.get(address).content.decode()
    assert client.get(f"{address}?attempt=2").status_code == 404


def test_what_is_there_is_not_taken_over_twice(rosa: Any, sam: Any) -> None:
    old = web_records.benchmark()
    web_records.submission(old, rosa, wrong)
    target = next_version(old)
    for _ in range(2):
        regrade = ask(sam, target=target, benchmark="tidepool", version=1)
        run_all(regrade)
        regrade_apply.apply(regrade, sam)
    assert Submission.objects.filter(version=target).count() == 1


def next_version(old: BenchmarkVersion) -> BenchmarkVersion:
    """The next version of a benchmark, with another first task."""
    new = BenchmarkVersion.objects.create(
        benchmark=old.benchmark, number=old.number + 1, content_hash="1" * 64
    )
    for task in old.tasks.all():
        task.pk, task.version = None, new
        if not task.position:
            task.content_hash = "f" * 64
        task.save(force_insert=True)
    return new
