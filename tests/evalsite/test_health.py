"""/healthz"""

from __future__ import annotations

import pytest
from django.test import Client


@pytest.mark.broker
@pytest.mark.django_db
def test_all_is_well(client: Client, broker_url: str) -> None:
    reply = client.get("/healthz")
    assert reply.status_code == 200
    assert reply.json() == {"status": "ok", "database": "ok", "broker": "ok"}
    assert "no-store" in reply["Cache-Control"]


@pytest.mark.django_db
def test_a_broker_that_does_not_answer_is_told(client: Client, settings: object) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    reply = client.get("/healthz")
    assert reply.status_code == 503
    assert reply.json() == {"status": "unavailable", "database": "ok", "broker": "unavailable"}


@pytest.mark.django_db
def test_it_is_read_only(client: Client) -> None:
    assert client.post("/healthz").status_code == 405
