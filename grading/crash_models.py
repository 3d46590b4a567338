"""Records of crash review: groups of failures that are the same, and what was decided on them.

A sample points to the fingerprint of how it ended, a fingerprint to its group. Merging moves
fingerprints, never samples, so it outlives regrades and new failures of the same kind.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from grading.fingerprints import DETAILS
from grading.public_ids import public_id


class CrashGroup(models.Model):
    """Failures that are handled as one."""

    class State(models.TextChoices):
        NEW = "new", "new"
        TRIAGED = "triaged", "triaged"
        KNOWN = "known_model_failure", "known model failure"
        GRADER_BUG = "grader_bug", "grader bug"
        IGNORED = "ignored", "ignored"
        # Only set by itself: an ignored group grew, a fixed one was seen again.
        ESCALATING = "escalating", "escalating"
        REGRESSED = "regressed", "regressed"

    public_id = models.CharField(max_length=10, unique=True, default=public_id, editable=False)
    state = models.CharField(max_length=20, choices=State, default=State.NEW, db_index=True)
    kind = models.CharField(max_length=20, db_index=True)
    title = models.CharField(max_length=300)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="crash_groups",
    )
    ignored_until = models.PositiveIntegerField(
        null=True, blank=True, help_text="Samples with which an ignored group escalates"
    )
    fixed_in_grader = models.PositiveIntegerField(
        null=True, blank=True, help_text="Grader version that is to end a grader bug"
    )
    fixed_in_version = models.ForeignKey(
        "grading.BenchmarkVersion",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="fixed_groups",
        help_text="Benchmark version whose tasks are put right",
    )
    merged_into = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="merged",
        help_text="Where its fingerprints went; its own page keeps its history",
    )
    first_seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-first_seen_at"]

    def __str__(self) -> str:
        return self.title

    @property
    def place(self) -> str:
        """The title without what programs returned or said."""
        return self.title.partition(DETAILS)[0]


class Fingerprint(models.Model):
    """One way to end, as :mod:`grading.fingerprints` tells it, and the group it belongs to."""

    value = models.CharField(max_length=16, unique=True)
    version = models.PositiveSmallIntegerField()
    group = models.ForeignKey(CrashGroup, on_delete=models.CASCADE, related_name="fingerprints")
    title = models.CharField(max_length=300)
    kind = models.CharField(max_length=20)
    parts = models.JSONField(default=list, help_text="What it was grouped by: (word, value)")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return self.value


class GroupEvent(models.Model):
    """One change of a group, or a note on it; never changed once written."""

    class Kind(models.TextChoices):
        STATE = "state"
        ASSIGNED = "assigned"
        NOTE = "note"
        MERGED = "merged"
        SPLIT = "split"

    group = models.ForeignKey(CrashGroup, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=10, choices=Kind)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Empty where it happened by itself",
    )
    before = models.CharField(max_length=300, blank=True)
    after = models.CharField(max_length=300, blank=True)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.group_id} {self.kind}"
