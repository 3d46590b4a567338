from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, RequestContext, Template
from django.test import RequestFactory
from django.utils import timezone

from grading.templatetags import figures, outcomes, page

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (1.0, "100.0"),
        (0.9996, ">99.9"),
        (0.99999999, ">99.9"),
        (0.9994, "99.9"),
        (0.562, "56.2"),
        (0.0, "0.0"),
        (0.0004, "<0.1"),
        (0.0006, "0.1"),
    ],
)
def test_percent_never_rounds_to_a_whole(fraction: float, text: str) -> None:
    assert figures.percent_figure(fraction) == text
    assert figures.percent(fraction) == f"{text}{NBSP}%"


def test_a_missing_figure_is_a_dash_with_its_reason() -> None:
    assert figures.percent(None) == "–"
    shown = figures.missing("needs 10 samples <b>")
    assert 'class="na"' in shown
    assert "no value: needs 10 samples &lt;b&gt;" in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [(2 / 3, "0.667"), (1.0, "1.000"), (0.9999, ">0.999"), (0.0, "0.000"), (0.0001, "<0.001")],
)
def test_decimals_never_round_to_a_whole(value: float, text: str) -> None:
    assert figures.decimal(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (256 * 1024, "256 KB"),
        (11_900_000, "11.3 MB"),
        (4 << 30, "4 GB"),
    ],
)
def test_sizes(value: int, text: str) -> None:
    assert figures.size(value) == text.replace(" ", NBSP)


def test_durations_and_moments() -> None:
    assert figures.seconds(0.0041) == f"4{NBSP}ms"
    assert figures.seconds(3.0) == f"3.00{NBSP}s"
    assert figures.limit(3.25) == f"3.25{NBSP}s"
    assert figures.eta((70, 200)) == "1 to 4 min"
    assert figures.eta((2, 9.5)) == "2 to 10 s"
    assert figures.eta((20, 90)) == "up to 2 min"
    assert figures.eta((3, 3)) == "up to 3 s"
    assert f"3{NBSP}min ago" in figures.age(timezone.now() - timedelta(seconds=200))
    assert "just now" in figures.age(timezone.now() + timedelta(seconds=5))
    at = datetime(2026, 11, 9, 9, 4, tzinfo=UTC)
    assert "9 Nov 2026, 09:04 UTC" in figures.moment(at)
    assert figures.day(at) == '<time datetime="2026-11-09T09:04:00Z">9 Nov 2026</time>'


def test_an_outcome_is_letter_and_word() -> None:
    assert outcomes.outcome("timeout") == (
        '<span class="oc oc-time"><b aria-hidden="true">T</b>timeout</span>'
    )
    assert "oc-platform" in outcomes.outcome("platform")
    assert "<b>" not in outcomes.outcome("<b>").replace('<b aria-hidden="true">', "")


def test_a_mix_says_its_shares_and_fills_the_bar() -> None:
    drawn = outcomes.mix({"pass": 2999, "error": 1})
    assert "pass &gt;99.9 %, error &lt;0.1 %" in drawn
    assert drawn.count("<rect") == 2
    assert "style" not in drawn
    assert "no outcome yet" in outcomes.mix({})


@pytest.mark.parametrize(
    ("cookie", "value", "following"),
    [
        ("", "auto", "light"),
        ("light", "light", "dark"),
        ("dark", "dark", "auto"),
        ("<x>", "auto", "light"),
    ],
)
def test_the_theme_comes_from_a_cookie_that_may_hold_anything(
    cookie: str, value: str, following: str
) -> None:
    request = RequestFactory().get("/")
    request.COOKIES["theme"] = cookie
    now = page.theme(Context({"request": request}))
    assert (now.value, now.next, now.forced) == (value, following, value != "auto")


def test_a_sort_header_turns_around_and_forgets_the_page() -> None:
    request = RequestFactory().get("/?sort=fraction&page=3&outcome=error")
    template = Template('{% load page %}{% sort_head "Fraction" "fraction" sort %}')
    shown = template.render(RequestContext(request, {"sort": "fraction"}))
    assert 'aria-sort="ascending"' in shown
    assert 'href="?sort=-fraction&amp;outcome=error"' in shown
    other = template.render(RequestContext(request, {"sort": "task"}))
    assert "aria-sort" not in other
