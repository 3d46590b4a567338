"""Shared fixtures. Every test session works in a data directory of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

# Before settings are read: no test touches the checkout's own data.
_DATA_DIR = tempfile.mkdtemp(prefix="evalsite-tests-")
atexit.register(shutil.rmtree, _DATA_DIR, ignore_errors=True)
os.environ["EVALSITE_DATA_DIR"] = _DATA_DIR

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data kept beside the checkout; tests that need it skip without it."""
    if not SHARED.is_dir():
        pytest.skip("needs the reference data directory ../shared beside the checkout")
    return SHARED
