"""Groups of failures: set with the verdict, woken by what contradicts a decision, regrouped."""

from __future__ import annotations

from typing import Any

import pytest

from grading import crash_groups, fingerprints
from grading.engine.outcome import Failure, Outcome
from grading.models import CrashGroup, Fingerprint, GroupEvent, Sample
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def rosa() -> Any:
    return web_records.person("rosa")


def erring(task: Any, index: int) -> Any:
    return verdict(Outcome.ERROR)


def test_failures_of_all_models_and_tasks_share_a_group(rosa: Any) -> None:
    version = web_records.benchmark()
    for model in ("Petrel 9B", "Gannet 22B"):
        web_records.submission(version, rosa, erring, model=model)
    group = CrashGroup.objects.get()
    assert (group.state, group.kind) == ("new", "exception")
    assert Sample.objects.filter(fingerprint__group=group).count() == 12


def test_a_miss_belongs_to_its_task_and_a_pass_to_no_group(rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict(Outcome.ASSERTION_FAIL if index else Outcome.PASS)

    web_records.submission(web_records.benchmark(), rosa, judge)
    assert [group.title for group in CrashGroup.objects.order_by("title")] == [
        f"Tidepool/{at}: target 3 raises IndexError · message of a assertion_fail"
        for at in range(3)
    ]
    assert Sample.objects.filter(fingerprint=None).count() == 3


def test_a_platform_failure_is_grouped_without_what_differs(rosa: Any) -> None:
    web_records.submission(
        web_records.benchmark(), rosa, lambda task, index: f"cell {task.pk} did not start"
    )
    assert CrashGroup.objects.get().title == "cell <n> did not start"


def test_hostile_text_is_grouped_and_stored(rosa: Any) -> None:
    told = Failure("import", "E\0\ud800", "\udfff" * 400 + "\0", [(1, "\ud800")])
    web_records.submission(
        web_records.benchmark(), rosa, lambda *_: verdict(Outcome.ERROR, failure=told)
    )
    assert Fingerprint.objects.get().title.startswith("E<U+0000><U+D800>: <U+DFFF>")


@pytest.mark.parametrize(
    ("program", "number", "lines"),
    [
        ("def f():\n  x = 1\n\n    y = 2\n", 4, ("    y = 2", "  x = 1")),
        ("    y = 2\nx = 1\n", 1, ("    y = 2", "")),
        ("\n\n    y = 2\nx = 1\n", 3, ("    y = 2", "")),
        ("x = 1\n", 7, ("", "")),
        ("x = 1\n", 0, ("", "")),
    ],
)
def test_an_ending_knows_the_line_that_does_not_compile_and_the_text_above(
    program: str, number: int, lines: tuple[str, str], rosa: Any
) -> None:
    version = web_records.benchmark(tasks=1)
    told = Failure("compile", "IndentationError", "unexpected indent", [(number, "")])
    broken = verdict(Outcome.SYNTAX_ERROR, failure=told, program=program)
    web_records.submission(version, rosa, lambda *_: broken, n=1)
    attempt = Sample.objects.get().current_attempt
    assert attempt is not None
    ending = crash_groups.ending_of(attempt, version.tasks.get())
    assert (ending.line, ending.above) == lines


def test_an_ignored_group_escalates_when_it_has_grown(rosa: Any) -> None:
    version = web_records.benchmark(tasks=1)
    web_records.submission(version, rosa, erring)
    CrashGroup.objects.update(state="ignored", ignored_until=4)
    web_records.submission(version, rosa, erring, n=1, model="Tern 13B")
    assert CrashGroup.objects.get().state == "ignored"
    web_records.submission(version, rosa, erring, n=1, model="Gannet 22B")
    assert CrashGroup.objects.get().state == "escalating"
    event = GroupEvent.objects.get()
    assert (event.before, event.after, event.by) == ("ignored", "escalating", None)
    assert event.note == "4 samples"


@pytest.mark.parametrize("later", [0, 1])
def test_a_fixed_group_that_is_seen_again_has_regressed(rosa: Any, later: int) -> None:
    version = web_records.benchmark(tasks=1)
    web_records.submission(version, rosa, erring)
    fixed = verdict(Outcome.ERROR).grader_version + later
    CrashGroup.objects.update(state="grader_bug", fixed_in_grader=fixed)
    web_records.submission(version, rosa, erring, model="Tern 13B")
    assert CrashGroup.objects.get().state == ("grader_bug" if later else "regressed")


def test_regrouping_without_a_change_of_rules_changes_nothing(rosa: Any) -> None:
    web_records.submission(web_records.benchmark(), rosa, n=5)
    before = dict(Sample.objects.values_list("pk", "fingerprint"))
    done = crash_groups.regroup()
    assert (done.samples, done.changed, done.joined, done.split) == (12, 0, [], [])
    assert dict(Sample.objects.values_list("pk", "fingerprint")) == before


def test_new_rules_keep_states_and_dry_runs_keep_everything(
    rosa: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    web_records.submission(web_records.benchmark(), rosa, erring)
    CrashGroup.objects.update(state="known_model_failure")
    old = Fingerprint.objects.get().value
    monkeypatch.setattr(fingerprints, "VERSION", fingerprints.VERSION + 1)
    assert crash_groups.regroup(dry_run=True).changed == 6
    assert Fingerprint.objects.get().value == old
    assert crash_groups.regroup().changed == 6
    group = CrashGroup.objects.get()
    assert group.state == "known_model_failure"
    assert group.title == Fingerprint.objects.exclude(value=old).get().title
    assert Sample.objects.exclude(fingerprint__value=old).count() == 6


def test_new_rules_that_split_leave_the_group_to_the_larger_part(
    rosa: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    web_records.submission(web_records.benchmark(tasks=3), rosa, erring, n=1)
    ending_of = crash_groups.ending_of

    def by_task(attempt: Any, task: Any) -> Any:
        ending = ending_of(attempt, task)
        if task.position:
            return ending
        return fingerprints.Ending("error", exception="Other")

    old = CrashGroup.objects.get()
    monkeypatch.setattr(fingerprints, "VERSION", fingerprints.VERSION + 1)
    monkeypatch.setattr(crash_groups, "ending_of", by_task)
    assert crash_groups.regroup().split == [old.title]
    sizes = {
        group.pk: Sample.objects.filter(fingerprint__group=group).count()
        for group in CrashGroup.objects.all()
    }
    assert sizes.pop(old.pk) == 2
    assert list(sizes.values()) == [1]
