"""Who sees and does what. Private things are 404 for others: their existence is not told."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from grading.models import Benchmark, BenchmarkVersion, Submission

Viewer: TypeAlias = User | AnonymousUser
View = Callable[..., HttpResponseBase]


def visible_versions(user: Viewer) -> QuerySet[BenchmarkVersion]:
    """Published versions; staff also see the others."""
    versions = BenchmarkVersion.objects.all()
    return versions if user.is_staff else versions.filter(published=True)


def visible_submissions(user: Viewer) -> QuerySet[Submission]:
    """Public ones of published versions, one's own, and for staff all."""
    submissions = Submission.objects.all()
    if user.is_staff:
        return submissions
    public = Q(visibility=Submission.Visibility.PUBLIC, version__published=True)
    own = Q(uploader=user) if user.is_authenticated else Q(pk__in=[])
    return submissions.filter(public | own)


def submission_or_404(user: Viewer, public_id: str) -> Submission:
    """With its version, benchmark, environment, language model and uploader; one query."""
    rows = visible_submissions(user).select_related(
        "version__benchmark", "version__environment", "language_model", "uploader"
    )
    return get_object_or_404(rows, public_id=public_id)


def version_or_404(user: Viewer, slug: str, number: str = "") -> BenchmarkVersion:
    """Version ``number`` of benchmark ``slug``, or its newest; with benchmark and environment."""
    rows = visible_versions(user).filter(benchmark__slug=slug)
    rows = rows.select_related("benchmark", "environment")
    if number.isascii() and number.isdigit() and len(number) < 9:
        rows = rows.filter(number=int(number))
    return get_object_or_404(rows.order_by("-number")[:1])


def may_cancel(user: Viewer, submission: Submission) -> bool:
    own = user.is_authenticated and submission.uploader_id == user.pk
    return submission.state == Submission.State.GRADING and bool(own or user.is_staff)


def sees_targets(user: Viewer, benchmark: Benchmark) -> bool:
    """Whether targets, and what they returned, may be shown; staff see them always."""
    return user.is_staff or not benchmark.targets_hidden


def staff_only(view: View) -> View:
    """Log-in page for anonymous visitors, 403 naming the role for everyone else."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if not request.user.is_staff:
            raise PermissionDenied("staff")
        return view(request, *args, **kwargs)

    return guarded
