"""API tokens: in force for whom they were made, within their scopes, until they end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from grading import tokens
from grading.models import ApiToken
from tests.grading import web_records

pytestmark = pytest.mark.django_db


def test_only_a_hash_is_stored() -> None:
    secret, token = tokens.make(web_records.person("rosa"), "nightly", ["submit", "read"])
    assert secret.startswith("evs_") and len(secret) > 40
    stored = ApiToken.objects.values().get()
    assert secret not in str(stored) and secret[4:] not in str(stored)
    assert token.scopes == ["read", "submit"]
    assert tokens.find(secret) == token


@pytest.mark.parametrize("wrong", ["", "evs_", "evs_" + "0" * 48, "\ud800", "x" * 100_000])
def test_other_words_are_no_tokens(wrong: str) -> None:
    tokens.make(web_records.person("rosa"), "nightly", ["read"])
    assert tokens.find(wrong) is None


def test_a_token_ends_by_time_by_revocation_and_with_its_user() -> None:
    rosa = web_records.person("rosa")
    late, token = tokens.make(rosa, "a", ["read"], days=1)
    assert tokens.find(late)
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert tokens.find(late) is None
    revoked, token = tokens.make(rosa, "b", ["read"])
    assert not tokens.revoke(web_records.person("tom"), token.pk)
    assert tokens.revoke(rosa, token.pk) and not tokens.revoke(rosa, token.pk)
    assert tokens.find(revoked) is None
    last, _ = tokens.make(rosa, "c", ["read"])
    rosa.is_active = False
    rosa.save()
    assert tokens.find(last) is None


@pytest.mark.parametrize(
    "scopes", [[], ["write"], ["read", "write"], ["admin"], ["triage", "read"]]
)
def test_scopes_that_one_cannot_have_are_refused(scopes: list[str]) -> None:
    with pytest.raises(ValueError):
        tokens.make(web_records.person("rosa"), "nightly", scopes)
    assert not ApiToken.objects.exists()


def test_staff_may_have_every_scope() -> None:
    _, token = tokens.make(web_records.person("ada", staff=True), "all", tokens.SCOPES)
    assert token.scopes == list(tokens.SCOPES)


def test_the_page_shows_a_token_once(client: Client) -> None:
    assert client.get("/account/tokens/").status_code == 302
    client.force_login(web_records.person("rosa"))
    sent = {"name": "<b>nightly</b>", "scopes": ["read", "submit"], "days": "30"}
    page = client.post("/account/tokens/", sent)
    secret = page.content.decode().split('id="secret"')[1].split(">")[1].split("<")[0]
    assert tokens.find(secret) is not None
    assert page.headers["Cache-Control"] == "no-store"
    again = client.get("/account/tokens/").content.decode()
    assert secret not in again and secret[:10] in again
    assert "<b>nightly" not in again
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert client.post(f"/account/tokens/{token.pk}/revoke/").status_code == 302
    assert tokens.find(secret) is None


@pytest.mark.parametrize(
    "wrong", [{"scopes": ["admin"]}, {"scopes": []}, {"name": ""}, {"days": "x"}, {"days": "7"}]
)
def test_the_form_refuses_what_it_does_not_offer(client: Client, wrong: dict[str, object]) -> None:
    client.force_login(web_records.person("rosa"))
    sent: dict[str, object] = {"name": "nightly", "scopes": ["read"], "days": "30"}
    assert client.post("/account/tokens/", sent | wrong).status_code == 200
    assert not ApiToken.objects.exists()
