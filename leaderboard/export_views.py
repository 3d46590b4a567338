"""Files of a submission for other graders' programs, and badges."""

from __future__ import annotations

import json

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from grading.files import attachment
from grading.permissions import shown_submission_or_404, version_or_404
from leaderboard import cards, queries
from leaderboard.badge import badge
from leaderboard.peer_files import evalplus_document, human_eval_lines


@require_safe
def human_eval(request: HttpRequest, public_id: str) -> HttpResponseBase:
    """A line per sample, as they are read from the database."""
    submission = shown_submission_or_404(request.user, public_id)
    name = f"{public_id}_results.jsonl"
    return StreamingHttpResponse(
        human_eval_lines(submission),
        content_type="application/jsonl; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_safe
def evalplus(request: HttpRequest, public_id: str) -> HttpResponse:
    submission = shown_submission_or_404(request.user, public_id)
    text = json.dumps(evalplus_document(submission))
    return attachment(text, "application/json", f"{public_id}_eval_results.json")


@require_safe
def model_badge(request: HttpRequest, slug: str, model: str) -> HttpResponse:
    """Of a model on the newest version's board."""
    shown = queries.board(version_or_404(request.user, slug))
    for row in (*shown.ranked, *shown.unranked):
        if row.model_slug == model:
            return HttpResponse(badge(row), content_type="image/svg+xml")
    if moved := cards.successor(model, request.user):
        return redirect("badge", slug, moved.slug, permanent=True)
    raise Http404("no such model on this board")
