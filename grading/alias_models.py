"""Records of language models that are one: further names, and who merged what."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone


class ModelAlias(models.Model):
    """Another name of a language model: uploads under it are that model's."""

    name = models.CharField(unique=True, max_length=200)
    language_model = models.ForeignKey(
        "grading.LanguageModel", on_delete=models.CASCADE, related_name="aliases"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ModelMerge(models.Model):
    """One language model merged into another: who, when, why, and what moved."""

    source = models.ForeignKey(
        "grading.LanguageModel", on_delete=models.CASCADE, related_name="merges"
    )
    target = models.ForeignKey(
        "grading.LanguageModel", on_delete=models.CASCADE, related_name="merges_into"
    )
    reason = models.TextField()
    submissions = models.JSONField(default=list, help_text="Keys of the submissions that moved")
    aliases = models.JSONField(default=list, help_text="Names that moved along")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    undone_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.source} into {self.target}"
