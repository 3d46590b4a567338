"""Calls about benchmarks and their tasks."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router

from grading.api.links import absolute
from grading.api.paging import page
from grading.models import BenchmarkVersion, Environment, Task
from grading.permissions import sees_targets, version_or_404, visible_versions

router = Router(tags=["benchmarks"])


@router.get("", summary="Benchmarks with their newest version")
def benchmarks(request: HttpRequest) -> list[dict[str, Any]]:
    newest: dict[int, BenchmarkVersion] = {}
    versions = visible_versions(request.user).select_related("benchmark", "environment")
    for version in versions.order_by("number"):
        newest[version.benchmark_id] = version
    return [_version(request, version) for version in newest.values()]


@router.get("/{slug}", summary="One benchmark: its newest version, or the one asked for")
def benchmark(request: HttpRequest, slug: str, version: str = "") -> dict[str, Any]:
    found = version_or_404(request.user, slug, version)
    numbers = visible_versions(request.user).filter(benchmark=found.benchmark)
    return _version(request, found) | {
        "description": found.benchmark.description,
        "tasks": found.tasks.count(),
        "versions": sorted(numbers.values_list("number", flat=True)),
        "prompts_url": absolute(request, "prompts", slug) + f"?version={found.number}",
        "targets_hidden": found.benchmark.targets_hidden,
    }


@router.get("/{slug}/tasks", summary="Tasks of a version, in order")
def tasks(
    request: HttpRequest, slug: str, version: str = "", cursor: str = "", limit: int = 100
) -> dict[str, Any]:
    found = version_or_404(request.user, slug, version)
    rows = Task.objects.filter(version=found)
    return page(
        rows,
        ["position"],
        cursor,
        limit,
        lambda some: [
            {"task_id": task.task_id, "slug": task.slug, "targets": len(task.targets)}
            for task in some.only("task_id", "slug", "targets")
        ],
    )


@router.get("/{slug}/tasks/{task}", summary="One task: prompt, and targets where they are shown")
def task(request: HttpRequest, slug: str, task: str, version: str = "") -> dict[str, Any]:
    found = version_or_404(request.user, slug, version)
    row = get_object_or_404(Task, version=found, slug=task)
    answer = {
        "task_id": row.task_id,
        "kind": row.kind,
        "prompt": row.prompt,
        "status": row.status,
        "timeout_s": row.timeout_s or row.measured_timeout_s,
        "url": absolute(request, "task", slug, row.slug),
    }
    if sees_targets(request.user, found.benchmark):
        answer |= {"targets": row.targets, "setup": row.setup, "entry_points": row.entry_points}
    return answer


def _environment(environment: Environment | None) -> dict[str, Any] | None:
    if environment is None:
        return None
    named = {"name": environment.name, "python": environment.python}
    return named | {"packages": environment.requirements}


def _version(request: HttpRequest, version: BenchmarkVersion) -> dict[str, Any]:
    return {
        "slug": version.benchmark.slug,
        "title": version.benchmark.title,
        "version": version.number,
        "content_hash": version.content_hash,
        "environment": _environment(version.environment),
        "url": absolute(request, "board", version.benchmark.slug),
    }
