"""Accounts, theme, policy and the queue dashboard."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from grading.accounts.roles import Role
from tests.grading import web_records

pytestmark = pytest.mark.django_db


def test_pages_carry_a_policy_without_inline_code(client: Client) -> None:
    answer = client.get("/login/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = answer.content.decode()
    assert " style=" not in page
    assert "<style" not in page
    assert "onclick" not in page


def test_logging_in_and_out(client: Client) -> None:
    web_records.person("rosa")
    bad = client.post("/login/", {"username": "rosa", "password": "wrong"})
    assert b'role="alert"' in bad.content
    good = client.post(
        "/login/?next=/submit/",
        {
            "username": "rosa",
            "password": web_records.PASSWORD,
            "next": "/submit/",
        },
    )
    assert good.headers["Location"] == "/submit/"
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").headers["Location"] == "/"
    assert client.get("/submit/").status_code == 302


def test_a_log_in_never_leads_to_another_site(client: Client) -> None:
    web_records.person("rosa")
    answer = client.post(
        "/login/",
        {
            "username": "rosa",
            "password": web_records.PASSWORD,
            "next": "https://evil.example/",
        },
    )
    assert answer.headers["Location"] == "/"


def test_the_admin_uses_the_same_log_in_page(client: Client) -> None:
    assert client.get("/admin/").headers["Location"].startswith("/admin/login/")
    assert b"Reading needs no account" in client.get("/admin/login/").content


def test_the_theme_is_kept_in_a_cookie(client: Client) -> None:
    answer = client.post("/theme/", {"theme": "dark", "next": "/login/"})
    assert answer.headers["Location"] == "/login/"
    assert 'data-theme="dark"' in client.get("/login/").content.decode()
    client.post("/theme/", {"theme": "auto"})
    assert "data-theme" not in client.get("/login/").content.decode()


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x", ""])
def test_the_theme_switch_leads_to_this_site_only(client: Client, target: str) -> None:
    answer = client.post("/theme/", {"theme": "purple", "next": target})
    assert answer.headers["Location"] == "/"
    assert "theme" not in client.cookies


def test_the_theme_switch_is_a_post(client: Client) -> None:
    assert client.get("/theme/").status_code == 405


def test_a_form_without_token_is_refused_on_a_page_of_this_site() -> None:
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/theme/", {"theme": "dark"})
    assert answer.status_code == 403
    assert b"Form refused" in answer.content


def test_an_unknown_address_is_404_on_a_page_of_this_site(client: Client) -> None:
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert b"There is nothing at this address." in answer.content


def test_a_fault_of_the_site_has_a_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("grading.queries.tasks.version_counts", broken)
    web_records.benchmark()
    client.raise_request_exception = False
    answer = client.get("/b/tidepool/tasks/")
    assert answer.status_code == 500
    assert b"Evalsite met a fault of its own." in answer.content
    assert b"planted" not in answer.content


@pytest.fixture
def dashboard_broker(broker_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    for queue in settings.RQ_QUEUES.values():
        monkeypatch.setitem(queue, "URL", broker_url)
    return broker_url


def test_the_queue_dashboard_is_for_admins(client: Client) -> None:
    home = reverse("django_rq:home")
    assert client.get(home).headers["Location"].startswith("/login/?next=")
    client.force_login(web_records.person("sam", role=Role.MAINTAINER))
    assert client.get(home).status_code == 403
    for name, arguments in (("jobs", [0]), ("workers", [0]), ("clear", [0])):
        assert client.get(reverse(f"django_rq:{name}", args=arguments)).status_code == 403
    client.force_login(web_records.person("ada", role=Role.ADMIN))
    assert client.get("/admin/django_rq/").status_code == 404


@pytest.mark.broker
def test_a_superuser_reads_the_queue_under_a_policy_of_its_own(
    client: Client, dashboard_broker: str
) -> None:
    client.force_login(web_records.person("ada", superuser=True))
    for url in (reverse("django_rq:home"), reverse("django_rq:jobs", args=[0])):
        answer = client.get(url)
        assert answer.status_code == 200, url
        assert "script-src 'self' 'unsafe-inline'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in client.get("/triage/").headers["Content-Security-Policy"]
    assert "unsafe" not in client.get("/admin/").headers["Content-Security-Policy"]


def test_without_a_broker_the_dashboard_says_so(client: Client) -> None:
    client.force_login(web_records.person("ada", superuser=True))
    answer = client.get(reverse("django_rq:jobs", args=[0]))
    assert answer.status_code == 503
    assert b"The broker does not answer" in answer.content
