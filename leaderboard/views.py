"""Home, boards, model pages and the method page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from grading.engine import denylist, limits
from grading.engine.outcome import GRADER_VERSION, Outcome
from grading.files import NAMES, respond
from grading.models import BenchmarkVersion, ChangeLogEntry
from grading.permissions import version_or_404, visible_versions
from grading.queries.language_models import names_of
from leaderboard import cards, curves, habits, overview, queries, tags
from leaderboard.charts import axis_for
from leaderboard.conditions import LABELS
from leaderboard.curve_chart import curve_chart
from leaderboard.export import writers
from leaderboard.figures import KS
from leaderboard.history import history
from leaderboard.history_chart import history_chart
from leaderboard.model_export import writers as model_files
from leaderboard.models import Snapshot
from leaderboard.ranking import LEAST_TASKS
from leaderboard.reliability import reliability

TASKS_PER_PAGE = 50
SORT_LABELS = {
    "score": "score",
    "name": "name",
    "fraction": "mean fraction",
    "solved": "tasks solved",
    "n": "samples per task",
    "coverage": "coverage",
    "change": "change",
    "created": "upload date",
}
SNAPSHOTS_PER_PAGE = 25
LOG_LINES = 50
# Rank, model, score, chart, fraction, solved, n, coverage, outcomes, uploaded.
FIXED_COLUMNS = 10
# Rank, model, score, chart, the conditions of the runs, and all of them for narrow screens.
SETTING_COLUMNS = 5 + len(LABELS)


@dataclass(frozen=True, slots=True)
class PassColumn:
    """A pass@k beside the chosen score."""

    k: int

    @property
    def key(self) -> str:
        return f"pass{self.k}"

    @property
    def label(self) -> str:
        return f"pass@{self.k}"


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return render(
        request,
        "leaderboard/home.html",
        {
            "benchmarks": overview.benchmark_lines(request.user),
            "queue": overview.queue(),
            "newest": overview.newest_results(),
        },
    )


@require_safe
def board(
    request: HttpRequest, slug: str, number: int | None = None, snapshot: int | None = None
) -> HttpResponse:
    """The leaderboard of a benchmark's newest version or of version ``number``; ``?format=``.

    With ``snapshot`` as it was then.
    """
    version = version_or_404(request.user, slug, "" if number is None else str(number))
    try:
        shown = queries.board(version, **_choices(request, snapshot))
    except Snapshot.DoesNotExist:
        raise Http404("no such snapshot") from None
    if "format" in request.GET:
        return respond(request.GET["format"], f"{shown.slug}-v{shown.version}", writers(shown))
    return render(request, "leaderboard/board.html", _board_context(request, version, shown))


def _board_context(
    request: HttpRequest, version: BenchmarkVersion, shown: queries.Board
) -> dict[str, Any]:
    by_conditions = request.GET.get("columns") == "settings"
    columns = [] if by_conditions else [PassColumn(k) for k in shown.ks if k != shown.score]
    figures = FIXED_COLUMNS + (shown.since is not None)
    fixed = SETTING_COLUMNS if by_conditions else figures
    return {
        "version": version,
        "versions": visible_versions(request.user).filter(benchmark=version.benchmark),
        "board": shown,
        "axis": axis_for(row.figures.interval for row in (*shown.ranked, *shown.unranked)),
        "score_label": f"pass@{shown.score}",
        "pass_columns": columns,
        "columns": fixed + len(columns),
        "by_conditions": by_conditions,
        "conditions": LABELS,
        "past": request.resolver_match is not None and "snapshot" in request.resolver_match.kwargs,
        "all_ks": sorted({*shown.ks, shown.score}),
        "sorts": _sort_options(shown),
        "outcomes": [outcome.value for outcome in Outcome],
        "least_tasks": LEAST_TASKS,
    }


@require_safe
def changes(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    """Every snapshot of a version's board, newest first, and why it was taken."""
    version = version_or_404(request.user, slug, "" if number is None else str(number))
    taken = Snapshot.objects.filter(version=version).order_by("-number").defer("policies")
    page = Paginator(taken, SNAPSHOTS_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "version": version,
        "page_obj": page,
        "log": ChangeLogEntry.objects.of_version(version.pk)[:LOG_LINES],
    }
    return render(request, "leaderboard/changes.html", context)


