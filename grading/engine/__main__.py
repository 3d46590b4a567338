"""Grade a file of cases: python -m grading.engine --cases IN.jsonl --out OUT.jsonl"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from grading.engine.cases import BadCase, Case, grade_case, read_cases
from grading.engine.child import conceal
from grading.engine.isolation import TIERS
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.spread import spread


def main(arguments: list[str] | None = None) -> int:
    """0 when every case has a verdict, 1 where the platform failed, 2 for bad input."""
    options = _parser().parse_args(arguments)
    conceal()
    try:
        with _input(options.cases) as lines:
            cases = read_cases(lines)
        sandbox = Sandbox(
            "cases", options.package, base_python=options.python, isolation=options.tier
        )
        sandbox.ensure()
        with _output(options.out) as out:
            failed = _grade_all(cases, sandbox, options.workers, out)
    except (BadCase, PlatformError, OSError) as problem:
        print(f"{options.cases}: {problem}", file=sys.stderr)
        return 2
    where = f"tier {sandbox.tier}, Python {sandbox.python_version}"
    print(f"{len(cases)} cases graded on {where}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m grading.engine",
        description="Grade a file of cases in the sandbox, without server or database.",
        epilog="example: python -m grading.engine --cases cases.jsonl --out verdicts.jsonl",
    )
    parser.add_argument("--cases", required=True, help="JSON Lines file; - reads standard input")
    parser.add_argument("--out", default="-", help="where verdicts go; - is standard output")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tier", default="auto", choices=["auto", *TIERS])
    parser.add_argument(
        "--python", metavar="SPEC", help="interpreter: a version, a path or a name (default: this)"
    )
    parser.add_argument(
        "--package", action="append", default=[], metavar="REQUIREMENT", help="may be repeated"
    )
    return parser


def _grade_all(cases: list[Case], sandbox: Sandbox, workers: int, out: TextIO) -> int:
    """Write one row per case, in order; returns how many the platform failed."""
    failed = 0
    for row in spread(grade_case, cases, sandbox, workers):
        failed += row["exit_code"] is None
        out.write(json.dumps(row) + "\n")
        out.flush()
    return failed


@contextmanager
def _input(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield sys.stdin
        return
    with open(name, encoding="utf-8", newline="\n") as file:
        yield file


@contextmanager
def _output(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield sys.stdout
        return
    with open(name, "w", encoding="utf-8") as file:
        yield file


if __name__ == "__main__":
    sys.exit(main())
