"""Records of what is asked: benchmarks, their frozen versions, tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.db import models, transaction
from django.utils import timezone

from grading.engine.task import Kind
from grading.environment_models import Environment
from grading.fields import HostileJSONField


class Benchmark(models.Model):
    """A named task set; its policies hold for all its versions."""

    slug = models.SlugField(unique=True, max_length=80)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    targets_hidden = models.BooleanField(
        default=False, help_text="Show targets and what they returned to staff only."
    )
    blocks = models.CharField(
        max_length=10,
        default="auto",
        choices=[
            ("auto", "first block that defines the entry point"),
            ("first", "first block"),
            ("last", "last block"),
        ],
    )
    preamble = models.CharField(
        max_length=10,
        default="imports",
        choices=[
            ("prompt", "the whole prompt"),
            ("imports", "the prompt's imports and helpers"),
            ("nothing", "nothing"),
        ],
    )
    denylist = models.JSONField(
        null=True, blank=True, help_text="List of denied modules; empty means the default list."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["title"]

    def __str__(self) -> str:
        return self.title


class BenchmarkVersion(models.Model):
    """A frozen edition of a benchmark. Scores compare only within one version."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    content_hash = models.CharField(
        max_length=64, help_text="SHA-256 of the canonical task records and the environment"
    )
    environment = models.ForeignKey(
        Environment,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="versions",
        help_text="Where programs and targets run; empty: the grader's own interpreter",
    )
    source = models.CharField(max_length=200, blank=True)
    notes = models.JSONField(
        default=dict, blank=True, help_text="Import report: dropped targets, rejected records."
    )
    published = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["benchmark", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "number"], name="one_version_per_number"),
            models.UniqueConstraint(
                fields=["benchmark", "content_hash"], name="one_version_per_content"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.benchmark} version {self.number}"


class Task(models.Model):
    """One task of a version, as imported. The engine's `Task` is built from it."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        SUSPECT = "suspect"  # its own reference solution does not pass

    version = models.ForeignKey(BenchmarkVersion, on_delete=models.CASCADE, related_name="tasks")
    task_id = models.CharField(max_length=200, help_text="As in the task file, such as HumanEval/0")
    slug = models.CharField(max_length=200, help_text="URL form of the task id")
    position = models.PositiveIntegerField()
    category = models.CharField(max_length=40, default="code_exec")
    prompt = models.TextField()
    kind = models.CharField(
        max_length=10,
        default=Kind.ASSERTION.value,
        choices=[
            (Kind.ASSERTION.value, "assertions"),
            (Kind.STDIO.value, "standard input and output"),
        ],
    )
    targets = models.JSONField(
        help_text="Assertion strings; for standard input and output, objects with both"
    )
    setup = models.TextField(blank=True)
    entry_points = models.JSONField(default=list)
    reference = models.TextField(blank=True, help_text="Reference solution: a whole program")
    timeout_s = models.FloatField(null=True, blank=True, help_text="From the task's metadata")
    measured_timeout_s = models.FloatField(
        null=True, blank=True, help_text="4 x the reference's time where that exceeds the default"
    )
    allow_processes = models.BooleanField(default=False)
    in_place = models.BooleanField(default=False)
    metadata = models.JSONField(default=dict)
    few_shot_examples = models.JSONField(default=list)
    content_hash = models.CharField(max_length=64)
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    reference_verdict = HostileJSONField(
        null=True, blank=True, help_text="Verdict of the reference solution at import"
    )

    class Meta:
        ordering = ["version", "position"]
        constraints = [
            models.UniqueConstraint(fields=["version", "task_id"], name="one_task_per_id"),
            models.UniqueConstraint(fields=["version", "slug"], name="one_task_per_slug"),
            models.UniqueConstraint(fields=["version", "position"], name="one_task_per_position"),
        ]

    def __str__(self) -> str:
        return self.task_id


class TaskFlagManager(models.Manager["TaskFlag"]):
    @transaction.atomic
    def replace(self, version: BenchmarkVersion, found: Mapping[str, Collection[str]]) -> None:
        """Put the flags of a version's tasks, by their slug, in the place of all they had."""
        self.filter(task__version=version).delete()
        flagged = Task.objects.filter(version=version, slug__in=[k for k, v in found.items() if v])
        self.bulk_create(
            TaskFlag(task_id=pk, name=name)
            for pk, slug in flagged.values_list("pk", "slug")
            for name in found[slug]
        )


class TaskFlag(models.Model):
    """What the newest audit of the tasks found of one; names are those of `grading.flags`."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="flags")
    name = models.CharField(max_length=20, db_index=True)

    objects = TaskFlagManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "name"], name="one_task_flag_per_name"),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.name}"
