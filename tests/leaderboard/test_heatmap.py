"""The heatmap: order, levels, paths, exports and what it costs."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from leaderboard import snapshots
from leaderboard.heatmap import heatmap, settings
from leaderboard.heatmap_chart import chart
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    made = builders.version(tasks=3)
    builders.submission(made, "Heron", [(4, 1), (4, 4), (4, 0)])
    builders.submission(made, "avocet", [(4, 2), (4, 4), (4, 4)])
    builders.submission(
        made, "Partial", [{"n": 2, "c": 0, "fraction_sum": 1.0}, None, None], organisation=""
    )
    snapshots.take(made)
    return made


def names(shown):
    return [row.model for row in shown.rows], [column.slug[-1] for column in shown.columns]


def test_models_and_tasks_stand_in_the_order_asked_for(version):
    assert names(heatmap(version)) == (["avocet", "Heron", "Partial"], ["1", "2", "0"])
    by_name = heatmap(version, rows="name", columns="number")
    assert names(by_name) == (["avocet", "Heron", "Partial"], ["0", "1", "2"])
    assert names(heatmap(version, columns="hardest"))[1] == ["0", "2", "1"]


def test_cells_are_pass_rates_or_fractions_and_open_where_nothing_was_graded(version):
    assert heatmap(version, columns="number").values == ((0.5, 1, 1), (0.25, 1, 0), (0, None, None))
    assert heatmap(version, columns="number", cell="fraction").values[2] == (0.5, None, None)


def test_unknown_arrangements_fall_back():
    assert settings({"cell": "x", "rows": "name"}) == {
        "cell": "pass",
        "rows": "name",
        "columns": "easiest",
    }


def test_one_path_per_level_and_neighbours_in_one_rectangle(version):
    svg = chart(heatmap(version, columns="number"))
    paths = dict(re.findall(r'<path class="h(\d)" d="([^"]*)"', svg))
    assert sorted(paths) == ["0", "1", "2", "5"]
    assert paths["5"].count("M") == 2  # two full cells side by side, and one alone
    assert paths["0"].count("M") == 2
    assert "1 tasks have a mean over 95 %" in svg


def test_exports_hold_every_cell(client, version):
    address = reverse("heatmap", args=["tidepool"])
    text = client.get(f"{address}?format=csv&columns=number").content.decode()
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert lines[0] == ["task_id", "avocet", "Heron", "Partial"]
    assert lines[2] == ["Tidepool/1", "1.0", "1.0", ""]
    held = json.loads(client.get(f"{address}?format=json&columns=number").content)
    assert held["cells"][1] == [[4, 1, 0.25], [4, 4, 1.0], [4, 0, 0.0]]
    assert client.get(f"{address}?format=svg").status_code == 404


def test_the_page_costs_the_same_for_more_models(client, version):
    def cost():
        with CaptureQueriesContext(connection) as captured:
            assert client.get(reverse("heatmap", args=["tidepool"])).status_code == 200
        return len(captured)

    before = cost()
    for i in range(9):
        builders.submission(version, f"M{i}", [(i + 1, 1)] * 3)
    snapshots.take(version)
    assert cost() == before <= 7


def test_an_empty_board_says_so(client):
    builders.version()
    body = client.get(reverse("heatmap", args=["tidepool"])).content.decode()
    assert "No model has a finished public run here yet." in body


def test_long_names_are_cut_in_the_middle_and_get_room(version):
    def left(svg):
        return float(re.search(r'data-x="([\d.]+)"', svg)[1])

    narrow = chart(heatmap(version))
    builders.submission(version, f"Heron{'x' * 40}LONG FIXED", [(4, 1)] * 3)
    snapshots.take(version)
    wide = chart(heatmap(version))
    name = re.search(r'class="name"[^>]*>(Heronx[^<]*)<', wide)[1]
    assert re.fullmatch("Heronx+…x+LONG FIXED", name)
    assert left(wide) >= 8 * len(name) > left(narrow)
