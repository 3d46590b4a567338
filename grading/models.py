"""Records of grading: what was submitted and how every run of it ended; all others by name.

Life of a sample: ``queued`` -> ``done`` (one attempt decided), ``platform_failed`` (the platform
could not grade it; no score) or ``cancelled``. Only :mod:`grading.verdicts` writes ``done``.
Large texts live in rows of their own (`Generation`, `AttemptText`), so list queries stay narrow.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from grading.accounts.models import Attempts, Invitation
from grading.addition_models import Addition
from grading.alias_models import ModelAlias, ModelMerge
from grading.api_models import ApiToken, IdempotencyKey
from grading.benchmark_models import Benchmark, BenchmarkVersion, Task, TaskFlag
from grading.crash_models import CrashGroup, Fingerprint, GroupEvent
from grading.engine.outcome import Outcome
from grading.environment_models import Environment
from grading.fields import HostileJSONField
from grading.public_ids import public_id
from grading.queue_models import QueueChange, WorkerLoss
from grading.quota_models import DeletedUse, Quota
from grading.regrade_models import ChangeLogEntry, Regrade, RegradeRun

__all__ = [
    "Addition",
    "ApiToken",
    "Attempt",
    "AttemptText",
    "Attempts",
    "Benchmark",
    "BenchmarkVersion",
    "ChangeLogEntry",
    "Chunk",
    "CrashGroup",
    "DeletedUse",
    "Environment",
    "Fingerprint",
    "Generation",
    "GroupEvent",
    "IdempotencyKey",
    "Invitation",
    "LanguageModel",
    "ModelAlias",
    "ModelMerge",
    "QueueChange",
    "Quota",
    "Regrade",
    "RegradeRun",
    "Sample",
    "Submission",
    "Task",
    "TaskFlag",
    "TaskScore",
    "WorkerLoss",
]


class LanguageModel(models.Model):
    """What is ranked."""

    slug = models.SlugField(unique=True, max_length=120, allow_unicode=True)
    name = models.CharField(unique=True, max_length=200)
    organisation = models.CharField(max_length=200, blank=True)
    url = models.URLField(blank=True)
    size_b = models.FloatField(null=True, blank=True, help_text="Parameters in thousand millions")
    released = models.DateField(null=True, blank=True)
    tags = models.JSONField(default=list, blank=True)
    synthetic = models.BooleanField(
        default=False, help_text="Made by the demo from mutated reference solutions."
    )
    merged_into = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="merged",
        help_text="The same model under the name it goes by; then nothing is submitted to this one",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SubmissionManager(models.Manager["Submission"]):
    """Submissions that are there whole: one being stored or removed is seen by nobody."""

    def get_queryset(self) -> models.QuerySet[Submission]:
        hidden = (Submission.State.STORING, Submission.State.REMOVING)
        return super().get_queryset().exclude(state__in=hidden)


class Submission(models.Model):
    """One upload of one language model's generations for one benchmark version."""

    class State(models.TextChoices):
        STORING = "storing"
        GRADING = "grading"
        DONE = "done"
        CANCELLED = "cancelled"
        REMOVING = "removing"

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        UNLISTED = "unlisted"  # for whoever has the link; on no list
        PRIVATE = "private"

    public_id = models.CharField(max_length=10, unique=True, default=public_id, editable=False)
    version = models.ForeignKey(
        BenchmarkVersion, on_delete=models.PROTECT, related_name="submissions"
    )
    language_model = models.ForeignKey(
        LanguageModel, on_delete=models.PROTECT, related_name="submissions"
    )
    uploader = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="submissions"
    )
    visibility = models.CharField(
        max_length=10, choices=Visibility, default=Visibility.PUBLIC, db_index=True
    )
    generations_hidden = models.BooleanField(
        default=False, help_text="Show outcomes and scores, but no text of a generation."
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    settings = models.JSONField(
        default=dict, blank=True, help_text="Temperature, prompt style and the like"
    )
    file_name = models.CharField(max_length=255, blank=True)
    file_hash = models.CharField(max_length=64, db_index=True)
    intake = models.JSONField(
        default=dict, blank=True, help_text="What the file was taken for, by field and reading"
    )
    state = models.CharField(max_length=10, choices=State, default=State.GRADING, db_index=True)
    sample_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    added_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When samples were last added"
    )
    finished_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When a worker last recorded a verdict or renewed a lease; "
        "while it is stored or removed, when that last went on",
    )

    objects = SubmissionManager()
    everything = models.Manager()

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["version", "language_model", "state"])]

    def __str__(self) -> str:
        return self.public_id

    @property
    def queued_at(self) -> datetime:
        """When its newest samples came."""
        return self.added_at or self.created_at