def _sort_options(shown: queries.Board) -> dict[str, str]:
    """What the list offers, and the order in force if a header set another."""
    key = shown.sort.removeprefix("-")
    label = SORT_LABELS.get(key) or key.replace("pass", "pass@")
    return SORT_LABELS | {shown.sort: f"{label}, turned round" if key != shown.sort else label}


def _choices(request: HttpRequest, snapshot: int | None) -> queries.Choices:
    """The filters of the query string; what is not on offer falls back to the default."""
    score, sort = request.GET.get("score", ""), request.GET.get("sort", "")
    since = request.GET.get("since", "")
    return {
        "score": int(score) if score in map(str, KS) else 1,
        "sort": sort if sort.removeprefix("-") in queries.SORTS else "score",
        "q": request.GET.get("q", "")[:200],
        "timeouts": "missing" if request.GET.get("timeouts") == "missing" else "zero",
        "snapshot": snapshot,
        "since": int(since) if since.isascii() and since.isdigit() and len(since) < 9 else None,
        "where": {name: request.GET[name] for name in LABELS if request.GET.get(name)},
        "tag": request.GET.get("tag", ""),
        "without": request.GET.get("without", "").replace(",", " ").split(),
    }


@require_safe
def model(request: HttpRequest, slug: str) -> HttpResponse:
    """``?run=`` picks the submission looked at closer; ``?format=`` gives the figures as a file.

    A merged model's address leads to the one it was merged into.
    """
    try:
        shown = cards.card(slug, request.user, request.GET.get("run", ""))
    except Http404:
        moved = cards.successor(slug, request.user)
        if moved is None:
            raise
        query = request.META.get("QUERY_STRING", "")
        address = reverse("model", args=[moved.slug])
        return HttpResponsePermanentRedirect(f"{address}?{query}" if query else address)
    if "format" in request.GET:
        return respond(request.GET["format"], f"model-{shown.shown.public_id}", model_files(shown))
    lowest_first = request.GET.get("sort") == "fraction"
    tasks = cards.lowest_first(shown.tasks) if lowest_first else shown.tasks
    page = Paginator(tasks, TASKS_PER_PAGE).get_page(request.GET.get("page"))
    points = curves.curve(shown.tasks)
    return render(
        request,
        "leaderboard/model.html",
        {
            "points": points,
            "curve": curve_chart(points) if len(points) > 1 else "",
            "cross_check": curves.cross_check(shown.tasks),
            "reliability": reliability(shown.shown.public_id, shown.tasks),
            "formats": NAMES.items(),
            "losses": habits.losses(shown.shown.public_id, shown.tasks),
            "lost_points": sum(curves.lost(shown.tasks).values()),
            "weak": tags.weakness(shown.version, slug, shown.tasks),
            "least_tasks": LEAST_TASKS,
            **_history(shown),
            "card": shown,
            "names": names_of(shown.model).all,
            "page_obj": page,
            "lowest_first": lowest_first,
            "samples_url": reverse("submission-samples", args=[shown.shown.public_id]),
        },
    )


def _history(shown: cards.Card) -> dict[str, Any]:
    moments = history(shown.version, shown.model.slug, shown.public)
    valued = [one for one in moments if one.value is not None]
    benchmark, number = shown.version.benchmark.slug, shown.version.number

    def address(snapshot: int) -> str:
        return reverse("board_snapshot", args=[benchmark, number, snapshot])

    return {
        "moments": moments[::-1],
        "history": history_chart(valued, address) if valued else "",
    }


@require_safe
def method(request: HttpRequest) -> HttpResponse:
    context = {
        "limits": limits,
        "grader": GRADER_VERSION,
        "denied": denylist.DEFAULT,
        "ks": KS,
        "least_tasks": LEAST_TASKS,
    }
    return render(request, "leaderboard/method.html", context)
