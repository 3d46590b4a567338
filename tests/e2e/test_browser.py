"""Every page in Chromium: no console error, CSP violation, axe finding or sideways scroll."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import resolve
from pytest_django import Settings

from grading import regrade_runs, regrades
from grading.engine.outcome import Outcome
from grading.models import BenchmarkVersion, CrashGroup, Submission, Task
from grading.views.triage_group import TABS
from leaderboard import audit, snapshots
from tests.grading import web_records
from tests.grading.test_permission_matrix import TABLE, World

pytest.importorskip("playwright", reason="needs the package playwright")
pytest.importorskip("axe_playwright_python", reason="needs the package axe-playwright-python")

from tests.e2e.browser import SCHEMES, launched, visiting

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

HOSTILE = (
    "<script>alert(1)</script> </pre><img src=x onerror=alert(2)> \u202e right to left \0 "
    "\ud800 lone \u200b zero width\n```python\ndef longest(items):\n    return items[0]\n```\n"
    + "x"
    * 100_000
)


# Files, data, parts of pages, and places that lead elsewhere.
NO_PAGES = {
    "healthz",
    "favicon.ico",
    "client/evalsite.py",
    "compare/",
    "crashes/",
    "submit/<slug:token>/report.json",
    "submit/<slug:token>/errors.csv",
    "b/<slug:slug>/prompts.jsonl",
    "b/<slug:slug>/example.jsonl",
    "b/<slug:slug>/badge/<str:model>.svg",
    "s/<slug:public_id>/progress/",
    "s/<slug:public_id>/results.jsonl",
    "s/<slug:public_id>/eval_results.json",
    "s/<slug:public_id>/<str:task_slug>/<int:index>/generation.txt",
    "s/<slug:public_id>/<str:task_slug>/<int:index>/program.txt",
    "s/<slug:public_id>/<str:task_slug>/<int:index>/case.jsonl",
    *(key.removeprefix("GET ") for key in TABLE if key.startswith("GET api/v1/")),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


@dataclass(frozen=True)
class Site:
    """What the pages of the tests show."""

    version: BenchmarkVersion
    done: Submission
    live: Submission
    faulty: Submission
    hidden: Submission
    ready: str

    def pages(self) -> dict[str, int]:
        """Path and status of every page that anybody can read."""
        done, live = f"/s/{self.done.public_id}/", f"/s/{self.live.public_id}/"
        return {
            "/": 200,
            "/b/tidepool/": 200,
            "/b/tidepool/?columns=settings&without=Tidepool-1": 200,
            "/b/tidepool/v1/": 200,
            "/b/tidepool/v1/s1/": 200,
            "/b/tidepool/v1/changes/": 200,
            "/b/tidepool/heatmap/": 200,
            "/b/tidepool/v1/heatmap/": 200,
            "/b/tidepool/v1/audit/": 200,
            "/b/tidepool/compare/": 200,
            "/b/tidepool/compare/petrel-9b...quillfish-8b/": 200,
            "/b/tidepool/v1/compare/petrel-9b...quillfish-8b/": 200,
            "/b/tidepool/tasks/": 200,
            "/b/tidepool/tasks/Tidepool-0/": 200,
            "/m/quillfish-8b/": 200,
            "/method/": 200,
            "/queue/": 200,
            "/api/": 200,
            done: 200,
            f"{done}?sort=-passing": 200,
            f"{done}samples/?outcome=timeout": 200,
            f"{done}samples/?outcome=platform": 200,
            f"{done}Tidepool-0/0/": 200,
            f"{done}Tidepool-1/0/": 200,
            f"{done}Tidepool-2/0/": 200,
            live: 200,
            f"/s/{self.faulty.public_id}/": 200,
            f"/s/{self.faulty.public_id}/Tidepool-1/1/": 200,
            f"/s/{self.hidden.public_id}/Hidden-1/0/": 200,
            "/b/hidden/tasks/Hidden-1/": 200,
            "/login/": 200,
            "/sign-up/": 200,
            "/password/lost/": 200,
            "/password/nobody/nothing/": 200,
            "/join/nothing/": 410,
            "/nowhere/": 404,
        }

    def group_pages(self) -> dict[str, int]:
        """Every part of a sample, each in a group of its own; and a group that is empty now."""
        groups = CrashGroup.objects.filter(merged_into=None).order_by("kind", "pk")
        ids = groups.values_list("public_id", flat=True)
        parts = {f"/triage/{one}/?tab={tab}": 200 for one, tab in zip(ids, TABS, strict=False)}
        return parts | {
            f"/triage/{CrashGroup.objects.get(merged_into__isnull=False).public_id}/": 200
        }

    def staff_pages(self) -> dict[str, int]:
        return {
            "/submit/": 200,
            "/triage/": 200,
            "/triage/?q=Nothing": 200,
            "/triage/?state=all&tier=bwrap": 200,
            "/regrades/": 200,
            "/regrades/new/": 200,
            f"/regrades/{self.ready}/": 200,
            "/triage/samples/": 200,
            "/triage/samples/?exception=Nothing": 200,
            **self.group_pages(),
            "/sandbox/": 200,
            "/account/": 200,
            "/account/password/": 200,
            "/account/tokens/": 200,
            "/people/": 200,
            f"/people/{self.done.uploader_id}/": 200,
            f"/s/{self.done.public_id}/manage/": 200,
            f"/s/{self.done.public_id}/add/": 200,
            "/m/quillfish-8b/manage/": 200,
            f"/s/{self.done.public_id}/Tidepool-2/0/": 200,
            "/admin/": 200,
            "/admin/grading/benchmark/import/": 200,
        }


@pytest.fixture
def site(settings: Settings) -> Site:
    settings.SIGN_UP = True
    rosa = web_records.person("rosa")
    web_records.person("sam", superuser=True)
    version = web_records.benchmark(tasks=6)
    hidden = web_records.benchmark("hidden", hidden=True)

    def half(task: Task, index: int) -> Any:
        return web_records.mixed(task, index) if index == 0 else None

    def broken(task: Task, index: int) -> Any:
        return web_records.mixed(task, index) if index == 0 else "bwrap: <b>no</b> namespaces"

    petrel = web_records.submission(version, rosa, model="Petrel 9B")
    made = Site(
        version,
        web_records.submission(version, rosa, text=HOSTILE),
        web_records.submission(version, rosa, half, model="Gannet 22B"),
        web_records.submission(version, rosa, broken, model="Tern 13B"),
        web_records.submission(hidden, rosa),
        _regraded(petrel),
    )
    snapshots.take_due()
    audit.audit_due()
    CrashGroup.objects.create(
        kind="syntax", title="SyntaxError: emptied", merged_into=CrashGroup.objects.first()
    )
    return made


def _regraded(submission: Submission) -> str:
    """The id of a regrade whose runs are made: some pass now, one cannot be decided."""
    sam = User.objects.get(username="sam")
    chosen = regrades.Selection(submission=submission.public_id)
    regrade = regrades.ask(chosen, "a target was wrong", sam, repeats=2)
    while claim := regrade_runs.claim(regrade.pk, "w9-1"):
        outcome = Outcome.PASS if claim.run.sample.index or claim.run.repeat else Outcome.ERROR
        assert regrade_runs.record(claim, web_records.verdict(outcome), "")
    return regrade.public_id


def test_no_page_is_left_out(site: Site, client: Client) -> None:
    """Of the routes that the permission matrix knows, all are visited or are no pages."""
    asked = {key.removeprefix("GET ") for key in TABLE if key.startswith("GET ")}
    paths = {**site.pages(), **site.staff_pages()}
    there = [path.partition("?")[0] for path, status in paths.items() if status != 404]
    assert asked - {resolve(path).route for path in there} == NO_PAGES
    sam = User.objects.get(username="sam")
    client.force_login(sam)
    group = CrashGroup.objects.all()[0].public_id
    world = World(site.done, {"stranger": sam}, group, site.ready)
    for route in NO_PAGES:
        answer = client.get(world.path(route))
        text = b"".join(answer) if answer.streaming else answer.content
        assert answer.status_code == 404 or b"<html" not in text, route


def test_every_public_page_is_clean(browser: Any, live_server: Any, site: Site) -> None:
    with visiting(browser, live_server.url) as visitor:
        assert _problems(visitor, site.pages()) == []


def test_every_staff_page_is_clean(browser: Any, live_server: Any, site: Site) -> None:
    with visiting(browser, live_server.url) as visitor:
        visitor.sign_in("sam", web_records.PASSWORD)
        assert _problems(visitor, site.staff_pages()) == []


def test_the_heatmap_is_read_by_keyboard(browser: Any, live_server: Any, site: Site) -> None:
    with visiting(browser, live_server.url) as visitor:
        visitor.go("/b/tidepool/heatmap/?columns=number")
        heat, readout = visitor.page.locator("#hm"), visitor.page.locator("#hm-readout output")
        heat.focus()
        readout.get_by_text("Tidepool/0", exact=False).wait_for()
        heat.press("ArrowRight")
        readout.get_by_text("Tidepool/1", exact=False).wait_for()
        heat.press("End")
        readout.get_by_text("Tidepool/5", exact=False).wait_for()
        assert visitor.problems() == []
        heat.press("Enter")
        visitor.page.wait_for_url("**/samples/?task=Tidepool-5")


def test_the_charts_of_a_board_are_read_by_keyboard_and_pointer(
    browser: Any, live_server: Any, site: Site
) -> None:
    with visiting(browser, live_server.url) as visitor:
        visitor.go("/b/tidepool/")
        board = visitor.page.get_by_role("region", name="Leaderboard table")
        read = visitor.page.get_by_role("status").filter(has_text="·")
        board.focus()
        read.filter(has_text="Petrel 9B · Rank 1 to 2: better than 0").wait_for()
        board.press("ArrowRight")
        read.filter(has_text="95 % interval").wait_for()
        board.press("ArrowDown")
        read.filter(has_text="Quillfish 8B · ").filter(has_text="95 % interval").wait_for()
        board.press("End")
        read.filter(has_text="Quillfish 8B · Outcome mix: pass ").wait_for()
        visitor.page.locator(".wh svg[data-mark]").first.hover()
        read.filter(has_text="Petrel 9B · ").filter(has_text="95 % interval").wait_for()
        assert visitor.problems() == []


def test_enter_opens_the_mark_of_a_chart_that_leads_somewhere(
    browser: Any, live_server: Any, site: Site
) -> None:
    with visiting(browser, live_server.url) as visitor:
        visitor.go("/m/petrel-9b/")
        history = visitor.page.get_by_role("group", name="pass@1 from snapshot to snapshot")
        history.focus()
        visitor.page.get_by_role("status").filter(has_text="Snapshot 1, ").wait_for()
        assert visitor.problems() == []
        with visitor.page.expect_navigation(url="**/b/tidepool/v1/s1/"):
            history.press("Enter")
        visitor.page.get_by_role("heading", level=1, name="Tidepool").wait_for()


def test_a_tap_reads_a_cell_and_its_link_opens_it(
    browser: Any, live_server: Any, site: Site
) -> None:
    with visiting(browser, live_server.url, width=360, touch=True) as visitor:
        visitor.go("/b/tidepool/heatmap/?columns=number")
        visitor.page.locator("#hm").tap(position={"x": 200, "y": 60})
        readout = visitor.page.locator("#hm-readout")
        readout.get_by_text("samples pass", exact=False).wait_for()
        assert visitor.page.url.endswith("?columns=number")
        readout.get_by_role("link", name="Open").tap()
        visitor.page.wait_for_url("**/samples/?task=Tidepool-*")


def test_charts_say_their_marks_without_javascript(
    browser: Any, live_server: Any, site: Site
) -> None:
    with visiting(browser, live_server.url, javascript=False) as visitor:
        visitor.go("/m/quillfish-8b/")
        assert visitor.page.locator("svg.plot").count() == 2
        assert visitor.page.locator("svg.plot [data-mark] > title").count() >= 3
        assert visitor.page.locator(".readout").count() == 0
        visitor.page.get_by_text("The curve as a table").click()
        curve = visitor.page.locator("details", has_text="The curve as a table")
        curve.get_by_role("rowheader", name="2", exact=True).wait_for()


def test_wide_tables_fit_on_paper(browser: Any, live_server: Any, site: Site) -> None:
    with visiting(browser, live_server.url, "dark", width=720) as visitor:
        visitor.page.emulate_media(media="print")
        for path in ("/m/quillfish-8b/", "/b/tidepool/"):
            visitor.go(path)
            assert visitor.problems() == []
            assert visitor.page.get_by_role("button").count() == 0


def _problems(visitor: Any, pages: dict[str, int]) -> list[str]:
    problems = []
    for path, status in pages.items():
        visitor.go(path, status)
        for scheme, width in visitor.looks():
            found = visitor.problems(colours_only=scheme != SCHEMES[0])
            problems += [f"{scheme}, {width} px: {one}" for one in found]
            _keep(visitor, path, scheme, width)
    return problems


def _keep(visitor: Any, path: str, scheme: str, width: int) -> None:
    """Pictures for a person to look at, where a directory for them is named."""
    if directory := os.environ.get("EVALSITE_SCREENSHOTS"):
        name = path.strip("/").replace("/", "_").replace("?", "-").replace("=", "-") or "home"
        visitor.shoot(Path(directory, f"{name}-{width}-{scheme}.png"))
