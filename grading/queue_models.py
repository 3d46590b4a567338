"""Records of the queue as a whole: what operators told it to do, and which workers were lost."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class QueueChange(models.Model):
    """An operator's word to all workers; the newest one is in force, and without one they work."""

    class Mode(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"  # what is at work is finished, nothing else begins
        DRAINING = "draining"  # the same, and a worker that holds nothing ends

    mode = models.CharField(max_length=10, choices=Mode)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    reason = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        app_label = "grading"
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.mode} since {self.at:%Y-%m-%d %H:%M}"


class WorkerLoss(models.Model):
    """A worker that was lost while it held a chunk; ``samples`` of it were queued again."""

    submission = models.ForeignKey(
        "grading.Submission", on_delete=models.CASCADE, related_name="worker_losses"
    )
    worker = models.CharField(max_length=120)
    samples = models.PositiveIntegerField()
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        app_label = "grading"
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.worker} at {self.at:%Y-%m-%d %H:%M}"
