"""Records of quotas: who has another than the site's, and what deleted submissions had used."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Quota(models.Model):
    """A person's own limits; None is the site's, 0 is none at all."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="quota"
    )
    submissions = models.PositiveIntegerField("Submissions a day", null=True, blank=True)
    samples = models.PositiveIntegerField("Samples a day", null=True, blank=True)
    waiting = models.PositiveIntegerField("Samples waiting at once", null=True, blank=True)

    class Meta:
        app_label = "grading"

    def __str__(self) -> str:
        return f"{self.user_id}: {self.submissions}, {self.samples}, {self.waiting}"


class DeletedUse(models.Model):
    """What one deleted submission had used of its uploader's quota; nothing else of it is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    samples = models.PositiveIntegerField()
    at = models.DateTimeField(db_index=True)

    class Meta:
        app_label = "grading"

    def __str__(self) -> str:
        return f"{self.user_id}: {self.samples} on {self.at:%Y-%m-%d}"
