"""The call about what one may still send."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Router

from grading import quotas
from grading.api.auth import Caller

router = Router(tags=["submissions"])


@router.get("", summary="What is left of one's own quota", auth=Caller("submit"))
def quota(request: HttpRequest) -> dict[str, Any]:
    """Null for who has none. A day ends at 00:00 UTC."""
    now = quotas.standing(cast(User, request.user))
    return {"quota": now.as_dict() if now else None}
