"""Calls about boards, comparisons and ranks: the numbers of the pages."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from ninja import Router

from grading.api.auth import Caller, viewer_of
from grading.api.errors import Problem
from grading.api.links import absolute
from grading.files import TYPES
from grading.permissions import Action, version_or_404
from grading.queries.regrades import regrade_or_404
from grading.regrade_results import results, score_changes
from grading.regrades import OPEN
from leaderboard import comparison_export, export, queries
from leaderboard.comparison import compare
from leaderboard.rank_changes import boards_with

router = Router(tags=["leaderboards"])
regrades = Router(tags=["regrades"])


@router.get("/{slug}/leaderboard", summary="The board: ranked models first")
def board(
    request: HttpRequest,
    slug: str,
    version: str = "",
    score: Literal[1, 5, 10, 100] = 1,
    timeouts: Literal["zero", "missing"] = "zero",
    q: str = "",
) -> Any:
    """The rows of the page with the same filters. Sends an ETag."""
    found = version_or_404(request.user, slug, version)
    shown = queries.board(found, score=score, sort="score", q=q[:200], timeouts=timeouts)
    text = export.to_json(shown)
    tag = _tag(text)
    if request.headers.get("If-None-Match") == tag:
        return HttpResponseNotModified()
    response = HttpResponse(text, content_type="application/json")
    response["ETag"] = tag
    page = absolute(request, "board", slug)
    response["Link"] = ", ".join(
        f'<{page}?format={name}>; rel="alternate"; type="{content_type}"'
        for name, content_type in TYPES.items()
    )
    return response


@router.get("/{slug}/compare", summary="Two models of a board, task by task")
def comparison(
    request: HttpRequest, slug: str, a: str = "", b: str = "", version: str = ""
) -> HttpResponse:
    """All that the compare page shows. ``a`` and ``b`` are slugs of models or ids of submissions,
    otherwise the highest rows that are left.
    """
    found = compare(version_or_404(request.user, slug, version), a, b, viewer_of(request))
    if found is None:
        raise Problem(409, "nothing to compare", "This board has fewer than two models.")
    return HttpResponse(comparison_export.to_json(found), content_type="application/json")


@regrades.get(
    "/{public_id}/ranks",
    summary="Ranks that would move if it was applied",
    auth=Caller("triage", Action.TRIAGE),
)
def ranks(request: HttpRequest, public_id: str) -> list[dict[str, Any]]:
    """By board; none for regrades that were decided on or are for another version."""
    found = regrade_or_404(public_id)
    if found.target is not None or found.state not in OPEN:
        return []
    return [
        {
            "benchmark": version.benchmark.slug,
            "version": version.number,
            "models": [asdict(one) for one in moved],
        }
        for version, moved in boards_with(found, score_changes(results(found)))
    ]


def _tag(text: str) -> str:
    """The same for the same board, whenever it was computed."""
    board = json.loads(text)
    board.pop("computed_at", None)
    return f'"{hashlib.sha256(json.dumps(board).encode()).hexdigest()[:32]}"'
