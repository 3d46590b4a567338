"""What a stranger wrote, on every page of the site: shown, never obeyed."""

from __future__ import annotations

import pytest
from django.test import Client

from grading import regrades
from grading.accounts.roles import Role
from grading.engine.outcome import Failure, Outcome, Stream
from grading.models import CrashGroup, LanguageModel, Submission, Task
from tests.grading import web_records
from tests.grading.test_permission_matrix import TABLE, World

pytestmark = pytest.mark.django_db

MARKUP = "</code><script>hostile()</script><img src=x onerror=hostile()>\"' onfocus=hostile()"
# Turns the text around it, escapes of a terminal, what ends strings, half a character.
UNSEEN = "\u202e\u2066\x1b[31m\x1b]8;;http://example.org\x07\0\u200b\ud800"
TEXT = f"{MARKUP}{UNSEEN}"
OBEYED = ("<script>hostile", "<img src=x", "\"' onfocus=", "' onfocus=hostile()\"")
RAW = ("\u202e", "\u2066", "\x1b", "\0", "\x07")


def hostile_verdict(task: Task, index: int) -> object:
    return web_records.verdict(
        Outcome.ERROR,
        detail=TEXT,
        denied=[TEXT],
        failure=Failure("target", TEXT, TEXT, [(1, TEXT)]),
        stdout=Stream(head=TEXT, size=len(TEXT)),
        stderr=Stream(head=TEXT, size=len(TEXT)),
        program=f"x = '''{TEXT}'''\n{TEXT}",
    )


@pytest.mark.parametrize("grading", [False, True], ids=["done", "grading"])
def test_no_page_obeys_what_a_stranger_wrote(grading: bool) -> None:
    ada = web_records.person("ada", role=Role.ADMIN)
    rosa = web_records.person("rosa")
    version = web_records.benchmark(tasks=2)
    made = web_records.submission(
        version,
        rosa,
        lambda task, index: None if grading and task.position else hostile_verdict(task, index),
        text=TEXT,
    )
    LanguageModel.objects.update(name=MARKUP)
    notes = {"notes": MARKUP, "prompt_style": MARKUP}
    Submission.objects.filter(pk=made.pk).update(settings=notes, file_name=MARKUP)
    regrade = regrades.ask(regrades.Selection(benchmark="tidepool"), MARKUP, ada)
    world = World(
        made, {"stranger": rosa}, CrashGroup.objects.all()[0].public_id, regrade.public_id
    )
    client = Client()
    client.force_login(ada)
    shown = 0
    for key in TABLE:
        method, _, route = key.partition(" ")
        if method != "GET":
            continue
        answer = client.get(world.path(route))
        if answer.status_code != 200 or "html" not in answer.headers.get("Content-Type", ""):
            continue
        page = answer.content.decode()
        shown += "hostile()" in page
        assert [bad for bad in OBEYED if bad in page] == [], key
        assert [bad for bad in RAW if bad in page] == [], key
    assert shown >= 6
