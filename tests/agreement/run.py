"""Grade real generations of public data sets and compare with verdicts that others gave them.

    python tests/agreement/run.py                  a fixed tenth of the two largest sets
    python tests/agreement/run.py --all --write    everything, and docs/agreement.md anew

Exits 1 where a bar is missed, 0 with a note where the reference data is absent. The programs are
real models'; they run in the sandbox only.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from agreement import report, sets  # noqa: E402
from agreement.causes import cause  # noqa: E402
from agreement.results import Result, Store, grade_all  # noqa: E402

BAR = 0.998
REPLIES_BAR = 895


@dataclass(frozen=True, slots=True)
class Group:
    """One set: how many answers were compared, and how many are equal."""

    name: str
    samples: int
    answers: int
    equal: int


def main() -> int:
    options = _options()
    if not sets.VERDICTS.is_dir():
        print("agreement: skipped, needs the reference data directory ../shared")
        return 0
    cases = [case for case in sets.every_case() if options.all or case.in_tenth]
    cases = [case for case in cases if not options.only or options.only in case.group]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(options.results or Path(folder, "results.jsonl"))
        results = store.fill(cases, options.workers)
    groups = _groups(cases, results)
    differences = _differences(cases, results, options.workers)
    replies = None if options.only else _replies(options.workers)
    text = report.render(groups, differences, replies, whole=options.all)
    print(text)
    if options.write:
        (ROOT / "docs" / "agreement.md").write_text(text, encoding="utf-8")
    return 1 if _missed(groups, replies) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="every sample of the largest sets, too")
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--write", action="store_true", help="write docs/agreement.md")
    parser.add_argument("--results", type=Path, help="keep results here, and go on from them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def _groups(cases: list[sets.Case], results: list[Result]) -> list[Group]:
    counted: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for case, result in zip(cases, results, strict=True):
        counts = counted[case.group]
        counts[0] += 1
        counts[1] += len(case.theirs)
        counts[2] += result.equal(case)
    return [Group(name, *counts) for name, counts in counted.items()]


def _differences(
    cases: list[sets.Case], results: list[Result], workers: int
) -> list[report.Difference]:
    """Where ours differs from a fresh interpreter's verdict or from the one in the data."""
    found = [
        (case, result)
        for case, result in zip(cases, results, strict=True)
        if not result.agrees(case) or _against_peer(case, result)
    ]
    longer = grade_all([case for case, _ in found], workers, timeout_s=30.0)
    return [
        report.Difference(
            case,
            result,
            at_30_s,
            cause(case, result, at_30_s, result.agrees(case)),
            fresh=not result.agrees(case),
        )
        for (case, result), at_30_s in zip(found, longer, strict=True)
    ]


def _against_peer(case: sets.Case, result: Result) -> bool:
    return case.peer is not None and not case.per_target and case.peer != result.passed


def _replies(workers: int) -> tuple[int, int]:
    """(passed, all) of the raw chat replies, code taken out of them by the engine."""
    cases = [
        sets.Case("replies", name, "0", task, generation, (True,))
        for name, task, generation in sets.raw_replies()
    ]
    results = list(grade_all(cases, workers))
    return sum(result.passed for result in results), len(results)


def _missed(groups: list[Group], replies: tuple[int, int] | None) -> bool:
    """All verdicts together, all targets of the HumanEval and MBPP fractions, and the checks."""
    missed = replies is not None and replies[0] < REPLIES_BAR
    for members in report.kinds(groups).values():
        answers = sum(group.answers for group in members)
        missed = missed or sum(group.equal for group in members) < BAR * answers
    return missed


if __name__ == "__main__":
    sys.exit(main())
