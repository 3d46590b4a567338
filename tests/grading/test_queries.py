from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from grading.engine.outcome import Outcome
from grading.models import Attempt, Sample, Submission, TaskScore
from grading.queries import failures, progress, samples, submissions, targets, tasks
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def rosa() -> Any:
    return web_records.person("rosa")


def test_progress_counts_every_sample_once(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return [verdict(Outcome.PASS), "no namespaces", None][index]

    live = web_records.submission(web_records.benchmark(tasks=4), rosa, judge, n=3)
    now = progress.progress(live)

    assert (now.total, now.done, now.failed, now.left) == (12, 4, 4, 4)
    assert now.counts == {
        "pass": 4,
        "assertion_fail": 0,
        "error": 0,
        "timeout": 0,
        "syntax_error": 0,
    }
    assert now.running
    assert [(worker.name, worker.left) for worker in now.workers] == [("w1-77", 4)]
    assert now.passing == 1.0
    assert now.quarter == 1


def test_progress_tells_faults_that_are_back_in_the_queue(rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(tasks=1), rosa, lambda task, index: None)
    first = Sample.objects.filter(submission=live).order_by("pk")[:1]
    Sample.objects.filter(pk__in=first).update(platform_failure="disk full", losses=1)

    now = progress.progress(live)
    assert (now.faulted, now.fault, now.failed) == (1, "disk full", 0)


def test_an_eta_is_a_range_and_needs_twenty_samples(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict(Outcome.PASS) if index < 8 else None

    live = web_records.submission(web_records.benchmark(tasks=3), rosa, judge, n=12)
    start = timezone.now() - timedelta(minutes=5)
    for second, attempt in enumerate(Attempt.objects.order_by("pk")):
        # The first ones took two seconds each, the last twenty one each.
        passed = second * 2 if second < 4 else 8 + (second - 4)
        Attempt.objects.filter(pk=attempt.pk).update(created_at=start + timedelta(seconds=passed))

    low, high = progress.progress(live).eta_s or (0, 0)
    assert low == pytest.approx(12 / 1.0)
    assert high == pytest.approx(12 / (23 / 27))
    Attempt.objects.filter(sample__index=7).delete()
    Sample.objects.filter(index__in=[6, 7]).update(state=Sample.State.QUEUED)
    assert progress.progress(live).eta_s is None


def test_the_queue_place_counts_older_open_submissions(rosa: Any) -> None:
    version = web_records.benchmark()
    older = web_records.submission(version, rosa, lambda task, index: None)
    web_records.submission(version, rosa)
    newer = web_records.submission(version, rosa, lambda task, index: None)

    now = progress.progress(newer)
    assert (now.ahead_submissions, now.ahead_samples) == (1, 6)
    assert progress.progress(older).ahead_submissions == 0


def test_progress_is_silent_a_minute_after_the_last_heartbeat(rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, lambda task, index: None)
    assert not progress.progress(live).silent
    live.heartbeat_at = timezone.now() - timedelta(seconds=61)
    assert progress.progress(live).silent


def test_a_result_has_pass_at_k_for_the_k_that_some_task_allows(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict(Outcome.PASS if index == 0 else Outcome.ERROR)

    done = web_records.submission(web_records.benchmark(tasks=2), rosa, judge, n=5)
    result = submissions.result(done)
    assert [(score.k, score.value) for score in result.pass_at_k] == [(1, 0.2), (5, 1.0)]
    assert result.mean_fraction == pytest.approx(0.2)
    assert (result.solved, result.never, result.complete) == (2, 0, True)

    score = TaskScore.objects.filter(submission=done).order_by("pk").first()
    assert score is not None
    TaskScore.objects.filter(pk=score.pk).update(n=4)
    five = submissions.result(done).pass_at_k[1]
    assert (five.value, five.reason) == (None, "needs 5 samples on every task, one has 4")


def test_a_result_without_verdicts_has_no_score_and_says_so(rosa: Any) -> None:
    done = web_records.submission(web_records.benchmark(), rosa, lambda task, index: "no sandbox")
    assert done.state == Submission.State.DONE

    result = submissions.result(done)
    assert (result.failed, result.samples, result.tasks) == (6, 0, [])
    assert result.pass_at_1 is None
    assert [score.reason for score in result.pass_at_k] == ["no sample is graded"]
    assert result.mean_fraction is None
    assert not result.complete


def test_the_sealed_share_is_of_targets_that_were_asked(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict([Outcome.PASS, Outcome.SYNTAX_ERROR][index])

    done = web_records.submission(web_records.benchmark(), rosa, judge)
    assert submissions.result(done).sealed_share == 1.0


def test_tasks_are_sorted_by_a_known_order_only(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict([Outcome.ASSERTION_FAIL, Outcome.PASS, Outcome.ERROR][task.position])

    result = submissions.result(web_records.submission(web_records.benchmark(), rosa, judge))

    def slugs(order: str) -> list[str]:
        return [row.slug[-1] for row in submissions.task_page(result, order, "1")]

    assert slugs("") == slugs("nonsense") == slugs("fraction") == ["2", "0", "1"]
    assert slugs("-fraction") == ["1", "0", "2"]
    assert slugs("task") == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("", 12), ("pass", 3), ("timeout", 1), ("platform", 3), ("waiting", 3), ("x' or 1=1", 0)],
)
def test_samples_are_filtered_by_outcome(rosa: Any, outcome: str, expected: int) -> None:
    def judge(task: Any, index: int) -> Any:
        if index == 0:
            return verdict(Outcome.PASS)
        if index == 1:
            kinds = [Outcome.TIMEOUT, Outcome.ERROR, Outcome.ASSERTION_FAIL]
            return verdict(kinds[task.position])
        return "no sandbox" if index == 2 else None

    live = web_records.submission(web_records.benchmark(), rosa, judge, n=4)
    page = submissions.sample_page(live, outcome)
    assert page.paginator.count == expected
    assert len(page.object_list) == expected


def test_neighbours_are_the_nearest_failing_samples(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict(Outcome.PASS if (task.position + index) % 2 else Outcome.ERROR)

    done = web_records.submission(web_records.benchmark(), rosa, judge)
    sample = samples.sample_or_404(done, "Tidepool-1", 1)
    view = samples.sample_view(sample, True, Submission.objects.all())
    assert (view.previous, view.next) == (
        samples.Neighbour("Tidepool-0", 0),
        samples.Neighbour("Tidepool-2", 0),
    )
    first = samples.sample_view(
        samples.sample_or_404(done, "Tidepool-0", 0), True, Submission.objects.all()
    )
    assert first.previous is None


def test_targets_that_were_never_asked_are_shown_as_such(rosa: Any) -> None:
    first, second, _ = verdict(Outcome.PASS).targets
    unreached = replace(second, true=False, detail=targets.NOT_REACHED)
    cut = verdict(Outcome.TIMEOUT, targets=[first, unreached])
    done = web_records.submission(web_records.benchmark(), rosa, lambda task, index: cut)
    view = samples.sample_view(
        samples.sample_or_404(done, "Tidepool-0", 0), True, Submission.objects.all()
    )
    assert [target.true for target in view.targets] == [True, None, None]


def test_a_case_row_is_one_that_the_engine_reads(rosa: Any) -> None:
    import json

    from grading.engine.cases import read_case

    done = web_records.submission(web_records.benchmark(), rosa)
    row = samples.case_row(samples.sample_or_404(done, "Tidepool-0", 1))
    case = read_case(1, json.dumps(row))
    assert case.task.targets[0] == web_records.SECRET_TARGET
    assert case.generation.text == web_records.CHAT
    assert case.task.entry_points == ("longest",)


def test_task_sums_are_over_finished_submissions_the_viewer_may_see(rosa: Any) -> None:
    version = web_records.benchmark()
    web_records.submission(version, rosa, lambda task, index: verdict(Outcome.PASS))
    web_records.submission(
        version, rosa, lambda task, index: verdict(Outcome.ERROR), private=True, model="Secret"
    )
    web_records.submission(
        version, rosa, lambda task, index: verdict(Outcome.ERROR) if index else None, model="Live"
    )

    line = tasks.task_page(version, AnonymousUser(), "1").object_list[0]
    assert (line.n, line.c, line.fraction) == (2, 2, 1.0)
    own = tasks.task_page(version, rosa, "1").object_list[0]
    assert (own.n, own.c, own.fraction) == (4, 2, 0.5)
    task = version.tasks.get(position=0)
    assert [row.model for row in tasks.model_lines(task, AnonymousUser())] == ["Quillfish 8B"]
    assert [row.model for row in tasks.model_lines(task, rosa)] == ["Quillfish 8B", "Secret"]


def test_failed_samples_are_found_by_how_they_ended(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return web_records.mixed(task, index) if index < 5 else "no sandbox"

    web_records.submission(web_records.benchmark(tasks=5), rosa, judge, n=6)
    every = failures.Filters()
    assert failures.crash_page(every, "1").paginator.count == 20
    assert failures.crash_page(failures.Filters(outcome="platform"), "1").paginator.count == 5
    assert failures.crash_page(failures.Filters(exception="NameError"), "1").paginator.count == 5
    assert failures.crash_page(failures.Filters(task="Tidepool/0"), "1").paginator.count == 4
    assert failures.crash_page(failures.Filters(model="quillfish 8b"), "1").paginator.count == 20
    assert failures.crash_page(failures.Filters(submission="nothing"), "1").paginator.count == 0
    assert failures.crash_page(failures.Filters(outcome="assertion_fail"), "1").paginator.count == 5
