"""Fixtures of the pipeline and of the pages."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from evalsite import queueing
from grading import canaries, grader
from grading.engine import canary
from grading.engine.outcome import Verdict
from tests.grading import web_records
from tests.grading.pipeline_records import unstarted_sandbox

Grade = Callable[..., Verdict]


@pytest.fixture
def sam(client: Client) -> Any:
    """One of the staff, signed in."""
    person = web_records.person("sam", staff=True)
    client.force_login(person)
    return person


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored stays in the database alone."""
    monkeypatch.setattr(queueing, "enqueue", lambda *_: None)


@pytest.fixture
def canaries_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """No canary went well yet, whatever ran before."""
    monkeypatch.setattr(canaries, "_checked", mmap.mmap(-1, len(canaries._checked)))


@pytest.fixture
def replaced_grade(monkeypatch: pytest.MonkeyPatch, canaries_due: None) -> Callable[[Grade], None]:
    """Replace the engine's ``grade_program``, with a sandbox that is never started."""
    monkeypatch.setattr(grader, "sandbox", unstarted_sandbox)
    monkeypatch.setattr(canary, "check", lambda sandbox: None)
    return lambda grade: monkeypatch.setattr(grader, "grade_program", grade)
