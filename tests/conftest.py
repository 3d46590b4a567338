"""Shared fixtures. Every test session works in a data directory of its own."""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from hypothesis import settings as hypothesis_settings
from pytest_django import Settings
from xdist import is_xdist_controller

from grading.engine.sandbox import Sandbox

# Before settings are read: no test touches the checkout's own data.
_DATA_DIR = tempfile.mkdtemp(prefix="evalsite-tests-")
_OWNER = os.getpid()


@atexit.register
def _remove_data_dir() -> None:
    # A forked child that ends normally must not take the session's data with it.
    if os.getpid() == _OWNER:
        shutil.rmtree(_DATA_DIR, ignore_errors=True)


os.environ["EVALSITE_DATA_DIR"] = _DATA_DIR
# One for all processes of a parallel session: they take turns with runs that want to be alone.
os.environ.setdefault("EVALSITE_CACHE_DIR", os.path.join(_DATA_DIR, "cache"))
# The Django plugin has read the settings before this file, with the checkout's own directory.
django_settings.DATA_DIR = Path(_DATA_DIR)
if "sqlite" in django_settings.DATABASES["default"]["ENGINE"]:
    django_settings.DATABASES["default"]["NAME"] = Path(_DATA_DIR, "db.sqlite3")
    django_settings.DATABASES["default"]["TEST"]["NAME"] = Path(_DATA_DIR, "test.sqlite3")

# Passwords are hashed as on a site, in fewer rounds: a log-in costs half a second for nothing else.
django_settings.PASSWORD_HASHERS = ["tests.hashing.FewRounds"]

# Static files are looked up when they are asked for. Otherwise each test client goes through all of
# them before its first page, which takes ten times as long as the page.
django_settings.WHITENOISE_AUTOREFRESH = True

# How long one example takes says more about what else the machine runs than about the code.
hypothesis_settings.register_profile("evalsite", deadline=None)
hypothesis_settings.load_profile("evalsite")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data kept beside the checkout; tests that need it skip without it."""
    if not SHARED.is_dir():
        pytest.skip("needs the reference data directory ../shared beside the checkout")
    return SHARED


REFERENCE_ROWS = {
    "passk": 109,
    "invalid": 5,
    "task_score": 8,
    "mean_fraction": 1,
    "aggregate": 24,
    "aggregate_pooled_trap": 1,
    "timeout_policy": 4,
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
    """Rows of exact statistics by kind; fails if rows went missing."""
    text = (shared / "reference" / "passk.jsonl").read_text(encoding="utf-8")
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in map(json.loads, text.splitlines()):
        rows.setdefault(row["kind"], []).append(row)
    assert {kind: len(found) for kind, found in rows.items()} == REFERENCE_ROWS
    return rows


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """The strongest sandbox of this machine."""
    found = Sandbox("tests")
    found.ensure()
    return found


@pytest.fixture(scope="session")
def broker_server() -> Iterator[str]:
    """URL of a broker that this test session started."""
    from evalsite import broker

    command = broker.command()
    process = broker.start(command)
    yield command.url
    broker.stop(process)


@pytest.fixture
def broker_url(broker_server: str, settings: Settings) -> str:
    """URL of an empty broker, used by everything that asks the settings for one."""
    with redis.Redis.from_url(broker_server) as client:
        client.flushall()
    settings.REDIS_URL = broker_server
    return broker_server


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the hundreds of interpreters that tests start compile each module once.

    Where the environment forbids to keep that beside the code, it is kept for the session. The
    session's own workers are started before, as what they load is compiled already.
    """
    if not is_xdist_controller(session) and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(os.environ["EVALSITE_CACHE_DIR"], "pyc")


def pytest_collection_finish() -> None:
    """Have no collection of garbage go through what is loaded by now, and stays.

    That takes a fifth of a second, and statsmodels collects in every call.
    """
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Browser tests are skipped without Chromium: say how many ran, so that none is noticed."""
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    ran = sum(report.when == "call" and "browser" in report.keywords for report in reports)
    terminalreporter.write_line(f"browser tests run: {ran}")
