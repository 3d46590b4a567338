"""Verdicts of another grader that stood in an upload, beside ours."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from grading.engine.outcome import Outcome
from grading.models import Sample, Submission

PASSED_HERE = Q(current_attempt__outcome=Outcome.PASS.value)
PASSED_ELSEWHERE = Q(generation__peer_passed=True)
# Samples on which the verdicts differ, as values of the filter on outcomes.
DIFFERENCES = {
    "passed here only": PASSED_HERE & Q(generation__peer_passed=False),
    "passed elsewhere only": ~PASSED_HERE & PASSED_ELSEWHERE,
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Graded samples with another grader's verdict, by both verdicts."""

    both: int
    neither: int
    here_only: int
    elsewhere_only: int

    @property
    def equal(self) -> int:
        return self.both + self.neither

    @property
    def compared(self) -> int:
        return self.equal + self.here_only + self.elsewhere_only

    @property
    def share(self) -> float:
        return self.equal / self.compared


def with_both_verdicts(submission: Submission) -> QuerySet[Sample]:
    return Sample.objects.filter(
        submission=submission,
        current_attempt__isnull=False,
        generation__peer_passed__isnull=False,
    )


def agreement(submission: Submission) -> Agreement | None:
    """None where the upload held no verdicts, or none of those samples is graded."""
    if not submission.intake.get("peer_verdicts"):
        return None
    counts = with_both_verdicts(submission).aggregate(
        both=Count("pk", filter=PASSED_HERE & PASSED_ELSEWHERE),
        neither=Count("pk", filter=~PASSED_HERE & ~PASSED_ELSEWHERE),
        here_only=Count("pk", filter=DIFFERENCES["passed here only"]),
        elsewhere_only=Count("pk", filter=DIFFERENCES["passed elsewhere only"]),
    )
    found = Agreement(**counts)
    return found if found.compared else None
