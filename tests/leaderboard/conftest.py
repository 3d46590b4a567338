"""Reference values of the statistics, and a cache that no test finds another's values in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

EXPECTED_ROWS = {
    "passk": 109,
    "ci": 35,
    "g_pass_at_k": 9,
    "best_at_k": 6,
    "variance": 1,
    "passk_rerun_variance": 6,
    "paired": 4,
    "multiple": 4,
    "win_rate": 2,
    "rank_range": 3,
    "mde": 4,
}


@pytest.fixture(scope="session")
def reference(shared: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of the reference file by kind; fails if rows went missing."""
    text = (shared / "reference" / "passk.jsonl").read_text(encoding="utf-8")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in map(json.loads, text.splitlines()):
        rows.setdefault(row["kind"], []).append(row)
    assert {kind: len(rows[kind]) for kind in EXPECTED_ROWS} == EXPECTED_ROWS
    return rows


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    cache.clear()
