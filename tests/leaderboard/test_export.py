"""A board as a file."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.urls import reverse

from grading.models import Sample
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def exported(client, name: str, query: str = "") -> str:
    response = client.get(reverse("board", args=["tidepool"]) + f"?format={name}{query}")
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="tidepool-v1.{name}"'
    return response.content.decode()


def test_csv_holds_the_rows_unrounded(client):
    version = builders.version(tasks=3)
    made = builders.submission(
        version, "Heron", [(3, 1), (3, 0), (3, 2)], settings={"temperature": 0.2}
    )
    builders.submission(version, "Petrel", [(3, 3), None, None])
    heron, petrel = csv.DictReader(io.StringIO(exported(client, "csv"), newline=""))
    assert (heron["rank"], heron["model"], heron["submission"]) == ("1", "Heron", made.public_id)
    assert float(heron["pass@1"]) == 1 / 3
    assert (heron["pass@5"], heron["assertion_fail"], heron["n_max"]) == ("", "6", "3")
    assert json.loads(heron["settings"]) == {"temperature": 0.2}
    assert (petrel["rank"], petrel["reason"]) == ("", "2 of 3 tasks missing")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_cells_are_no_formulas(client, start):
    version = builders.version(tasks=1)
    builders.submission(version, "Heron", [(1, 1)], organisation=f"{start}cmd|' /C calc'!A0")
    (row,) = csv.DictReader(io.StringIO(exported(client, "csv"), newline=""))
    assert row["organisation"] == f"'{start}cmd|' /C calc'!A0"


def test_json_says_what_its_rows_hold_for(client):
    version = builders.version(tasks=1)
    builders.submission(version, "=Heron", [(5, 5)], synthetic=True)
    document = json.loads(exported(client, "json", "&score=5"))
    assert document["score"] == "pass@5"
    assert (document["version"], document["tasks"], document["timeouts"]) == (1, 1, "zero")
    (row,) = document["rows"]
    assert (row["model"], row["synthetic"], row["pass@5"], row["pass@10"]) == (
        "=Heron",
        True,
        1,
        None,
    )
    assert row["interval_low"] < 1 == row["interval_high"]


def test_markdown_is_one_table_whatever_the_names(client):
    version = builders.version(tasks=1)
    builders.submission(version, "a|b <i>\n# c", [(5, 5)])
    lines = exported(client, "md").splitlines()
    assert lines[2].startswith("| Rank | Range | Model | pass@1 | 95 % interval | pass@5 |")
    assert lines[4].startswith(r"| 1 | 1 | a\|b \<i\> # c | 100.0 |")
    assert len(lines) == 5


def test_filters_hold_for_exports_too(client):
    version = builders.version(tasks=1)
    builders.submission(version, "Heron", [(5, 5)])
    builders.submission(version, "Petrel", [(5, 1)])
    (row,) = json.loads(exported(client, "json", "&q=petrel"))["rows"]
    assert (row["model"], row["rank"]) == ("Petrel", 2)


def test_rank_ranges_are_in_every_format(client):
    version = builders.version(tasks=40)
    for name, solved in (("Heron", 40), ("Petrel", 39), ("Skua", 1)):
        builders.submission(version, name, builders.solving(solved, 40))
    builders.submission(version, "Tern", [(1, 1)])
    rows = list(csv.DictReader(io.StringIO(exported(client, "csv"), newline="")))
    assert [(row["rank"], row["rank_low"], row["rank_high"]) for row in rows] == [
        ("1", "1", "2"),
        ("2", "1", "2"),
        ("3", "3", "3"),
        ("", "", ""),
    ]
    document = json.loads(exported(client, "json"))
    assert document["rank_range"]["pairs"] == 3
    assert document["rank_range"]["smallest_difference"] == pytest.approx(0.0700, abs=1e-4)
    assert document["rows"][0]["rank_high"] == 2
    assert "| 2 | 1–2 | Petrel |" in exported(client, "md")


def test_an_empty_board_exports_its_header(client):
    builders.version(tasks=1)
    (header,) = exported(client, "csv").splitlines()
    assert header.startswith("rank,rank_low,rank_high,reason,model")


def test_an_unknown_format_is_not_found(client):
    builders.version(tasks=1)
    assert client.get(reverse("board", args=["tidepool"]) + "?format=xlsx").status_code == 404


def test_integrity_is_on_the_board_and_in_exports(client):
    version = builders.version(tasks=2)
    made = builders.submission(version, "Heron", [(1, 1), (1, 1)])
    parts = ((3, "bwrap", ["seccomp", "landlock"]), (4, "rlimit", []))
    for task, (sealed, tier, hardening) in zip(version.tasks.all(), parts, strict=True):
        sample = Sample.objects.create(submission=made, task=task, index=0)
        builders.attempt(sample, sealed=sealed, total=4, tier=tier, hardening=hardening)
    builders.submission(version, "Petrel", [(1, 0), (1, 0)])
    heron, petrel = csv.DictReader(io.StringIO(exported(client, "csv"), newline=""))
    assert (heron["sealed_share"], heron["tier"]) == ("0.875", "bwrap rlimit")
    assert heron["hardening"] == "landlock seccomp"
    assert (petrel["sealed_share"], petrel["tier"], petrel["hardening"]) == ("", "", "")
    assert json.loads(exported(client, "json"))["sealed_share"] == 0.875
    page = client.get(reverse("board", args=["tidepool"])).content.decode()
    assert "87.5" in page.split("of targets sealed")[0][-60:]
    assert "isolation bwrap, rlimit" in page
