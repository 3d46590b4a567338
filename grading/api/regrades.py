"""Calls about regrades: ask for one, follow it, look at what it came to, apply or cancel it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, cast

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router
from pydantic import Field

from grading import regrade_apply, regrades
from grading.api import once
from grading.api.auth import Caller
from grading.api.bodies import Body, VersionName, form_data, invalid, valid
from grading.api.errors import Problem
from grading.api.links import absolute
from grading.api.paging import page, page_of_list
from grading.models import BenchmarkVersion, Regrade, RegradeRun
from grading.permissions import Action
from grading.queries import regrades as queries
from grading.regrade_forms import RegradeForm
from grading.regrade_results import Result, results, score_changes, summary

router = Router(tags=["regrades"], auth=Caller("triage", Action.TRIAGE))

AnyOutcome = Literal["", "pass", "assertion_fail", "syntax_error", "timeout", "error"]


class Wish(Body):
    """Which samples, all of these together, how often and why. ``group`` and ``submission`` are
    ids, ``task`` is a task id, ``grader_below`` a grader version: older verdicts only. With
    ``target`` they are run against the tasks of that version. ``dry_run`` only counts.
    """

    reason: str
    group: str = ""
    submission: str = ""
    benchmark: str = ""
    version: int | None = None
    task: str = ""
    model: str = ""
    outcome: AnyOutcome = ""
    worker: str = ""
    grader_below: int | None = None
    repeats: int = 1
    target: VersionName | None = None
    dry_run: bool = False


class Picked(Body):
    """``samples``: only these, by the numbers that the call for samples gives."""

    samples: list[int] | None = Field(default=None, min_length=1)


@router.get("", summary="Regrades, oldest first")
def asked(request: HttpRequest, cursor: str = "", limit: int = 100) -> dict[str, Any]:
    def shown(some: Any) -> list[dict[str, Any]]:
        return [
            _facts(request, one)
            | {"samples": one.samples, "runs": {"done": one.runs_done, "of": one.runs_all}}
            for one in some
        ]

    return page(queries.counted(), ["pk"], cursor, limit, shown)


@router.post("", summary="Run samples again in the shadow of their verdicts")
def ask(request: HttpRequest, wish: Wish) -> HttpResponse:
    """202 with where to look. What another open regrade runs already is left out and named; where
    that is all of it, the open one is joined. An Idempotency-Key is honoured.
    """
    user = cast(User, request.user)
    key = once.key_of(request)
    seen = once.fingerprint(request, io.BytesIO(request.body)) if key else ""
    if key and (earlier := once.earlier(user, key, seen)):
        return _answer(request, cast(Regrade, earlier), 200)
    form = valid(RegradeForm(form_data(wish, "target")))
    data = form.cleaned_data
    selection = RegradeForm.selection(data)
    if wish.dry_run:
        plan = regrades.plan(selection, data["target"])
        return JsonResponse({"samples": len(plan.tasks), "left_out": plan.left_out})
    try:
        with transaction.atomic():
            started = regrades.ask(selection, data["reason"], user, data["repeats"], data["target"])
            if key:
                once.remember(user, key, seen, started)
    except regrades.NothingToRegrade as nothing:
        raise Problem(409, "nothing to regrade", str(nothing)) from None
    return _answer(request, started, 202)


@router.get("/{public_id}", summary="How far it is, and what it came to", url_name="regrade")
def regrade(request: HttpRequest, public_id: str) -> dict[str, Any]:
    """Outcomes by old (rows) and new (columns); scores with everything applied."""
    return _whole(request, queries.regrade_or_404(public_id))


@router.get("/{public_id}/samples", summary="Samples that changed or could not be decided")
def samples(
    request: HttpRequest, public_id: str, cursor: str = "", limit: int = 100
) -> dict[str, Any]:
    found = queries.regrade_or_404(public_id)

    def shown(some: Sequence[Result]) -> list[dict[str, Any]]:
        return [_sample(line) for line in queries.sample_lines(some, found.target is not None)]

    telling = queries.telling(results(found))
    return page_of_list(telling, lambda one: one.sample_id, cursor, limit, shown)


@router.post("/{public_id}/apply", summary="Make the new verdicts count, of all or of some")
def apply(request: HttpRequest, public_id: str, picked: Picked | None = None) -> dict[str, Any]:
    """One transaction. What has no verdict to rely on keeps its old one and is counted as kept."""
    found = queries.regrade_or_404(public_id)
    chosen = picked.samples if picked else None
    if chosen is not None:
        _check(found, chosen)
    try:
        done = regrade_apply.apply(found, cast(User, request.user), chosen)
    except regrades.NotAllowed as refused:
        raise Problem(403, "not allowed", str(refused)) from None
    except regrade_apply.NotReady as early:
        raise Problem(409, "nothing to apply", str(early), state=found.state) from None
    return _whole(request, queries.regrade_or_404(public_id)) | asdict(done)


@router.post("/{public_id}/cancel", summary="End it without effect; its attempts stay")
def cancel(request: HttpRequest, public_id: str) -> dict[str, Any]:
    found = queries.regrade_or_404(public_id)
    try:
        ended = regrades.cancel(found, cast(User, request.user))
    except regrades.NotAllowed as refused:
        raise Problem(403, "not allowed", str(refused)) from None
    if not ended:
        raise Problem(409, "nothing to cancel", "It was decided on already.", state=found.state)
    return _whole(request, queries.regrade_or_404(public_id))


def _check(found: Regrade, chosen: Sequence[int]) -> None:
    """Raises `Problem` where a choice is not this regrade's to make."""
    if found.target is not None:
        raise invalid([("samples", "a regrade for another version is applied whole")])
    known = RegradeRun.objects.filter(regrade=found).values_list("sample_id", flat=True)
    if strange := sorted(set(chosen) - set(known)):
        raise invalid([("samples", f"not in this regrade: {', '.join(map(str, strange[:20]))}")])


