"""What the sample page reads: one sample, one of its attempts, its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404

from grading import hostile
from grading.benchmarks import engine_task
from grading.engine.outcome import Outcome
from grading.engine.task import BlockPolicy, Preamble, to_json
from grading.models import (
    Attempt,
    AttemptText,
    Benchmark,
    BenchmarkVersion,
    Generation,
    RegradeRun,
    Sample,
    Submission,
    Task,
)
from grading.queries.targets import Stream, TargetLine, target_lines

# Failures of these phases happen before the first target is read, so they cannot tell it. Later a
# program can put a call's arguments into its messages, exception and function names.
PHASES_BEFORE_TARGETS = {"compile", "import"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Cause of anything but a pass. ``frames``: ``(line, function)``, innermost last."""

    phase: str
    exception: str
    message: str
    frames: list[tuple[int, str]]
    signal: str
    exit_status: int | None


@dataclass(frozen=True, slots=True)
class History:
    number: int
    kind: str
    outcome: str
    passed: int
    total: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Neighbour:
    task_slug: str
    index: int


@dataclass(frozen=True, slots=True)
class OwnRun:
    """Where the run stands whose verdict another sample shares."""

    public_id: str
    task_slug: str
    index: int
    number: int


@dataclass(frozen=True, slots=True)
class SampleView:
    """One sample with the attempt to be shown; ``attempt`` None while it has none.

    ``open`` tells whether targets, output and messages may be shown to this viewer; ``repeats``
    is the run whose verdict the attempt is, where this viewer may see that one; ``against`` the
    version whose task it was run against, where that is not the sample's own.
    """

    sample: Sample
    task: Task
    of: int
    open: bool
    generation: str
    format: str
    attempt: Attempt | None
    repeats: OwnRun | None
    history: list[History]
    program: str
    against: BenchmarkVersion | None
    targets: list[TargetLine]
    streams: list[Stream]
    failure: Failure | None
    limits: dict[str, Any]
    rule: str
    block: int | None
    blocks: int
    previous: Neighbour | None
    next: Neighbour | None

    @property
    def used(self) -> range:
        return hostile.used_lines(self.generation, self.program) if self.program else range(0)

    @property
    def hits(self) -> set[int]:
        return {line for line, _ in self.failure.frames} if self.failure else set()

    @property
    def detail(self) -> str:
        """The attempt's detail, where it cannot tell a hidden target."""
        if self.attempt is None:
            return ""
        safe = self.open or self.attempt.failure_phase in PHASES_BEFORE_TARGETS
        return self.attempt.detail if safe else ""


def sample_or_404(submission: Submission, task_slug: str, index: int) -> Sample:
    """With its task, benchmark, generation and crash group; one query."""
    rows = Sample.objects.select_related(
        "task__version__benchmark", "generation", "fingerprint__group"
    )
    return get_object_or_404(
        rows,
        submission=submission,
        task__version=submission.version_id,
        task__slug=task_slug,
        index=index,
    )


def sample_view(
    sample: Sample,
    open_: bool,
    visible: QuerySet[Submission],
    attempt_number: int | None = None,
) -> SampleView:
    """The attempt asked for, else the current one; six queries, and one for a repeated verdict.

    ``visible`` are the submissions that the viewer may see.
    """
    history = _history(sample)
    text = _attempt_text(sample, attempt_number)
    attempt = text.attempt if text else None
    against = _other_task(sample, attempt)
    extraction = text.extraction if text else {}
    generation: Generation = sample.generation
    return SampleView(
        sample=sample,
        task=sample.task,
        of=Sample.objects.filter(submission=sample.submission_id, task=sample.task_id).count(),
        open=open_,
        generation=generation.text,
        format=generation.format,
        attempt=attempt,
        repeats=_own_run(attempt, visible),
        history=history,
        program=text.program if text else "",
        against=against.version if against else None,
        targets=target_lines(against or sample.task, text) if open_ else [],
        streams=_streams(text) if text and open_ else [],
        failure=_failure(text.failure, open_) if text else None,
        limits=text.limits if text else {},
        rule=extraction.get("rule", ""),
        block=extraction.get("block"),
        blocks=extraction.get("blocks") or 0,
        previous=_neighbour(sample, forward=False),
        next=_neighbour(sample, forward=True),
    )


