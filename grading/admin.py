"""Plain admin for every record. Lists read no large text; what is decided cannot be changed."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet, URLField
from django.http import HttpRequest
from django.urls import URLPattern, path

from grading import admin_import, environments
from grading.accounts.models import Attempts, Invitation
from grading.models import (
    Addition,
    ApiToken,
    Attempt,
    AttemptText,
    Benchmark,
    BenchmarkVersion,
    ChangeLogEntry,
    Chunk,
    CrashGroup,
    DeletedUse,
    Environment,
    Fingerprint,
    Generation,
    GroupEvent,
    IdempotencyKey,
    LanguageModel,
    ModelAlias,
    ModelMerge,
    QueueChange,
    Quota,
    Regrade,
    RegradeRun,
    Sample,
    Submission,
    Task,
    TaskFlag,
    TaskScore,
    WorkerLoss,
)

admin.site.site_header = "Evalsite administration"
admin.site.site_title = "Evalsite"
admin.site.index_title = "Records"

SHOWN_CHARS = 20_000
TASK_TEXTS = ("prompt", "targets", "setup", "reference", "metadata", "few_shot_examples")


class ReadOnlyAdmin(admin.ModelAdmin):
    """Records that the pipeline writes: to be looked at, not to be changed by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _ascii(name: str) -> Any:
    """A column for hostile text: as ASCII JSON, since no page can carry a lone surrogate."""

    @admin.display(description=name)
    def shown(row: Any) -> str:
        text = json.dumps(getattr(row, name), ensure_ascii=True, indent=1)
        return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]} … {len(text):,} in all"

    return shown


GENERATION_TEXTS: Any = (_ascii("text"), _ascii("extra"))
ATTEMPT_TEXTS: Any = (
    *map(_ascii, ("program", "targets", "failure", "stdout", "stderr")),
    "limits",
    "extraction",
)


