"""``/healthz``: can this instance read its database and reach its broker?"""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evalsite import queueing


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when every part answers, else 503; the JSON names each part and its state.

    Open to anyone (a load balancer has no account), so it tells no more than that.
    """
    parts = {"database": _database_answers(), "broker": queueing.ping()}
    states = {name: "ok" if well else "unavailable" for name, well in parts.items()}
    well = all(parts.values())
    body = {"status": "ok" if well else "unavailable", **states}
    return JsonResponse(body, status=200 if well else 503)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except DatabaseError:
        return False
    return True
