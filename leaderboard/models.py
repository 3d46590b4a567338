"""Stored states of boards. Written once, by :mod:`leaderboard.snapshots`, and never changed."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from grading.models import BenchmarkVersion


class ScoreSheet(models.Model):
    """What one submission scored on every task. Snapshots in which that is the same share it."""

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the scores")
    scores = models.JSONField(help_text="Columns in the order of the tasks")

    def __str__(self) -> str:
        return self.digest[:12]


class Snapshot(models.Model):
    """A numbered state of one version's board."""

    version = models.ForeignKey(
        BenchmarkVersion, on_delete=models.CASCADE, related_name="snapshots"
    )
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of everything it was made from")
    policies = models.JSONField(help_text="Rules in force, and the digest of each run's scores")
    changes = models.JSONField(default=list, help_text="Why the board moved since the last one")
    tasks = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["version", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["version", "number"], name="one_snapshot_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.version} snapshot {self.number}"


class SnapshotRow(models.Model):
    """One model's run in a snapshot, with its figures under both policies for timeouts."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="rows")
    position = models.PositiveIntegerField()
    submission = models.CharField(max_length=10, help_text="Public id")
    facts = models.JSONField()
    figures = models.JSONField()
    sheet = models.ForeignKey(ScoreSheet, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["snapshot", "position"]
        constraints = [
            models.UniqueConstraint(fields=["snapshot", "position"], name="one_row_per_position"),
        ]

    def __str__(self) -> str:
        return f"{self.snapshot} {self.submission}"


class SnapshotTests(models.Model):
    """The tests behind a snapshot's rank ranges by one score, for every pair of ranked runs."""

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="tests")
    score = models.PositiveSmallIntegerField(help_text="The k of pass@k")
    standings = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["snapshot", "score"], name="one_test_per_score"),
        ]

    def __str__(self) -> str:
        return f"{self.snapshot} pass@{self.score}"


class Audit(models.Model):
    """What the runs of a snapshot say about the tasks themselves."""

    snapshot = models.OneToOneField(Snapshot, on_delete=models.CASCADE, related_name="audit")
    tasks = models.JSONField(help_text="Findings in the order of the tasks")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return f"{self.snapshot} audit"
