"""The whole attack suite as a table: python tests/attacks/run.py --all

Every row of the reference data and of this suite, in a throw-away host each, on every tier, as an
unprivileged user and as root of a namespace. First, each kind of observation is shown to be made
where nothing protects. Exit status 1 for a forged pass anywhere, an observation on a tier that
must show none, or a kind that is never observed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.attacks import forgeries, suite  # noqa: E402
from tests.attacks.cases import read_rows  # noqa: E402
from tests.attacks.fake_host import NoFakeHost, Setting  # noqa: E402


def main() -> int:
    options = _parser().parse_args()
    shared = ROOT.parent / "shared"
    if not shared.is_dir():
        print("without ../shared beside the checkout: only this suite's own attacks")
    suite.prepare()
    rows = [row for row in read_rows(shared) if not options.row or row["id"] in options.row]
    problems = []
    if options.all or options.kinds:
        problems += show_kinds(shared)
    for setting in chosen(options):
        problems += run_setting(setting, rows, options.workers)
    if options.all or options.forgeries:
        problems += run_forgeries(options.forgeries or forgeries.FULL, options.workers)
    problems += [f"left behind: {command}" for command in suite.left_behind()]
    for problem in problems:
        print(f"FAILED {problem}")
    print("attacks: " + (f"{len(problems)} problems" if problems else "all held"))
    return 1 if problems else 0


def chosen(options: argparse.Namespace) -> list[Setting]:
    tiers = options.tier or suite.TIERS
    if options.refuse:
        return [Setting(tier, refused=tuple(options.refuse)) for tier in tiers]
    if not (options.all or options.tier or options.row):
        return []
    return [setting for setting in suite.SETTINGS if setting.tier in tiers]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run the attack suite and print what was seen.")
    parser.add_argument("--all", action="store_true", help="kinds, rows and forgeries")
    parser.add_argument("--kinds", action="store_true", help="show each kind of observation")
    parser.add_argument("--forgeries", type=int, metavar="N", help="generated forgeries")
    parser.add_argument("--tier", action="append", choices=suite.TIERS)
    parser.add_argument("--refuse", action="append", choices=["landlock", "seccomp"])
    parser.add_argument("--row", action="append", metavar="ID")
    parser.add_argument("--workers", type=int, default=2)
    return parser


def show_kinds(shared: Path) -> list[str]:
    shown = suite.kinds_shown(read_rows(shared))
    if not suite.core_files_are_local():
        print("core_file cannot be shown: this host's core_pattern leads out of the directory")
        del shown["core_file"]
    print(f"unprotected: {sum(shown.values())} of {len(shown)} kinds of observation are made")
    return [f"{kind} is never observed, even unprotected" for kind in shown if not shown[kind]]


def run_setting(setting: Setting, rows: list[dict], workers: int) -> list[str]:
    started = time.monotonic()
    try:
        seen = suite.run_rows(setting, rows, workers)
    except NoFakeHost as problem:
        print(f"{setting}: not available here: {problem}")
        return []
    for line in suite.summary(seen):
        print(line)
    print(f"    {time.monotonic() - started:.0f} s", flush=True)
    return suite.failures(seen)


def run_forgeries(count: int, workers: int) -> list[str]:
    tally = forgeries.run(count, workers)
    print(tally, flush=True)
    return tally.problems()


if __name__ == "__main__":
    sys.exit(main())
