"""The admin's form to import a benchmark: a task file, or HumanEval from its package."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify

from grading import benchmarks, references
from grading.engine import humaneval, task_files
from grading.engine.jsonl import Problem
from grading.engine.task_files import TaskSource
from grading.models import Benchmark, Environment

REFUSED = 422
HUMAN_EVAL = "humaneval"


class ImportForm(forms.Form):
    """Either a file or the known benchmark."""

    source = forms.ChoiceField(
        choices=[("file", "a task file"), (HUMAN_EVAL, "HumanEval, from the package human-eval")]
    )
    file = forms.FileField(
        required=False,
        help_text=(
            "Task records, or tasks as HumanEval, MBPP, APPS, LiveCodeBench, ClassEval and "
            "BigCodeBench publish them: .jsonl or a .json array, packed with gzip or not."
        ),
        widget=forms.ClearableFileInput(attrs={"accept": ".jsonl,.json,.gz"}),
    )
    slug = forms.SlugField(
        required=False, max_length=80, help_text="Short name in URLs; empty: from the file's name."
    )
    title = forms.CharField(
        required=False, max_length=200, help_text="Name on the pages; empty: the file's name."
    )
    environment = forms.ModelChoiceField(
        Environment.objects.all(),
        required=False,
        empty_label="the grader's own interpreter",
        help_text="Where programs and targets run; part of what makes a version.",
    )
    allow_bad = forms.BooleanField(
        required=False, label="Import the good records of a file that has bad ones"
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("source") == "file" and not data.get("file"):
            self.add_error("file", "Choose a task file.")
        return data


def import_benchmark(request: HttpRequest) -> HttpResponse:
    """Import now; the reference solutions are graded by a worker."""
    if not request.user.has_perm("grading.add_benchmark"):
        raise PermissionDenied("administrator of benchmarks")
    form = ImportForm(request.POST or None, request.FILES or None)
    if not form.is_valid():
        return _page(request, form, [], REFUSED if form.is_bound else 200)
    try:
        source = _source(form.cleaned_data)
        imported = _import(source, form.cleaned_data)
    except (humaneval.MissingData, ValueError) as problem:
        form.add_error("source", str(problem))
        return _page(request, form, [], REFUSED)
    except benchmarks.ImportRefused as refused:
        form.add_error(None, f"Refused: {refused}. Nothing was stored.")
        return _page(request, form, refused.problems.kept, REFUSED)
    _tell(request, source, imported)
    return redirect("admin:grading_benchmarkversion_change", imported.version.pk)


def _source(data: dict[str, Any]) -> TaskSource:
    if data["source"] == HUMAN_EVAL:
        return task_files.human_eval()
    return task_files.read(data["file"].file, data["file"].name)


def _import(source: TaskSource, data: dict[str, Any]) -> benchmarks.Imported:
    slug = data["slug"] or slugify(source.title)
    if not slug:
        raise ValueError("the file's name gives no slug; fill one in")
    dropped = [{"task_id": one.task_id, "target": one.target} for one in source.dropped]
    imported = benchmarks.import_version(
        slug,
        data["title"] or source.title,
        source.records,
        source.problems,
        source.origin,
        data["allow_bad"],
        {"dropped_targets": dropped},
        data["environment"],
    )
    references.ask(imported.version)
    return imported


def _tell(request: HttpRequest, source: TaskSource, imported: benchmarks.Imported) -> None:
    if not imported.created:
        messages.info(request, f"{imported.version} holds these very tasks already.")
        return
    messages.success(
        request,
        f"{imported.version} imported with {len(source.records):,} tasks; "
        "a worker grades the reference solutions now.",
    )
    if source.dropped:
        tasks = len({one.task_id for one in source.dropped})
        messages.warning(
            request, f"{len(source.dropped)} constant targets in {tasks} tasks were dropped."
        )


def _page(
    request: HttpRequest, form: ImportForm, problems: list[Problem], status: int
) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": "Import a benchmark",
        "opts": Benchmark._meta,
        "form": form,
        "problems": problems,
    }
    return render(request, "grading/admin/import.html", context, status=status)
