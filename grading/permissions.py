"""Who sees and does what. Private things are 404 for others: their existence is not told.

`ALLOWED` is the whole of it: views and templates ask `may`, and nothing else looks at a role.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Any, TypeAlias

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from grading.accounts.roles import GIVEN, Role, Viewer, roles_of
from grading.models import Benchmark, BenchmarkVersion, Submission

__all__ = ["ALLOWED", "Action", "Role", "Viewer", "may", "needs"]

View: TypeAlias = Callable[..., HttpResponseBase]


class Action(StrEnum):
    """What a person may or may not do; ``… any`` names what needs no ownership."""

    SUBMIT = "submit"
    EXCEED_QUOTAS = "send without quota"
    SEE_PRIVATE = "see private submissions"
    SEE_UNPUBLISHED = "see unpublished versions"
    SEE_HIDDEN_TARGETS = "see hidden targets"
    SEE_HIDDEN_GENERATIONS = "see hidden generations"
    ADD_SAMPLES = "add samples"
    CANCEL = "cancel"
    SHOW_OR_HIDE = "show or hide"
    WITHDRAW = "withdraw"
    DELETE = "delete"
    TRIAGE = "triage"
    REGRADE = "regrade"
    MANAGE_MODELS = "manage models"
    SEE_SANDBOX = "see the sandbox"
    SEE_JOBS = "see the queue's jobs"
    RUN_QUEUE = "pause and resume grading"
    MANAGE_PEOPLE = "manage people"
    USE_ADMIN_SITE = "use the admin site"


_TEAM = frozenset(GIVEN)
_KEEPERS = frozenset({Role.MAINTAINER, Role.ADMIN})
_ADMIN = frozenset({Role.ADMIN})

ALLOWED: dict[Action, frozenset[Role]] = {
    Action.SUBMIT: frozenset({Role.USER}),
    Action.EXCEED_QUOTAS: _TEAM,
    Action.SEE_PRIVATE: _TEAM | {Role.OWNER},
    Action.SEE_UNPUBLISHED: _KEEPERS,
    Action.SEE_HIDDEN_TARGETS: _TEAM,
    Action.SEE_HIDDEN_GENERATIONS: _TEAM | {Role.OWNER},
    Action.ADD_SAMPLES: _ADMIN | {Role.OWNER},
    Action.CANCEL: _KEEPERS | {Role.OWNER},
    Action.SHOW_OR_HIDE: _ADMIN | {Role.OWNER},
    Action.WITHDRAW: _KEEPERS | {Role.OWNER},
    Action.DELETE: frozenset({Role.OWNER}),
    Action.TRIAGE: _TEAM,
    Action.REGRADE: _KEEPERS,
    Action.MANAGE_MODELS: _KEEPERS,
    Action.SEE_SANDBOX: _TEAM,
    Action.SEE_JOBS: _ADMIN,
    Action.RUN_QUEUE: _ADMIN,
    Action.MANAGE_PEOPLE: _ADMIN,
    Action.USE_ADMIN_SITE: _ADMIN,
}


def may(user: Viewer, action: Action, submission: Submission | None = None) -> bool:
    """Whether a role of ``user``, as the owner of ``submission`` where it is theirs, allows it."""
    held = roles_of(user)
    if submission is not None and user.is_authenticated and submission.uploader_id == user.pk:
        held |= {Role.OWNER}
    return not held.isdisjoint(ALLOWED[action])


def needs(action: Action) -> Callable[[View], View]:
    """Guard of a view: the log-in page for anonymous visitors, 403 naming the roles for others."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if may(request.user, action):
                return view(request, *args, **kwargs)
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            raise PermissionDenied(roles_for(action))

        return guarded

    return guard


# Guard of the pages about failures.
triage_only = needs(Action.TRIAGE)


def require(user: Viewer, action: Action, submission: Submission) -> None:
    """Raises `PermissionDenied`, naming the roles, where ``user`` may not do it to this one."""
    if not may(user, action, submission):
        raise PermissionDenied(roles_for(action))


def people_who_may(action: Action) -> QuerySet[User]:
    """Those with an account in use whose given role allows ``action``."""
    given = Q(groups__name__in=ALLOWED[action] & set(GIVEN))
    admin = Q(is_staff=True) if Role.ADMIN in ALLOWED[action] else Q(pk__in=[])
    return User.objects.filter(given | admin, is_active=True).distinct()


def roles_for(action: Action) -> str:
    """Names of the roles that allow ``action``, for people."""
    names = [role.value for role in Role if role in ALLOWED[action]]
    return " or ".join(names)


def visible_versions(user: Viewer) -> QuerySet[BenchmarkVersion]:
    """Published versions, and the others where one may see them."""
    versions = BenchmarkVersion.objects.all()
    return versions if may(user, Action.SEE_UNPUBLISHED) else versions.filter(published=True)


def visible_submissions(user: Viewer) -> QuerySet[Submission]:
    """What lists show: public ones of published versions and one's own, or all of them."""
    return _visible(user, Submission.Visibility.PUBLIC)


def _visible(user: Viewer, *to_all: Submission.Visibility) -> QuerySet[Submission]:
    submissions = Submission.objects.all()
    if may(user, Action.SEE_PRIVATE):
        return submissions
    open_ = Q(visibility__in=to_all, version__published=True)
    own = Q(uploader=user) if user.is_authenticated else Q(pk__in=[])
    return submissions.filter(open_ | own)


def submission_or_404(user: Viewer, public_id: str) -> Submission:
    """By its link, so unlisted ones too. With all that a page names; one query."""
    visibility = Submission.Visibility
    rows = _visible(user, visibility.PUBLIC, visibility.UNLISTED).select_related(
        "version__benchmark",
        "version__environment",
        "language_model",
        "uploader",
        "cancelled_by",
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
    grading = submission.state == Submission.State.GRADING
    return grading and may(user, Action.CANCEL, submission)


def sees_generations(user: Viewer, submission: Submission) -> bool:
    """Whether what the language model wrote, and what it printed, may be shown."""
    hidden = submission.generations_hidden
    return not hidden or may(user, Action.SEE_HIDDEN_GENERATIONS, submission)


def shown_submission_or_404(user: Viewer, public_id: str) -> Submission:
    """As `submission_or_404`, and 404 as well where its generations are hidden from ``user``."""
    found = submission_or_404(user, public_id)
    if not sees_generations(user, found):
        raise Http404
    return found


def sees_targets(user: Viewer, benchmark: Benchmark) -> bool:
    """Whether targets, and what they returned, may be shown."""
    return not benchmark.targets_hidden or may(user, Action.SEE_HIDDEN_TARGETS)
