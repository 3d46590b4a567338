"""Quotas: how much one person may send in a day (UTC) and have waiting at once.

Nothing is counted up or down. What was used is asked of the records each time: a submission that
was cancelled before a sample of it was graded, or that ended with samples the platform could not
grade, used nothing; one that was cancelled later used what was graded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, QuerySet, Subquery, Sum
from django.utils import timezone

from grading.models import Addition, DeletedUse, Quota, Sample, Submission, TaskScore
from grading.permissions import Action, may

WAIT_S = 60


class QuotaExceeded(Exception):
    """The submission is not taken now; worth another try after ``retry_after_s`` seconds."""

    def __init__(self, reason: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Allowance:
    """``used`` of ``limit``, 0 for no limit."""

    limit: int
    used: int

    @property
    def left(self) -> int | None:
        """None where there is no limit."""
        return max(0, self.limit - self.used) if self.limit else None

    def lacks(self, more: int) -> bool:
        return self.left is not None and more > self.left

    def as_dict(self) -> dict[str, int | None]:
        return {"limit": self.limit or None, "used": self.used, "left": self.left}


@dataclass(frozen=True, slots=True)
class Standing:
    """Submissions and samples of today, and samples that wait now; ``resets_at`` ends the day."""

    submissions: Allowance
    samples: Allowance
    waiting: Allowance
    resets_at: datetime

    def refusal(self, samples: int) -> QuotaExceeded | None:
        """Why one more submission of so many samples is not taken now."""
        until = max(1, ceil((self.resets_at - timezone.now()).total_seconds()))
        if self.submissions.lacks(1):
            sent = f"You have sent {self.submissions.used:,} of {self.submissions.limit:,}"
            return QuotaExceeded(f"{sent} submissions today; more from 00:00 UTC.", until)
        if self.samples.lacks(samples):
            return QuotaExceeded(_too_many_today(samples, self.samples), until)
        if self.waiting.lacks(samples):
            return QuotaExceeded(_too_many_waiting(samples, self.waiting), WAIT_S)
        return None

    def as_dict(self) -> dict[str, Any]:
        return {
            "submissions_today": self.submissions.as_dict(),
            "samples_today": self.samples.as_dict(),
            "samples_waiting": self.waiting.as_dict(),
            "resets_at": self.resets_at.isoformat(),
        }


def _too_many_today(samples: int, allowance: Allowance) -> str:
    if samples > allowance.limit:
        most = f"more than the {allowance.limit:,} you may send in a day"
        return f"The file has {samples:,} samples, {most}: send it in parts."
    left = f"{allowance.left:,} of {allowance.limit:,}"
    return f"The file has {samples:,} samples; you have {left} left today, more from 00:00 UTC."


def _too_many_waiting(samples: int, allowance: Allowance) -> str:
    if samples > allowance.limit:
        most = f"more than the {allowance.limit:,} of yours that may wait at once"
        return f"The file has {samples:,} samples, {most}: send it in parts."
    wait = f"{allowance.used:,} of yours wait, and {allowance.limit:,} may at once"
    return f"The file has {samples:,} samples; {wait}. Send it when some are graded."


def own(user: User) -> Quota:
    """The limits given to a person, stored or not."""
    return Quota.objects.filter(user=user).first() or Quota(user=user)


def standing(user: User) -> Standing | None:
    """How a person stands now; None for who has no quota. Four queries, and one for roles."""
    if may(user, Action.EXCEED_QUOTAS):
        return None
    limits = own(user)
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    used = _used_today(user, today)
    waiting = Sample.objects.filter(
        state=Sample.State.QUEUED,
        submission__uploader=user,
        submission__state=Submission.State.GRADING,
    )
    return Standing(
        Allowance(_limit(limits.submissions, settings.QUOTA_SUBMISSIONS), len(used)),
        Allowance(_limit(limits.samples, settings.QUOTA_SAMPLES), sum(used)),
        Allowance(_limit(limits.waiting, settings.QUOTA_WAITING), waiting.count()),
        today + timedelta(days=1),
    )


def told(user: User, samples: int) -> dict[str, Any]:
    """For reports: how ``user`` stands, and why a file of so many samples is not taken now."""
    now = standing(user)
    refusal = now.refusal(samples) if now else None
    return {"quota": now.as_dict() if now else None, "quota_refusal": str(refusal or "")}


def require(user: User, samples: int) -> None:
    """Raises `QuotaExceeded` where one more submission of so many samples is over the quota.

    Call it in the transaction that stores it: of two at once, the second one sees the first.
    """
    User.objects.select_for_update().get(pk=user.pk)
    now = standing(user)
    if now is not None and (refusal := now.refusal(samples)):
        raise refusal


def remember(submission: Submission) -> None:
    """Keep what a submission used, before it is deleted. Call it in a transaction."""
    for samples in _used(Submission.objects.filter(pk=submission.pk)):
        DeletedUse.objects.filter(at__lt=timezone.now() - timedelta(days=2)).delete()
        DeletedUse.objects.create(
            user_id=submission.uploader_id, samples=samples, at=submission.created_at
        )


def _limit(own: int | None, of_the_site: int) -> int:
    return of_the_site if own is None else own


def _used_today(user: User, today: datetime) -> list[int]:
    """Samples that each of today's submissions used, deleted ones too, and each file that was
    added to an older one.
    """
    made = Submission.objects.filter(uploader=user, created_at__gte=today)
    added = Addition.objects.filter(
        by=user, created_at__gte=today, submission__created_at__lt=today
    )
    deleted = DeletedUse.objects.filter(user=user, at__gte=today)
    others = added.order_by().values_list("sample_count", flat=True)
    others = others.union(deleted.values_list("samples", flat=True), all=True)
    return [*_used(made), *others]


def _used(submissions: QuerySet[Submission]) -> list[int]:
    """Samples used, by submission; those that used nothing are left out. One query."""
    failed = Sample.objects.filter(
        submission=OuterRef("pk"), state=Sample.State.PLATFORM_FAILED
    ).order_by()
    scores = TaskScore.objects.filter(submission=OuterRef("pk")).order_by().values("submission")
    rows = submissions.annotate(
        graded=Subquery(scores.annotate(sum=Sum("n")).values("sum")), failed=Exists(failed)
    )
    states = Submission.State
    used = []
    for row in rows.order_by().values("state", "sample_count", "graded", "failed"):
        if row["state"] == states.CANCELLED:
            used.append(row["graded"] or 0)
        elif row["state"] != states.DONE or not row["failed"]:
            used.append(row["sample_count"])
    return [samples for samples in used if samples]
