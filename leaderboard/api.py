"""Calls about boards and comparisons: the numbers of the pages."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from ninja import Router

from grading.api.links import absolute
from grading.permissions import version_or_404
from leaderboard import export, queries

router = Router(tags=["leaderboards"])


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
        f'<{page}?format={name}>; rel="alternate"; type="{export.FORMATS[name][0]}"'
        for name in export.FORMATS
    )
    return response


def _tag(text: str) -> str:
    """The same for the same board, whenever it was computed."""
    board = json.loads(text)
    board.pop("computed_at", None)
    return f'"{hashlib.sha256(json.dumps(board).encode()).hexdigest()[:32]}"'
