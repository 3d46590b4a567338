"""The staff page about the sandbox, and uploads where it is too weak."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from grading import grader
from grading.engine.isolation import Probe
from grading.engine.isolation.findings import Finding, findings
from grading.engine.outcome import PlatformError
from grading.models import Submission
from tests.grading import web_records

pytestmark = pytest.mark.django_db


class Weak:
    tier = "rlimit"
    python_version = "3.11.7"
    hardening: list[str] = []
    safe_for_strangers = False

    def findings(self) -> list[Finding]:
        probes = [Probe("bwrap", False, "bubblewrap <is> missing.", "Install it.")]
        return findings(self.tier, self.hardening, probes)


@pytest.fixture
def weak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader, "sandbox", Weak)


def test_the_page_is_for_staff(client: Client, weak: None) -> None:
    assert client.get("/sandbox/").headers["Location"] == "/login/?next=/sandbox/"
    client.force_login(web_records.person("rosa"))
    assert client.get("/sandbox/").status_code == 403
    assert b"/sandbox/" not in client.get("/").content


def test_it_says_what_is_in_force_and_what_is_missing(client: Client, weak: None) -> None:
    client.force_login(web_records.person("sam", staff=True))
    page = client.get("/sandbox/").content.decode()
    assert "rlimit" in page and "programs only" in page
    assert "bubblewrap &lt;is&gt; missing." in page and "Install it." in page
    assert "Linux 5.13" in page
    assert 'href="/sandbox/"' in client.get("/").content.decode()


def test_it_says_why_nothing_runs(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise PlatformError("no tier works here")

    monkeypatch.setattr(grader, "sandbox", none)
    client.force_login(web_records.person("sam", staff=True))
    assert "no tier works here" in client.get("/sandbox/").content.decode()


def test_a_site_for_others_takes_no_uploads_where_the_sandbox_is_weak(
    client: Client, weak: None, settings: Settings
) -> None:
    web_records.benchmark()
    client.force_login(web_records.person("rosa"))
    settings.FOR_OTHERS, settings.ALLOW_UNSAFE = True, False
    for answer in (client.get("/submit/"), client.post("/submit/", {})):
        assert answer.status_code == 503
        assert "Install bubblewrap" in answer.content.decode()
    assert not Submission.objects.exists()
    settings.ALLOW_UNSAFE = True
    assert client.get("/submit/").status_code == 200
    settings.ALLOW_UNSAFE, settings.FOR_OTHERS = False, False
    assert client.get("/submit/").status_code == 200
