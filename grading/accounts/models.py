"""Records of accounts beyond Django's own: invitations, and counts of attempts to get in."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class Invitation(models.Model):
    """A link that makes one account. Only a hash of what the link holds is kept."""

    token_hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    email = models.EmailField(blank=True)
    roles = models.JSONField(default=list, help_text="Roles the new account is given")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        app_label = "grading"
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"Invitation of {self.created_at:%Y-%m-%d}"


class Attempts(models.Model):
    """How often one thing was tried, such as to log in from one address, since ``since``."""

    key = models.CharField(max_length=64, primary_key=True, help_text="SHA-256 of what and who")
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(db_index=True)

    class Meta:
        app_label = "grading"

    def __str__(self) -> str:
        return f"{self.count} since {self.since:%H:%M}"
