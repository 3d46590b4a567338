"""Calls about language models and their scores."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from grading.api.auth import viewer_of
from grading.api.links import absolute
from grading.api.paging import page
from grading.models import LanguageModel
from grading.permissions import visible_submissions
from grading.queries.language_models import names_of
from leaderboard import cards
from leaderboard.export import COLUMNS
from leaderboard.rows import Row, with_integrity

router = Router(tags=["models"])

# What is said of the model itself, or holds among the others on a board.
ELSEWHERE = {"model", "organisation", "synthetic", "rank", "rank_low", "rank_high", "reason"}
FIGURES = [name for name in COLUMNS if name not in ELSEWHERE]


@router.get("", summary="Models with a submission that the caller may see")
def models(
    request: HttpRequest,
    q: str = "",
    cursor: str = "",
    limit: int = 100,
) -> dict[str, Any]:
    """In the order in which they were first seen; ``q`` is a part of the name."""
    seen = visible_submissions(viewer_of(request)).order_by().values("language_model")
    found = LanguageModel.objects.filter(pk__in=seen, name__icontains=q)
    return page(found, ["pk"], cursor, limit, lambda some: [_model(request, one) for one in some])


@router.get("/{slug}", summary="One model, with the scores of each submission, newest first")
def model(request: HttpRequest, slug: str) -> dict[str, Any]:
    """``on_board``: this submission stands for the model on its version's board. Scores 0 to 1.
    ``names``: its others. A merged model's slug gives the one it was merged into.
    """
    viewer = viewer_of(request)
    moved = cards.successor(slug, viewer)
    found = cards.card(moved.slug if moved else slug, viewer)
    return _model(request, found.model) | {
        "names": names_of(found.model).all,
        "submissions": [
            _row(row, row.public_id in found.representing)
            for row in with_integrity(list(found.rows))
        ],
    }


def _model(request: HttpRequest, model: LanguageModel) -> dict[str, Any]:
    return {
        "slug": model.slug,
        "name": model.name,
        "organisation": model.organisation,
        "link": model.url,
        "tags": model.tags,
        "size_b": model.size_b,
        "released": model.released,
        "synthetic": model.synthetic,
        "url": absolute(request, "model", model.slug),
    }


def _row(row: Row, on_board: bool) -> dict[str, Any]:
    place = {"benchmark": row.benchmark_slug, "version": row.version, "on_board": on_board}
    return place | {name: COLUMNS[name](row) for name in FIGURES}
