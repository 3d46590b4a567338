"""Grade the reference cases under several conditions and print rows x conditions.

Three times in a row, once with other processes loading every core, once on the weakest tier.
Exits 1 on any miss, 0 when every row has its outcome and score everywhere, and 0 with a note
where the reference data is absent.

    python tests/cases.py [CASES.jsonl]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases" / "grader_cases.jsonl"


@contextmanager
def loaded_cores() -> Iterator[None]:
    """Keep every core busy with other processes."""
    busy = [
        subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
        for process in busy:
            process.wait()


def grade(cases: Path, *options: str) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        command = [sys.executable, "-m", "grading.engine", "--cases", str(cases)]
        subprocess.run([*command, "--out", str(out), *options], cwd=ROOT, check=False)
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return {row["id"]: row for row in rows}


def conditions(cases: Path) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    for number in (1, 2, 3):
        yield f"run {number}", grade(cases)
    with loaded_cores():
        yield "loaded", grade(cases)
    yield "rlimit", grade(cases, "--tier", "rlimit")


def shown(row: dict[str, Any] | None, expected: dict[str, Any]) -> tuple[bool, str]:
    """Whether a row is right, and what to print for it."""
    if row is None:
        return False, "MISSING"
    score = row.get("score")
    right = (
        row["exit_code"] == expected["expected_exit"]
        and score is not None
        and abs(score - expected["expected_score"]) < 0.001
    )
    return right, "ok" if right else f"{row['exit_code']} {score}"


def main(arguments: list[str]) -> int:
    cases = Path(arguments[0]) if arguments else CASES
    if not cases.exists():
        print(f"no cases at {cases}: nothing was graded")
        return 0
    expected = [json.loads(line) for line in cases.read_text(encoding="utf-8").splitlines()]
    columns = list(conditions(cases))
    width = max(len(row["id"]) for row in expected)
    print("case".ljust(width), *(name.ljust(8) for name, _ in columns))
    misses = 0
    for row in expected:
        cells = [shown(rows.get(row["id"]), row) for _, rows in columns]
        misses += sum(not right for right, _ in cells)
        print(row["id"].ljust(width), *(text.ljust(8) for _, text in cells))
    print(f"{len(expected)} rows x {len(columns)} conditions, {misses} misses")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
