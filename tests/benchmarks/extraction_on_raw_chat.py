"""Count how many of 1,148 raw chat answers pass HumanEval's own check after extraction.

Runs each program in a plain fresh interpreter (no sandbox) and compares with the stored
per-answer verdicts of five other rules. The answers are real models' replies; run it on a
machine where that is acceptable. Needs the reference data directory beside the checkout:

    .venv/bin/python tests/benchmarks/extraction_on_raw_chat.py [--show]
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BAR = 895
LIMIT_S = 10

sys.path.insert(0, str(ROOT))

from grading.engine.program import build_program  # noqa: E402
from grading.engine.task import Generation, Task  # noqa: E402


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def answers() -> Iterator[tuple[str, str, str]]:
    """(set, task id, raw reply): the last reply of each row, as the reference took it."""
    for path in sorted((SHARED / "data/gen_mapcoder_raw_chat").glob("HumanEval_*.jsonl.gz")):
        name = path.name.removeprefix("HumanEval_").removesuffix(".jsonl.gz")
        for row in rows(path):
            replies = row["responses"]
            yield f"map_{name}", row["task_id"], replies[-1] if replies else ""


def passes(program: str, problem: dict[str, Any]) -> bool:
    text = f"{program}\n{problem['test']}\ncheck({problem['entry_point']})\nprint('pa' + 'ss')\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            ended = subprocess.run(
                [sys.executable, "-I", str(file)],
                capture_output=True,
                timeout=LIMIT_S,
                cwd=folder,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return False
    return ended.returncode == 0 and ended.stdout.rstrip().endswith(b"pass")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print what another rule would pass")
    show = parser.parse_args().show
    problems = {
        row["task_id"]: row for row in rows(SHARED / "data/tasks_humaneval/HumanEval.jsonl.gz")
    }
    reference_file = SHARED / "reference/verdicts/extraction_raw_chat_humaneval.jsonl"
    reference = {
        (row["set"], row["task_id"]): row
        for row in map(json.loads, reference_file.read_text().splitlines())
    }

    def one(answer: tuple[str, str, str]) -> tuple[str, str, str, bool]:
        group, task_id, text = answer
        problem = problems[task_id]
        task = Task((), task_id, problem["prompt"], entry_points=(problem["entry_point"],))
        program = build_program(task, Generation(text))
        return group, task_id, program.extraction.rule, passes(program.text, problem)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, answers()))
    passed = sum(result[3] for result in results)
    print(f"{passed} of {len(results)} pass; the bar is {BAR}")
    print("by rule:", dict(Counter(result[2] for result in results)))
    for group, task_id, rule, true in results:
        if show and reference[group, task_id]["any_rule"] != true:
            print(f"{group} {task_id} [{rule}]: {'passes only here' if true else 'lost here'}")
    return 0 if passed >= BAR and len(results) == len(reference) else 1


if __name__ == "__main__":
    sys.exit(main())
