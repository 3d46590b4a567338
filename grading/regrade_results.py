"""What a regrade came to: per sample, and what applying it would do to the scores."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import F

from grading.engine.outcome import Outcome
from grading.models import Regrade, RegradeRun, Submission, TaskScore

PASS = Outcome.PASS.value
# In place of an outcome where the platform failed.
PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class Verdict:
    """As much of an attempt as tells two apart."""

    attempt_id: int
    outcome: str
    passed: int
    total: int
    score: float

    def same_as(self, other: Verdict | None) -> bool:
        return other is not None and (self.outcome, self.passed, self.total) == (
            other.outcome,
            other.passed,
            other.total,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """One sample of a regrade. ``before`` None: the platform had failed.

    ``runs`` are the verdicts so far, ``failed`` how many runs the platform failed, ``missing``
    how many are open; ``moved``: the sample has another verdict than when this was asked for.
    """

    sample_id: int
    submission_id: int
    task_id: int
    before: Verdict | None
    runs: tuple[Verdict, ...]
    failed: int
    missing: int
    moved: bool

    @property
    def flaky(self) -> bool:
        """Whether repeats disagree: no verdict of this program can be relied on."""
        return any(not run.same_as(self.runs[0]) for run in self.runs[1:])

    @property
    def after(self) -> Verdict | None:
        """The verdict that would count; None where there is none to count.

        A failure of the platform never takes the place of a score, nor does a flaky verdict.
        """
        if not self.runs or self.flaky or self.failed or self.missing or self.moved:
            return None
        return self.runs[0]

    @property
    def changed(self) -> bool:
        return self.after is not None and not self.after.same_as(self.before)


_RUN = ("state", "attempt_id", *(f"attempt__{x}" for x in ("outcome", "passed", "total", "score")))
_BEFORE = ("before_id", *(f"before__{x}" for x in ("outcome", "passed", "total", "score")))


def results(regrade: Regrade) -> list[Result]:
    """The result of every sample, in order of their ids; one query."""
    rows = (
        RegradeRun.objects.filter(regrade=regrade)
        .order_by("sample_id", "repeat")
        .annotate(submission=F("sample__submission_id"), now=F("sample__current_attempt_id"))
        .values("sample_id", "submission", "task_id", "now", *_RUN, *_BEFORE)
    )
    return [_result(list(runs)) for _, runs in groupby(rows, key=lambda row: row["sample_id"])]


def _result(runs: Sequence[dict]) -> Result:
    first = runs[0]
    made = [_verdict(run, "attempt") for run in runs if run["attempt_id"] is not None]
    failed = sum(run["state"] == RegradeRun.State.PLATFORM_FAILED for run in runs)
    return Result(
        sample_id=first["sample_id"],
        submission_id=first["submission"],
        task_id=first["task_id"],
        before=_verdict(first, "before") if first["before_id"] is not None else None,
        runs=tuple(made),
        failed=failed,
        missing=len(runs) - len(made) - failed,
        moved=first["now"] != first["before_id"],
    )


def _verdict(row: dict, name: str) -> Verdict:
    facts = (row[f"{name}__{x}"] for x in ("outcome", "passed", "total", "score"))
    return Verdict(row[f"{name}_id"], *facts)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of samples; ``matrix`` by old and new outcome, `PLATFORM` included."""

    samples: int
    done: int
    changed: int
    flaky: int
    failed: int
    moved: int
    matrix: Counter[tuple[str, str]]

    @property
    def flake_rate(self) -> float | None:
        """Share of the samples run more than once whose repeats disagree."""
        return self.flaky / self.done if self.done else None


def summary(found: Iterable[Result]) -> Summary:
    listed = list(found)
    matrix: Counter[tuple[str, str]] = Counter()
    for result in listed:
        if not result.missing:
            new = result.runs[0].outcome if result.runs and not result.failed else PLATFORM
            matrix[result.before.outcome if result.before else PLATFORM, new] += 1
    return Summary(
        samples=len(listed),
        done=sum(not result.missing for result in listed),
        changed=sum(result.changed for result in listed),
        flaky=sum(result.flaky for result in listed),
        failed=sum(result.failed > 0 for result in listed),
        moved=sum(result.moved for result in listed),
        matrix=matrix,
    )


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """pass@1 of a submission now and with the regrade applied."""

    submission: str
    model: str
    before: float
    after: float


def score_changes(found: Collection[Result]) -> list[ScoreChange]:
    """What applying all would do to each submission, the largest changes first; two queries.

    For regrades within one version.
    """
    delta: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for result in found:
        if result.changed and result.after:
            cell = delta[result.submission_id, result.task_id]
            cell[0] += result.before is None
            cell[1] += result.after.outcome == PASS
            cell[1] -= result.before is not None and result.before.outcome == PASS
    ids = {submission for submission, _ in delta}
    rates: dict[int, list[tuple[float, float]]] = defaultdict(list)
    scores = TaskScore.objects.filter(submission__in=ids)
    for submission, task, n, c in scores.values_list("submission_id", "task_id", "n", "c"):
        more_n, more_c = delta[submission, task]
        now = c / n if n else 0.0
        rates[submission].append((now, (c + more_c) / (n + more_n) if n + more_n else 0.0))
    names = Submission.objects.filter(pk__in=ids)
    changes = [
        ScoreChange(public_id, model, _mean(rates[pk], 0), _mean(rates[pk], 1))
        for pk, public_id, model in names.values_list("pk", "public_id", "language_model__name")
    ]
    return sorted(changes, key=lambda one: (-abs(one.after - one.before), one.model))


def _mean(rates: Sequence[tuple[float, float]], side: int) -> float:
    return sum(rate[side] for rate in rates) / len(rates) if rates else 0.0
