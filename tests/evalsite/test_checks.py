"""System checks, and what `up` refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import Tags, run_checks
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import SystemCheckError

from evalsite import instance
from evalsite.instance import Plan


def found(settings: object, **values: object) -> list[str]:
    for name, value in values.items():
        setattr(settings, name, value)
    return [
        message.id for message in run_checks(tags=["security"]) if message.id.startswith("evalsite")
    ]


@pytest.mark.parametrize(
    ("url", "ids"),
    [
        ("", []),
        ("redis://127.0.0.1:6379/0", []),
        ("redis://[::1]:6379/0", []),
        ("redis://localhost:6379/0", []),
        ("rediss://:secret@broker.example.org:6379/0", []),
        ("redis://:secret@10.0.0.5:6379/0", ["evalsite.E003"]),
        ("rediss://broker.example.org:6379/0", ["evalsite.E002"]),
        ("redis://broker.example.org", ["evalsite.E002", "evalsite.E003"]),
        ("unix:///run/redis.sock", ["evalsite.E001"]),
        ("broker.example.org:6379", ["evalsite.E001"]),
    ],
)
def test_a_broker_elsewhere_needs_password_and_encryption(
    settings: object, url: str, ids: list[str]
) -> None:
    assert found(settings, REDIS_URL=url, HTTPS=True) == ids


def test_debug_pages_stay_at_home(settings: object) -> None:
    local = ["127.0.0.1", "localhost", "[::1]"]
    assert found(settings, DEBUG=True, ALLOWED_HOSTS=local) == []
    assert "evalsite.E004" in found(settings, DEBUG=True, ALLOWED_HOSTS=["evals.example.org"])
    assert "evalsite.E004" in found(settings, DEBUG=True, ALLOWED_HOSTS=["*"])


def test_others_are_to_come_by_https(settings: object) -> None:
    hosts = ["evals.example.org"]
    assert found(settings, DEBUG=False, ALLOWED_HOSTS=hosts, HTTPS=False) == ["evalsite.W001"]
    assert found(settings, DEBUG=False, ALLOWED_HOSTS=hosts, HTTPS=True) == []


def test_settings_that_endanger_others_stop_a_command(settings: Any) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = True, ["evals.example.org"]
    with pytest.raises(SystemCheckError, match="EVALSITE_DEBUG is on"):
        call_command("sandbox_check", skip_checks=False)


def test_no_command_waits_for_the_checks_of_the_code() -> None:
    own = {name: app for name, app in get_commands().items() if app in {"evalsite", "grading"}}
    assert {"worker", "sweep", "submit"} <= set(own)
    for name, app in own.items():
        assert load_command_class(app, name).requires_system_checks == [Tags.security], name


def test_an_outside_broker_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "redis://:secret@127.0.0.1:6379/0"
    monkeypatch.setenv("EVALSITE_REDIS_URL", url)
    programs = [program for stage in instance.stages(Plan(3)) for program in stage]
    assert [program.name for program in programs] == ["worker 1", "worker 2", "worker 3", "sweep"]
    assert all(program.env["EVALSITE_REDIS_URL"] == url for program in programs)
    assert not any("secret" in word for program in programs for word in program.argv)
