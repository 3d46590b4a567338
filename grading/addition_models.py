"""Record of files whose samples joined a submission after its first one."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class Addition(models.Model):
    """One further file of a submission, and what it brought."""

    submission = models.ForeignKey(
        "grading.Submission", on_delete=models.CASCADE, related_name="additions"
    )
    file_name = models.CharField(max_length=255, blank=True)
    file_hash = models.CharField(max_length=64)
    intake = models.JSONField(
        default=dict, blank=True, help_text="What the file was taken for, by field and reading"
    )
    sample_count = models.PositiveIntegerField()
    reopened = models.BooleanField(
        default=False, help_text="The submission had been graded to its end before"
    )
    lines_left_out = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["submission", "pk"]

    def __str__(self) -> str:
        return f"{self.submission_id} + {self.sample_count}"
