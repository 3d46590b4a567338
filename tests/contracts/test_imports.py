"""Which way imports run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_import_contracts_hold() -> None:
    script = Path(sys.executable).with_name("lint-imports")
    assert "0 broken" in run(str(script), "--no-cache")


def test_the_engine_needs_neither_django_nor_numpy() -> None:
    code = (
        "import importlib, pkgutil, sys, grading.engine as engine\n"
        "names = [m.name for m in pkgutil.walk_packages(engine.__path__, 'grading.engine.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__'): importlib.import_module(name)\n"
        "print(len(names), sorted({'django', 'numpy', 'rq', 'redis'} & set(sys.modules)))"
    )
    count, found = run(sys.executable, "-c", code).split(" ", 1)
    assert int(count) > 10
    assert found.strip() == "[]"


def test_the_supervisor_starts_without_django() -> None:
    code = "import sys, evalsite.supervisor; print('django' in sys.modules)"
    assert run(sys.executable, "-c", code).strip() == "False"
