from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from grading.engine.outcome import Outcome, Trick
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def sam(client: Client) -> Any:
    person = web_records.person("sam", staff=True)
    client.force_login(person)
    return person


def test_crashes_are_for_staff(client: Client) -> None:
    assert client.get("/crashes/").headers["Location"] == "/login/?next=/crashes/"
    client.force_login(web_records.person("rosa"))
    answer = client.get("/crashes/")
    assert answer.status_code == 403
    assert "needs the role staff" in answer.content.decode()


def test_a_crash_leads_to_its_sample(client: Client, sam: Any) -> None:
    made = web_records.submission(
        web_records.benchmark(), sam, lambda task, index: verdict(Outcome.ERROR), private=True
    )
    page = client.get("/crashes/").content.decode()
    assert "6 samples" in page
    assert f'href="/s/{made.public_id}/Tidepool-0/0/"' in page
    opened = client.get(f"/s/{made.public_id}/Tidepool-0/0/").content.decode()
    for part in ("NameError", "message of a error", "secret argument", "def", "case.jsonl"):
        assert part in opened


def test_filters_stay_in_the_form_and_in_links(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam)
    page = client.get("/crashes/?outcome=error&model=Quillfish+8B").content.decode()
    assert '<option value="error" selected>' in page
    assert 'value="Quillfish 8B"' in page
    assert "exception=NameError&amp;" in page or "&amp;exception=NameError" in page
    none = client.get("/crashes/?task=%3Cb%3E").content.decode()
    assert "No crash matches these filters." in none
    assert "<b>" not in none.replace('<b aria-hidden="true">', "")


def test_without_crashes_the_page_says_so(client: Client, sam: Any) -> None:
    assert "Nothing has crashed." in client.get("/crashes/").content.decode()


@pytest.mark.parametrize("tasks", [3, 12])
def test_the_number_of_queries_does_not_grow(
    client: Client, sam: Any, tasks: int, django_assert_max_num_queries: Any
) -> None:
    web_records.submission(web_records.benchmark(tasks=tasks), sam, n=5)
    with django_assert_max_num_queries(5):
        client.get("/crashes/")


def test_signs_of_a_trick_are_shown_and_found(client: Client, sam: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        tricks = [Trick.OWN_COMPARISON] if (task.position, index) == (0, 0) else []
        outcome = Outcome.ASSERTION_FAIL if tricks else Outcome.ERROR
        return verdict(outcome, tricks=tricks)

    made = web_records.submission(web_records.benchmark(), sam, judge)
    assert "own comparison" not in client.get("/crashes/").content.decode()
    page = client.get("/crashes/?review=1").content.decode()
    assert "1 sample match" in page and '<span class="tag warn">own comparison</span>' in page
    assert "No crash matches" in client.get("/crashes/?review=1&outcome=error").content.decode()
    address = f"/s/{made.public_id}/Tidepool-0/0/"
    assert "<span>own comparison</span>" in client.get(address).content.decode()
    client.logout()
    assert "own comparison" not in client.get(address).content.decode()