def _answer(request: HttpRequest, made: Regrade, status: int) -> HttpResponse:
    found = queries.regrade_or_404(made.public_id)
    response = JsonResponse(_whole(request, found), status=status)
    response["Location"] = absolute(request, "api-1:regrade", found.public_id)
    return response


def _facts(request: HttpRequest, found: Regrade) -> dict[str, Any]:
    return {
        "id": found.public_id,
        "url": absolute(request, "regrade", found.public_id),
        "state": found.state,
        "reason": found.reason,
        "selection": found.selection,
        "repeats": found.repeats,
        "target": _version(found.target),
        "left_out": found.left_out,
        "joined": found.joined,
        "asked_by": found.asked_by.get_username(),
        "created_at": found.created_at,
        "ready_at": found.ready_at,
        "decided_by": found.decided_by.get_username() if found.decided_by else "",
        "decided_at": found.decided_at,
    }


def _version(version: BenchmarkVersion | None) -> dict[str, Any] | None:
    if version is None:
        return None
    return {"benchmark": version.benchmark.slug, "version": version.number}


def _whole(request: HttpRequest, found: Regrade) -> dict[str, Any]:
    outcome = results(found)
    counts = summary(outcome)
    figures = {name: getattr(counts, name) for name in counts.__slots__ if name != "matrix"}
    progress = queries.progress(found)
    open_ = found.target is None and found.state in regrades.OPEN
    return (
        _facts(request, found)
        | figures
        | {
            "runs": {"done": progress.done, "of": progress.of},
            "flake_rate": counts.flake_rate,
            "outcomes": {"order": queries.OUTCOMES, "old_by_new": _matrix(counts.matrix)},
            "scores": [asdict(one) for one in score_changes(outcome)] if open_ else [],
        }
    )


def _matrix(counted: Counter[tuple[str, str]]) -> list[list[int]]:
    return [[counted[old, new] for new in queries.OUTCOMES] for old in queries.OUTCOMES]


def _sample(line: queries.SampleLine) -> dict[str, Any]:
    facts = asdict(line)
    facts["sample"] = facts.pop("sample_id")
    facts["runs"] = [asdict(verdict) | {"attempt": number} for verdict, number in line.runs]
    return facts