# Not the runs against a version that nobody is to see yet.
_SHOWN = Q(regrade_run=None) | Q(regrade_run__task__version__published=True)


def _other_task(sample: Sample, attempt: Attempt | None) -> Task | None:
    """The task an attempt was run against, if it was regraded for another version."""
    run: RegradeRun | None = getattr(attempt, "regrade_run", None)
    return run.task if run is not None and run.task_id != sample.task_id else None


def _history(sample: Sample) -> list[History]:
    attempts = (
        sample.attempts.filter(_SHOWN)
        .order_by("number")
        .values_list("number", "kind", "outcome", "passed", "total", "created_at")
    )
    return [History(*row) for row in attempts]


def _attempt_text(sample: Sample, number: int | None) -> AttemptText | None:
    texts = AttemptText.objects.select_related("attempt__regrade_run__task__version")
    if number is not None:
        shown = sample.attempts.filter(_SHOWN, number=number)
        return get_object_or_404(texts, attempt__in=shown)
    if sample.current_attempt_id is None:
        return None
    return texts.filter(attempt=sample.current_attempt_id).first()


def _own_run(attempt: Attempt | None, visible: QuerySet[Submission]) -> OwnRun | None:
    if attempt is None or attempt.repeats_id is None:
        return None
    runs = Attempt.objects.filter(pk=attempt.repeats_id, sample__submission__in=visible)
    place = runs.values_list(
        "sample__submission__public_id", "sample__task__slug", "sample__index", "number"
    ).first()
    return OwnRun(*place) if place else None


def _streams(text: AttemptText) -> list[Stream]:
    return [
        Stream(name, kept.get("head", ""), kept.get("tail", ""), kept.get("size", 0))
        for name, kept in (("stdout", text.stdout), ("stderr", text.stderr))
    ]


def _failure(kept: dict[str, Any] | None, open_: bool) -> Failure | None:
    if not kept:
        return None
    safe = open_ or kept.get("phase") in PHASES_BEFORE_TARGETS
    return Failure(
        phase=kept.get("phase", ""),
        exception=kept.get("exception", "") if safe else "",
        message=kept.get("message", "") if safe else "",
        frames=[(int(line), function if safe else "") for line, function in kept["frames"]],
        signal=kept.get("signal", ""),
        # A program chooses its status, and could tell a target by it.
        exit_status=kept.get("exit_status") if safe else None,
    )


def _neighbour(sample: Sample, forward: bool) -> Neighbour | None:
    """The nearest sample of the submission, in task order, that is graded and did not pass."""
    word = "gt" if forward else "lt"
    position = sample.task.position
    beyond = Q(**{f"task__position__{word}": position}) | Q(
        **{"task__position": position, f"index__{word}": sample.index}
    )
    order = ("task__position", "index") if forward else ("-task__position", "-index")
    found = _failing(sample.submission_id).filter(beyond).order_by(*order)
    first = found.values_list("task__slug", "index").first()
    return Neighbour(*first) if first else None


def _failing(submission_id: int) -> QuerySet[Sample]:
    return Sample.objects.filter(submission=submission_id, current_attempt__isnull=False).exclude(
        current_attempt__outcome=Outcome.PASS.value
    )


def case_row(sample: Sample) -> dict[str, Any]:
    """The sample as a row that ``python -m grading.engine --cases`` takes; holds the targets."""
    task = engine_task(sample.task)
    return {
        "id": f"{task.task_id}/{sample.index}",
        "generation": sample.generation.text,
        "targets": [to_json(target) for target in task.targets],
        "metadata": {
            "kind": task.kind.value,
            "timeout_s": task.timeout_s,
            "prompt": task.prompt,
            "format": sample.generation.format,
            "entry_point": list(task.entry_points),
            "setup": task.setup,
            "in_place": task.in_place,
            "allow_processes": task.allow_processes,
        },
    }


def program_or_404(sample: Sample) -> str:
    """The text that ran in the sample's current attempt."""
    text = get_object_or_404(AttemptText, attempt=sample.current_attempt_id)
    program: str = text.program
    return program


def has_own_policies(benchmark: Benchmark) -> bool:
    """Whether programs are found or denied by other rules than the engine's defaults."""
    defaults = (BlockPolicy.AUTO.value, Preamble.IMPORTS.value, None)
    return (benchmark.blocks, benchmark.preamble, benchmark.denylist) != defaults
