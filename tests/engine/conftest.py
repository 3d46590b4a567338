"""Fixtures of the engine's tests."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy
import pytest

from grading.engine.cells import Cells
from grading.engine.judges import Judges
from grading.engine.sandbox import Sandbox


@pytest.fixture(scope="session")
def scientific() -> Sandbox:
    """A sandbox whose processes can import this interpreter's own numpy and pandas."""
    packages = os.path.realpath(os.path.dirname(os.path.dirname(numpy.__file__)))
    found = Sandbox("scientific", env={"PYTHONPATH": packages, "OPENBLAS_NUM_THREADS": "1"})
    found.ensure()
    ready = found._get()
    view = replace(ready.view, extra=(packages,))
    python = [found.python, *ready.environment.flags]
    parts = ready.isolation, view, ready.hardening, python, ready.variables
    cells, judges = Cells(*parts, ready.turnstile), Judges(*parts)
    found._ready = replace(ready, view=view, cells=cells, judges=judges)
    return found
