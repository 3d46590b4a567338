"""Who gets what from every address of the site: generated from its routes.

A route that is not in the table fails, so that nobody adds a page without saying whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import get_resolver

from grading import regrades, tokens
from grading.accounts.roles import Role
from grading.models import CrashGroup, Submission
from tests.grading import web_records

pytestmark = pytest.mark.django_db

VIEWERS = ("anonymous", "stranger", "owner", "triager", "maintainer", "admin")
# One letter for each viewer: y may, l is asked to log in, n is told 403, 0 is told 404.
ANYBODY = "yyyyyy"
SIGNED_IN = "lyyyyy"
SUBMISSION = "00yyyy"
OWN = "00ynyy"
TEAM = "lnnyyy"
ADMIN = "lnnnny"
API = "yyyyyy"
API_TOKEN = "lyyyyy"
# The calls for staff: no token of anybody else has the scope.
API_TEAM = "lnnyyy"
TABLE = {
    "GET ": ANYBODY,
    "GET healthz": ANYBODY,
    "GET favicon.ico": ANYBODY,
    "POST theme/": ANYBODY,
    "GET client/evalsite.py": ANYBODY,
    "GET login/": ANYBODY,
    "POST logout/": ANYBODY,
    "GET sign-up/": "000000",
    "GET join/<str:token>/": ANYBODY,
    "GET password/lost/": ANYBODY,
    "GET password/<uidb64>/<token>/": ANYBODY,
    "GET account/": SIGNED_IN,
    "GET account/password/": SIGNED_IN,
    "POST account/sign-out-others/": SIGNED_IN,
    "GET account/tokens/": SIGNED_IN,
    "POST account/tokens/<int:token_id>/revoke/": SIGNED_IN,
    "GET people/": ADMIN,
    "POST people/invite/": ADMIN,
    "POST people/invitations/<int:pk>/revoke/": ADMIN,
    "GET people/<int:pk>/": ADMIN,
    "POST people/<int:pk>/": ADMIN,
    "POST people/<int:pk>/quota/": ADMIN,
    "POST people/<int:pk>/reset-link/": ADMIN,
    "GET submit/": SIGNED_IN,
    # Reports of one's own upload, and there is none.
    "GET submit/<slug:token>/report.json": "l00000",
    "GET submit/<slug:token>/errors.csv": "l00000",
    "GET b/<slug:slug>/prompts.jsonl": ANYBODY,
    "GET b/<slug:slug>/example.jsonl": ANYBODY,
    "GET b/<slug:slug>/tasks/": ANYBODY,
    "GET b/<slug:slug>/tasks/<str:task_slug>/": ANYBODY,
    "GET b/<slug:slug>/": ANYBODY,
    "GET b/<slug:slug>/v<int:number>/": ANYBODY,
    "GET b/<slug:slug>/v<int:number>/changes/": ANYBODY,
    "GET b/<slug:slug>/v<int:number>/audit/": ANYBODY,
    # No board is stored yet, and nobody is on it.
    "GET b/<slug:slug>/badge/<str:model>.svg": "000000",
    "GET b/<slug:slug>/v<int:number>/s<int:snapshot>/": "000000",
    "GET b/<slug:slug>/heatmap/": ANYBODY,
    "GET b/<slug:slug>/v<int:number>/heatmap/": ANYBODY,
    "GET b/<slug:slug>/compare/": ANYBODY,
    # Nobody is on the board.
    "GET b/<slug:slug>/compare/<str:a>...<str:b>/": "000000",
    "GET b/<slug:slug>/v<int:number>/compare/<str:a>...<str:b>/": "000000",
    "GET compare/": ANYBODY,
    "GET m/<str:slug>/": SUBMISSION,
    "GET m/<str:slug>/manage/": "lnnnyy",
    "POST m/<str:slug>/aliases/": "lnnnyy",
    "POST m/<str:slug>/aliases/remove/": "lnnnyy",
    "POST m/<str:slug>/merge/": "lnnnyy",
    "POST m/<str:slug>/unmerge/": "lnnnyy",
    "GET method/": ANYBODY,
    "GET s/<slug:public_id>/": SUBMISSION,
    "GET s/<slug:public_id>/progress/": SUBMISSION,
    "GET s/<slug:public_id>/samples/": SUBMISSION,
    "GET s/<slug:public_id>/add/": "00ynny",
    "POST s/<slug:public_id>/cancel/": OWN,
    "GET s/<slug:public_id>/manage/": OWN,
    "POST s/<slug:public_id>/visibility/": "00ynny",
    "POST s/<slug:public_id>/withdraw/": OWN,
    "POST s/<slug:public_id>/delete/": "00ynnn",
    "GET s/<slug:public_id>/<str:task_slug>/<int:index>/": SUBMISSION,
    "GET s/<slug:public_id>/<str:task_slug>/<int:index>/generation.txt": SUBMISSION,
    "GET s/<slug:public_id>/<str:task_slug>/<int:index>/program.txt": SUBMISSION,
    # It holds the targets, which this benchmark hides.
    "GET s/<slug:public_id>/<str:task_slug>/<int:index>/case.jsonl": "000yyy",
    "GET s/<slug:public_id>/results.jsonl": SUBMISSION,
    "GET s/<slug:public_id>/eval_results.json": SUBMISSION,
    "GET queue/": ANYBODY,
    "POST queue/control/": ADMIN,
    "GET sandbox/": TEAM,
    "GET regrades/": TEAM,
    "GET regrades/new/": TEAM,
    "GET regrades/<slug:public_id>/": TEAM,
    "POST regrades/<slug:public_id>/apply/": TEAM,
    "POST regrades/<slug:public_id>/cancel/": TEAM,
    "GET triage/": TEAM,
    "POST triage/decide/": TEAM,
    "GET triage/samples/": TEAM,
    "GET triage/<slug:public_id>/": TEAM,
    "POST triage/<slug:public_id>/decide/": TEAM,
    "POST triage/<slug:public_id>/merge/": TEAM,
    # Names no fingerprint to split off.
    "POST triage/<slug:public_id>/split/": "lnn000",
    # Where the pages of failures were before.
    "GET crashes/": TEAM,
    "GET api/": ANYBODY,
    "GET api/v1/": "000000",
    "GET api/v1/openapi.json": API,
    "GET api/v1/benchmarks": API,
    "GET api/v1/benchmarks/<slug>": API,
    "GET api/v1/benchmarks/<slug>/tasks": API,
    "GET api/v1/benchmarks/<slug>/tasks/<task>": API,
    "GET api/v1/benchmarks/<slug>/leaderboard": API,
    "GET api/v1/queue": API,
    "POST api/v1/queue/pause": ADMIN,
    "POST api/v1/queue/drain": ADMIN,
    "POST api/v1/queue/resume": ADMIN,
    "GET api/v1/benchmarks/<slug>/compare": API,
    "GET api/v1/models": API,
    "GET api/v1/models/<slug>": SUBMISSION,
    "POST api/v1/models/<slug>/aliases": "lnnnyy",
    "DELETE api/v1/models/<slug>/aliases": "lnnnyy",
    "POST api/v1/models/<slug>/merge": "lnnnyy",
    "POST api/v1/models/<slug>/unmerge": "lnnnyy",
    "GET api/v1/quota": API_TOKEN,
    "GET api/v1/submissions": API_TOKEN,
    "POST api/v1/submissions": API_TOKEN,
    "GET api/v1/submissions/<public_id>": SUBMISSION,
    "POST api/v1/submissions/<public_id>/samples": "l0ynny",
    "POST api/v1/submissions/<public_id>/cancel": "l0ynyy",
    "GET api/v1/submissions/<public_id>/results": SUBMISSION,
    "GET api/v1/submissions/<public_id>/results.jsonl": SUBMISSION,
    "GET api/v1/submissions/<public_id>/results/<task>/<index>": SUBMISSION,
    "GET api/v1/triage/groups": API_TEAM,
    "GET api/v1/triage/groups/<public_id>": API_TEAM,
    "PATCH api/v1/triage/groups/<public_id>": API_TEAM,
    "GET api/v1/triage/groups/<public_id>/attempts": API_TEAM,
    "GET api/v1/regrades": API_TEAM,
    "POST api/v1/regrades": API_TEAM,
    "GET api/v1/regrades/<public_id>": API_TEAM,
    "GET api/v1/regrades/<public_id>/samples": API_TEAM,
    "GET api/v1/regrades/<public_id>/ranks": API_TEAM,
    # A triager may ask for a regrade, not decide on it.
    "POST api/v1/regrades/<public_id>/apply": "lnnnyy",
    "POST api/v1/regrades/<public_id>/cancel": "lnnnyy",
}
# Django's admin and the queue's dashboard have many routes and one rule each.
FOR_ANYBODY = ("admin/login/", "admin/logout/")
DASHBOARD = "admin/queues/"
ADMIN_SITE = "admin/"
PATTERNS = {"^(?P<app_label>grading|auth)/$": "grading/", "(?P<url>.*)$": "nothing/"}


@dataclass(frozen=True)
class World:
    """A private submission in work, to a benchmark that hides its targets, and everybody."""

    submission: Submission
    people: dict[str, User]
    group: str
    regrade: str

    def path(self, route: str) -> str:
        for pattern, path in PATTERNS.items():
            route = route.replace(pattern, path)
        model = self.submission.language_model.slug
        values = {
            "public_id": {"triage": self.group, "regrades": self.regrade}.get(
                route.removeprefix("api/v1/").partition("/")[0], self.submission.public_id
            ),
            "slug": model if "m/" in route or "models/" in route else "tidepool",
            "task_slug": "Tidepool-0",
            "task": "Tidepool-0",
            "index": "0",
            "number": "1",
            "key": "rq:worker:1",
            "queue_index": "0",
            "connection_index": "0",
            "scheduler_index": "0",
            "pk": str(self.people["stranger"].pk),
        }
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda name: values.get(name[1], "1"), route)


@pytest.fixture
def world() -> World:
    people = {
        "stranger": web_records.person("stranger"),
        "owner": web_records.person("owner"),
        "triager": web_records.person("triager", role=Role.TRIAGER),
        "maintainer": web_records.person("maintainer", role=Role.MAINTAINER),
        "admin": web_records.person("admin", role=Role.ADMIN),
    }
    version = web_records.benchmark(hidden=True)
    made = web_records.submission(
        version,
        people["owner"],
        lambda task, index: None if task.position else web_records.mixed(task, index),
        private=True,
    )
    regrade = regrades.ask(regrades.Selection(benchmark="tidepool"), "why", people["admin"])
    return World(made, people, CrashGroup.objects.all()[0].public_id, regrade.public_id)


def routes() -> Iterator[str]:
    def walk(patterns: list, before: str) -> Iterator[str]:
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route

    return walk(get_resolver().url_patterns, "")


def test_every_route_is_in_the_table() -> None:
    known = {key.partition(" ")[2] for key in TABLE}
    found = {route for route in routes() if not route.startswith(ADMIN_SITE)}
    assert found - known == set(), "say in TABLE who may do what there"
    assert known - found == set(), "gone, or renamed"


def letter(world: World, viewer: str, method: str, route: str) -> str:
    """What became of a request; its effects are undone."""
    client = Client(raise_request_exception=False)
    headers = {}
    if viewer in world.people:
        person = world.people[viewer]
        if route.startswith("api/v1/"):
            secret, _ = tokens.make(person, "matrix", tokens.usable_scopes(person))
            headers["Authorization"] = f"Bearer {secret}"
        else:
            client.force_login(person)
    with transaction.atomic():
        answer = client.generic(method, world.path(route), headers=headers)
        transaction.set_rollback(True)
    location = answer.headers.get("Location", "")
    asks = answer.status_code == 401 or location.startswith(("/login/?next=", "/admin/login/"))
    return "l" if asks else {403: "n", 404: "0"}.get(answer.status_code, "y")


def test_everybody_gets_what_the_table_says(world: World) -> None:
    found = {}
    for key in TABLE:
        method, _, route = key.partition(" ")
        found[key] = "".join(letter(world, viewer, method, route) for viewer in VIEWERS)
    assert found == TABLE


def test_the_admin_site_and_the_dashboard_are_for_admins(world: World) -> None:
    inside = [route for route in routes() if route.startswith(ADMIN_SITE)]
    assert len(inside) > 50
    for route in inside:
        if route in FOR_ANYBODY:
            continue
        told = [letter(world, viewer, "GET", route) for viewer in VIEWERS]
        dashboard = route.startswith(DASHBOARD)
        assert told[:-1] == (list("lnnnn") if dashboard else ["l"] * 5), route
        assert told[-1] != "l", route


def test_hidden_targets_are_on_no_page_of_a_stranger(world: World) -> None:
    for key in TABLE:
        method, _, route = key.partition(" ")
        if method == "GET":
            client = Client()
            client.force_login(world.people["owner"])
            answer = client.get(world.path(route))
            text = b"".join(answer) if answer.streaming else answer.content
            assert b"secret argument" not in text, key
