"""Time and memory of the report on a large upload: 500,000 samples in about 200 MB, as lines and
as one JSON document.

.venv/bin/python tests/benchmarks/upload_report.py [SAMPLES]

Each file is read in a process of its own, so that its peak memory is that of this reading; what
the imports and the benchmark itself take is not counted.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

TASKS = 164
SAMPLES = 500_000
PROGRAM = (
    "def f{0}(x):\n    total = 0\n" + "    total += x * 2 - x  # step\n" * 10 + "    return x\n"
)
LIMIT_S, LIMIT_BYTES = 20, 100 * 1024**2


def write_lines(file: BinaryIO, samples: int) -> None:
    for number in range(samples):
        task = number % TASKS
        row = {"task_id": f"Tide/{task}", "solution": PROGRAM.format(task)}
        file.write(json.dumps(row).encode() + b"\n")


def write_array(file: BinaryIO, samples: int) -> None:
    """An array of objects with ten samples each."""
    file.write(b"[")
    for number in range(samples // 10):
        task = number % TASKS
        row = {"question_id": f"Tide/{task}", "code_list": [PROGRAM.format(task)] * 10}
        file.write(b",\n" * (number > 0) + json.dumps(row).encode())
    file.write(b"]")


LAYOUTS: dict[str, Callable[[BinaryIO, int], None]] = {
    "JSON Lines": write_lines,
    "JSON array": write_array,
}


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(path: str) -> None:
    import django

    django.setup()
    from grading.engine.task import Task
    from grading.intake.report import checked
    from grading.intake.task_table import TaskTable

    table = TaskTable(
        tuple(
            Task((f"f{task}(1) == 1",), task_id=f"Tide/{task}", prompt=f"def f{task}(x):\n")
            for task in range(TASKS)
        )
    )
    before, start, begun = peak_bytes(), time.perf_counter(), time.process_time()
    with open(path, "rb") as stream:
        report = checked(stream, "upload", table).report()
    took, grown = time.perf_counter() - start, peak_bytes() - before
    busy = time.process_time() - begun
    verdict = "ok" if took < LIMIT_S and grown < LIMIT_BYTES else "OVER THE LIMIT"
    print(
        f"{report.samples:>10,} samples {report.problem_count:>4} problems {took:8.1f} s "
        f"({busy:.1f} s of a core) "
        f"{grown / 1024**2:8.1f} MiB more  {verdict}"
    )


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES
    with tempfile.TemporaryDirectory() as folder:
        for name, write in LAYOUTS.items():
            path = Path(folder, "upload")
            with path.open("wb") as file:
                write(file, samples)
            print(f"{name:12}{path.stat().st_size / 1e6:8.0f} MB", end="", flush=True)
            process = multiprocessing.get_context("spawn").Process(
                target=measure, args=(str(path),)
            )
            process.start()
            process.join()


if __name__ == "__main__":
    main()
