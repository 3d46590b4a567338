"""What a regrade's page in the grading app shows of boards, which that app does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template

from grading.models import Regrade
from grading.regrade_results import ScoreChange
from leaderboard.rank_changes import boards_with

register = template.Library()


@register.inclusion_tag("leaderboard/rank_changes.html")
def ranks_with(regrade: Regrade, changes: Iterable[ScoreChange]) -> dict[str, Any]:
    """Ranks that would move if the regrade was applied, board by board."""
    return {"boards": boards_with(regrade, changes)}
