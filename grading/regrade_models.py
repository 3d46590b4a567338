"""Records of regrades: samples run again in the shadow of their verdicts, and what became of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from grading.public_ids import public_id


class Regrade(models.Model):
    """Samples to be run again, why, and what was decided on the results.

    ``running`` (shadow attempts are made) -> ``ready`` (to be looked at) -> ``applied``; or
    ``cancelled`` from either. With ``target`` the samples are run against the tasks of that
    version instead, and applying adds their submissions to it.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        READY = "ready"
        APPLIED = "applied"
        CANCELLED = "cancelled"

    public_id = models.CharField(max_length=10, unique=True, default=public_id, editable=False)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING, db_index=True)
    reason = models.TextField()
    selection = models.JSONField(default=dict, help_text="What was chosen: filter and value")
    repeats = models.PositiveSmallIntegerField(default=1)
    target = models.ForeignKey(
        "grading.BenchmarkVersion",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="regrades",
    )
    left_out = models.JSONField(
        default=dict, help_text="Samples that were in another open regrade, by its id"
    )
    joined = models.JSONField(default=list, help_text="Who else asked for the same, and why")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="regrades"
    )
    created_at = models.DateTimeField(default=timezone.now)
    ready_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="decided_regrades",
    )
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.public_id


class RegradeRun(models.Model):
    """One run of one sample for a regrade: the unit that a worker leases.

    ``queued`` -> ``running`` (leased to the worker that holds ``token``) -> ``done`` (it has an
    attempt) or ``platform_failed``; ``cancelled`` where its regrade was before it ran.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        PLATFORM_FAILED = "platform_failed"
        CANCELLED = "cancelled"

    regrade = models.ForeignKey(Regrade, on_delete=models.CASCADE, related_name="runs")
    sample = models.ForeignKey(
        "grading.Sample", on_delete=models.CASCADE, related_name="regrade_runs"
    )
    task = models.ForeignKey(
        "grading.Task", on_delete=models.PROTECT, related_name="+", help_text="It is run against"
    )
    repeat = models.PositiveSmallIntegerField()
    before = models.ForeignKey(
        "grading.Attempt",
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The sample's verdict when the regrade was asked for",
    )
    attempt = models.OneToOneField(
        "grading.Attempt", on_delete=models.SET_NULL, null=True, related_name="regrade_run"
    )
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    applied = models.BooleanField(default=False)
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    losses = models.PositiveSmallIntegerField(default=0)
    platform_failure = models.TextField(blank=True)

    class Meta:
        ordering = ["regrade", "sample", "repeat"]
        constraints = [
            models.UniqueConstraint(
                fields=["regrade", "sample", "repeat"], name="one_run_per_repeat"
            ),
        ]
        indexes = [
            models.Index(
                fields=["regrade", "state"],
                name="open_runs",
                condition=models.Q(state__in=["queued", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.regrade_id} sample {self.sample_id} run {self.repeat}"


class ChangeLogManager(models.Manager["ChangeLogEntry"]):
    """Entries for the board page."""

    def of_version(self, version_id: int) -> models.QuerySet[ChangeLogEntry]:
        """What changed on a version's board, newest first, with who did it."""
        entries = self.get_queryset().filter(version=version_id)
        return entries.select_related("by", "regrade").order_by("-created_at", "-pk")


class ChangeLogEntry(models.Model):
    """One line that says why the figures of a benchmark version changed."""

    version = models.ForeignKey(
        "grading.BenchmarkVersion", on_delete=models.CASCADE, related_name="change_log"
    )
    regrade = models.ForeignKey(
        Regrade, on_delete=models.SET_NULL, null=True, blank=True, related_name="change_log"
    )
    what = models.CharField(max_length=300, help_text="What changed: a plain sentence")
    reason = models.TextField(blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    objects = ChangeLogManager()

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.what