def _in_list(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and (match.url_name or "").endswith("_changelist")


@admin.register(Benchmark)
class BenchmarkAdmin(admin.ModelAdmin):
    list_display = ("title", "slug", "targets_hidden", "blocks", "preamble", "created_at")
    search_fields = ("title", "slug")
    change_list_template = "grading/admin/benchmarks.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(admin_import.import_benchmark)
        return [path("import/", view, name="grading_benchmark_import"), *super().get_urls()]


@admin.register(BenchmarkVersion)
class BenchmarkVersionAdmin(admin.ModelAdmin):
    """A version is frozen: only whether it is published can change."""

    list_display = ("__str__", "source", "published", "created_at")
    list_filter = ("published", "benchmark")
    list_select_related = ("benchmark",)
    readonly_fields = (
        "benchmark",
        "number",
        "content_hash",
        "environment",
        "source",
        "notes",
        "created_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Environment)
class EnvironmentAdmin(admin.ModelAdmin):
    """What it holds is frozen once a version uses it."""

    list_display = ("name", "summary", "created_at")
    search_fields = ("name",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Environment | None = None
    ) -> tuple[str, ...]:
        return obj.COVERED if obj and environments.is_used(obj) else ()


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ("task_id", "version", "position", "status", "timeout_s", "measured_timeout_s")
    list_filter = ("status", "version__benchmark")
    list_select_related = ("version__benchmark",)
    search_fields = ("task_id",)
    exclude = ("reference_verdict",)
    readonly_fields = (_ascii("reference_verdict"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        tasks: QuerySet[Task] = super().get_queryset(request)
        return tasks.defer(*TASK_TEXTS, "reference_verdict") if _in_list(request) else tasks


@admin.register(LanguageModel)
class LanguageModelAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "organisation", "size_b", "released", "synthetic")
    list_filter = ("synthetic",)
    search_fields = ("name", "slug", "organisation")
    formfield_overrides = {URLField: {"assume_scheme": "https"}}


@admin.register(Submission)
class SubmissionAdmin(admin.ModelAdmin):
    """The uploader's choices can be changed; what was uploaded and came out cannot."""

    list_display = (
        "public_id",
        "language_model",
        "version",
        "uploader",
        "visibility",
        "state",
        "sample_count",
        "created_at",
    )
    list_filter = ("state", "visibility", "version__benchmark")
    list_select_related = ("language_model", "version__benchmark", "uploader")
    search_fields = ("public_id", "language_model__name", "file_name", "file_hash")
    raw_id_fields = ("language_model", "uploader")
    readonly_fields = (
        "public_id",
        "version",
        "file_name",
        "file_hash",
        "state",
        "sample_count",
        "created_at",
        "finished_at",
        "heartbeat_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    list_display = ("submission", "position", "state", "worker", "tries", "lease_until")
    list_filter = ("state",)
    list_select_related = ("submission",)
    search_fields = ("=submission__public_id", "worker")


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    list_display = ("submission", "task", "index", "state", "losses", "platform_failure")
    list_filter = ("state",)
    list_select_related = ("submission", "task")
    raw_id_fields = ("submission", "chunk", "task", "current_attempt", "fingerprint")
    search_fields = ("=submission__public_id", "=task__task_id")
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Sample]:
        samples: QuerySet[Sample] = super().get_queryset(request)
        return samples.defer(*_under("task", TASK_TEXTS)) if _in_list(request) else samples


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ("sample_id", "format")
    fields = ("sample", "format", *GENERATION_TEXTS)
    readonly_fields = GENERATION_TEXTS
    search_fields = ("=sample__submission__public_id",)
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Generation]:
        generations: QuerySet[Generation] = super().get_queryset(request)
        return generations.defer("text", "extra") if _in_list(request) else generations


class AttemptTextInline(admin.StackedInline):
    model = AttemptText
    can_delete = False
    fields = ATTEMPT_TEXTS
    readonly_fields = ATTEMPT_TEXTS

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = (
        "sample_id",
        "number",
        "kind",
        "outcome",
        "passed",
        "total",
        "exception",
        "wall_s",
        "tier",
        "worker",
        "created_at",
    )
    list_filter = ("outcome", "kind", "tier", "failure_phase")
    search_fields = ("=sample__submission__public_id", "=exception")
    inlines = (AttemptTextInline,)
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        attempts: QuerySet[Attempt] = super().get_queryset(request)
        return attempts.defer("detail", "denied", "hardening") if _in_list(request) else attempts


@admin.register(AttemptText)
class AttemptTextAdmin(ReadOnlyAdmin):
    list_display = ("attempt_id",)
    fields = ("attempt", *ATTEMPT_TEXTS)
    readonly_fields = ATTEMPT_TEXTS
    search_fields = ("=attempt__sample__submission__public_id",)
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[AttemptText]:
        texts: QuerySet[AttemptText] = super().get_queryset(request)
        return texts.only("attempt_id") if _in_list(request) else texts


@admin.register(TaskScore)
class TaskScoreAdmin(ReadOnlyAdmin):
    list_display = ("submission", "task", "n", "c", "fraction_sum")
    list_select_related = ("submission", "task")
    search_fields = ("=submission__public_id", "=task__task_id")
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskScore]:
        scores: QuerySet[TaskScore] = super().get_queryset(request)
        return scores.defer(*_under("task", TASK_TEXTS)) if _in_list(request) else scores


@admin.register(CrashGroup)
class CrashGroupAdmin(ReadOnlyAdmin):
    list_display = ("public_id", "state", "kind", "title", "assignee", "first_seen_at")
    list_filter = ("state", "kind")
    list_select_related = ("assignee",)
    search_fields = ("=public_id", "title")


@admin.register(Fingerprint)
class FingerprintAdmin(ReadOnlyAdmin):
    list_display = ("value", "version", "kind", "title", "group")
    list_select_related = ("group",)
    search_fields = ("=value", "title")


@admin.register(GroupEvent)
class GroupEventAdmin(ReadOnlyAdmin):
    list_display = ("group", "kind", "before", "after", "by", "created_at")
    list_select_related = ("group", "by")
    list_filter = ("kind",)


@admin.register(Regrade)
class RegradeAdmin(ReadOnlyAdmin):
    list_display = ("public_id", "state", "repeats", "asked_by", "decided_by", "created_at")
    list_filter = ("state",)
    list_select_related = ("asked_by", "decided_by")
    search_fields = ("=public_id",)


@admin.register(RegradeRun)
class RegradeRunAdmin(ReadOnlyAdmin):
    list_display = ("regrade_id", "sample_id", "repeat", "state", "worker", "losses", "applied")
    list_filter = ("state",)
    raw_id_fields = ("regrade", "sample", "task", "before", "attempt")
    search_fields = ("=regrade__public_id",)
    show_full_result_count = False


admin.site.register([Addition, ModelAlias, TaskFlag], ReadOnlyAdmin)


@admin.register(ModelMerge)
class ModelMergeAdmin(ReadOnlyAdmin):
    list_display = ("source", "target", "by", "created_at", "undone_at")
    list_select_related = ("source", "target", "by")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("start", "user", "name", "expires_at", "used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("start", "user__username")
    exclude = ("secret_hash",)


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    list_display = ("key", "user", "submission", "created_at")
    list_select_related = ("user", "submission")


@admin.register(ChangeLogEntry)
class ChangeLogEntryAdmin(ReadOnlyAdmin):
    list_display = ("version", "what", "by", "created_at")
    list_select_related = ("version__benchmark", "by")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "email", "created_by", "expires_at", "used_by")
    list_select_related = ("created_by", "used_by")
    exclude = ("token_hash",)


@admin.register(Attempts)
class AttemptsAdmin(ReadOnlyAdmin):
    list_display = ("key", "count", "since")


@admin.register(QueueChange)
class QueueChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "mode", "by", "reason")
    list_select_related = ("by",)


@admin.register(WorkerLoss)
class WorkerLossAdmin(ReadOnlyAdmin):
    list_display = ("at", "worker", "samples", "submission")
    list_select_related = ("submission",)


@admin.register(Quota)
class QuotaAdmin(admin.ModelAdmin):
    list_display = ("user", "submissions", "samples", "waiting")
    list_select_related = ("user",)
    raw_id_fields = ("user",)


@admin.register(DeletedUse)
class DeletedUseAdmin(ReadOnlyAdmin):
    list_display = ("at", "user", "samples")
    list_select_related = ("user",)


def _under(relation: str, names: tuple[str, ...]) -> list[str]:
    return [f"{relation}__{name}" for name in (*names, "reference_verdict")]
