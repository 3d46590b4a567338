"""Records of the API's callers: their tokens, and what they named their requests."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class IdempotencyKey(models.Model):
    """What a caller named a request, so that sending it again does not do it again.

    It led to a submission or to a regrade.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    submission = models.ForeignKey(
        "grading.Submission", on_delete=models.CASCADE, null=True, related_name="+"
    )
    regrade = models.ForeignKey(
        "grading.Regrade", on_delete=models.CASCADE, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="one_request_per_key"),
            models.CheckConstraint(
                condition=models.Q(submission__isnull=True) ^ models.Q(regrade__isnull=True),
                name="one_result_per_key",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class ApiToken(models.Model):
    """A key for the API. Only the hash of its secret is kept; see :mod:`grading.tokens`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=80)
    start = models.CharField(max_length=16, help_text="First characters, to tell tokens apart")
    secret_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    used_from = models.CharField(max_length=64, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.start}…"