class Chunk(models.Model):
    """About twenty samples of one submission: the unit of one RQ job.

    ``waiting`` -> ``queued`` (a job with this id is in the broker) -> ``running`` (leased by a
    worker that holds ``token``) -> ``done``.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="chunks")
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    queued_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    worker = models.CharField(max_length=120, blank=True)

    class Meta:
        ordering = ["submission", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "position"], name="one_chunk_per_position"
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "lease_until"],
                name="open_chunks",
                condition=~models.Q(state="done"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.submission} chunk {self.position}"


class Sample(models.Model):
    """One generation for one task. Its current attempt, if any, is its verdict."""

    class State(models.TextChoices):
        QUEUED = "queued"
        DONE = "done"
        CANCELLED = "cancelled"
        PLATFORM_FAILED = "platform_failed"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="samples")
    chunk = models.ForeignKey(Chunk, on_delete=models.SET_NULL, null=True, related_name="samples")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="samples")
    index = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    current_attempt = models.OneToOneField(
        "Attempt", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    fingerprint = models.ForeignKey(
        Fingerprint,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="samples",
        help_text="How it ended, where it did not pass",
    )
    started_at = models.DateTimeField(null=True, blank=True, help_text="Set while a worker runs it")
    losses = models.PositiveSmallIntegerField(
        default=0, help_text="Times a worker was lost, or the platform failed, while it ran"
    )
    platform_failure = models.TextField(blank=True, help_text="Last failure of the platform")

    class Meta:
        ordering = ["submission", "task", "index"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "task", "index"], name="one_sample_per_index"
            ),
        ]
        indexes = [
            models.Index(
                fields=["submission"],
                name="queued_samples",
                condition=models.Q(state="queued"),
            ),
            models.Index(
                fields=["submission"],
                name="failed_samples",
                condition=models.Q(state="platform_failed"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.submission} {self.task} sample {self.index}"


class Generation(models.Model):
    """The uploaded text of a sample."""

    sample = models.OneToOneField(
        Sample, on_delete=models.CASCADE, primary_key=True, related_name="generation"
    )
    format = models.CharField(
        max_length=10,
        choices=[("generation", "generation"), ("completion", "completion")],
        default="generation",
    )
    peer_passed = models.BooleanField(
        null=True, blank=True, help_text="Verdict of another grader, as it stood in the file"
    )
    text = HostileJSONField()
    extra = HostileJSONField(default=dict, help_text="Other fields of the uploaded line")


class Attempt(models.Model):
    """One run of a sample, or the verdict of an equal run; never changed once written."""

    class Kind(models.TextChoices):
        FIRST = "first"
        RETRY = "retry"
        REGRADE = "regrade"

    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.FIRST)
    outcome = models.CharField(
        max_length=16, choices=[(outcome.value, outcome.value) for outcome in Outcome]
    )
    passed = models.PositiveIntegerField()
    total = models.PositiveIntegerField()
    score = models.FloatField()
    sealed = models.PositiveIntegerField(help_text="Targets evaluated outside the cell")
    detail = models.TextField(blank=True)
    failure_phase = models.CharField(max_length=10, blank=True)
    exception = models.CharField(max_length=120, blank=True)
    denied = models.JSONField(default=list)
    wall_s = models.FloatField()
    cpu_s = models.FloatField()
    peak_bytes = models.BigIntegerField()
    starved = models.BooleanField(default=False)
    tier = models.CharField(max_length=20)
    hardening = models.JSONField(default=list)
    tricks = models.JSONField(
        default=list, help_text="Signs of a program made to fool its grader, for review"
    )
    python = models.CharField(max_length=40)
    environment = models.CharField(
        max_length=12, blank=True, help_text="Stamp; empty: the grader's own interpreter"
    )
    grader_version = models.PositiveIntegerField()
    worker = models.CharField(max_length=120)
    created_at = models.DateTimeField(default=timezone.now)
    run_key = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 of all that decides the verdict"
    )
    repeats = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="repeated_by",
        help_text="The run whose verdict this is; empty where the program was run for it",
    )

    class Meta:
        ordering = ["sample", "number"]
        constraints = [
            models.UniqueConstraint(fields=["sample", "number"], name="one_attempt_per_number"),
        ]
        indexes = [
            models.Index(fields=["outcome", "-created_at"]),
            models.Index(
                fields=["run_key"], name="own_runs", condition=models.Q(repeats__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sample} attempt {self.number}: {self.outcome}"


class AttemptText(models.Model):
    """The bulky part of an attempt, read only on its own page."""

    attempt = models.OneToOneField(
        Attempt, on_delete=models.CASCADE, primary_key=True, related_name="text"
    )
    program = HostileJSONField(help_text="The text that ran")
    targets = HostileJSONField(default=list, help_text="Results in the order of the targets")
    failure = HostileJSONField(null=True)
    stdout = HostileJSONField(default=dict)
    stderr = HostileJSONField(default=dict)
    limits = models.JSONField(default=dict)
    extraction = models.JSONField(default=dict)


class TaskScore(models.Model):
    """Summary of one submission on one task; recomputed, never incremented.

    ``n`` graded samples, ``c`` of them with every target true, ``fraction_sum`` the sum of their
    fractions; one counter per outcome.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="task_scores")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="task_scores")
    n = models.PositiveIntegerField()
    c = models.PositiveIntegerField()
    fraction_sum = models.FloatField()
    assertion_fail = models.PositiveIntegerField(default=0)
    syntax_error = models.PositiveIntegerField(default=0)
    timeout = models.PositiveIntegerField(default=0)
    error = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["submission", "task"], name="one_score_per_task"),
        ]

    def __str__(self) -> str:
        return f"{self.submission} {self.task}: {self.c} of {self.n}"
