"""Calls about groups of failures: read them, decide on them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router, Schema

from grading import triage as decisions
from grading.api.auth import Caller
from grading.api.bodies import Body, VersionName, form_data, valid
from grading.api.links import absolute
from grading.api.paging import page
from grading.models import CrashGroup, GroupEvent, Sample
from grading.permissions import Action
from grading.queries import crash_group, failures
from grading.queries import triage as queries
from grading.triage_forms import DecisionForm

router = Router(tags=["triage"], auth=Caller("triage", Action.TRIAGE))

AnyState = Literal[
    "",
    "open",
    "all",
    "new",
    "triaged",
    "known_model_failure",
    "grader_bug",
    "ignored",
    "escalating",
    "regressed",
]
ChosenState = Literal["new", "triaged", "known_model_failure", "grader_bug", "ignored"]


class Wanted(Schema):
    """Empty means any, and of states the open ones. ``assignee`` is a user name or nobody."""

    q: str = ""
    state: AnyState = ""
    kind: str = ""
    benchmark: str = ""
    task: str = ""
    model: str = ""
    submission: str = ""
    worker: str = ""
    tier: str = ""
    python: str = ""
    assignee: str = ""


class Decision(Body):
    """What is left out stays as it is. ``assignee`` is a user name or nobody; ``note`` is the
    reason, or alone a note. ``ignored_until`` is a number of samples and belongs to ignored;
    ``fixed_in_grader`` and ``fixed_in_version`` belong to grader_bug.
    """

    state: ChosenState | None = None
    assignee: str | None = None
    note: str = ""
    ignored_until: int | None = None
    fixed_in_grader: int | None = None
    fixed_in_version: VersionName | None = None


@router.get("/groups", summary="Groups of failures, first seen first")
def groups(
    request: HttpRequest, wanted: Query[Wanted], cursor: str = "", limit: int = 100
) -> dict[str, Any]:
    """Counts are of the samples that the filters let through; stake is in points of pass@1."""
    found = queries.groups(queries.Filters(**wanted.model_dump())).select_related("assignee")
    return page(found, ["pk"], cursor, limit, lambda some: _lines(request, some))


@router.get("/groups/{public_id}", summary="One group: its cause, spread, state and history")
def group(request: HttpRequest, public_id: str) -> dict[str, Any]:
    return _whole(request, crash_group.group_or_404(public_id))


@router.get("/groups/{public_id}/attempts", summary="The samples of a group, how each ended")
def attempts(
    request: HttpRequest, public_id: str, cursor: str = "", limit: int = 100
) -> dict[str, Any]:
    found = crash_group.group_or_404(public_id)
    samples = Sample.objects.filter(fingerprint__group=found)
    return page(samples, ["pk"], cursor, limit, _attempts)


@router.patch("/groups/{public_id}", summary="Decide on a group: state, person, note")
def decide(request: HttpRequest, public_id: str, decision: Decision) -> dict[str, Any]:
    """Answers with the group as it is then. Each change is kept with who, when and why."""
    found = crash_group.group_or_404(public_id)
    form = valid(DecisionForm(form_data(decision, "fixed_in_version")))
    decisions.decide([found.pk], form.decision(), cast(User, request.user))
    return _whole(request, crash_group.group_or_404(public_id))


def _lines(request: HttpRequest, some: QuerySet[Any]) -> list[dict[str, Any]]:
    shown = []
    for row in queries.rows(some):
        facts = asdict(row)
        del facts["pk"]
        public_id = facts.pop("public_id")
        url = absolute(request, "triage-group", public_id)
        shown.append({"id": public_id, "url": url, **facts})
    return shown


def _attempts(samples: QuerySet[Sample]) -> list[dict[str, Any]]:
    return [asdict(row) for row in failures.crashes(samples)]


def _whole(request: HttpRequest, found: CrashGroup) -> dict[str, Any]:
    view = crash_group.group_view(found)
    fixed_in = found.fixed_in_version
    return {
        "id": found.public_id,
        "url": absolute(request, "triage-group", found.public_id),
        "title": found.title,
        "kind": found.kind,
        "state": found.state,
        "assignee": found.assignee.get_username() if found.assignee else "",
        "ignored_until": found.ignored_until,
        "fixed_in_grader": found.fixed_in_grader,
        "fixed_in_version": None
        if fixed_in is None
        else {"benchmark": fixed_in.benchmark.slug, "version": fixed_in.number},
        "merged_into": found.merged_into.public_id if found.merged_into else None,
        "first_seen_at": found.first_seen_at,
        "samples": view.samples,
        "suggestion": asdict(view.suggestion) if view.suggestion else None,
        "reference": view.reference,
        "fingerprints": [
            {"value": one.value, "version": one.version, "parts": one.parts}
            for one in view.fingerprints
        ],
        "spread": {
            "tasks": view.spread.columns,
            "models": [
                {"model": row.model, "samples": row.samples, "by_task": _counts(row)}
                for row in view.spread.rows
            ],
        },
        "shares": {name.lower(): [asdict(one) for one in some] for name, some in view.shares},
        "similar": [one.public_id for one in view.similar],
        "events": [_event(one) for one in view.events],
    }


def _counts(row: crash_group.SpreadRow) -> list[int]:
    return [cell.samples for cell in row.cells]


def _event(event: GroupEvent) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "by": event.by.get_username() if event.by else "",
        "at": event.created_at,
        "from": event.before,
        "to": event.after,
        "note": event.note,
    }
