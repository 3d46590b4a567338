"""Grade every public generation set the product's own way and list the crash groups that form.

    python tests/benchmarks/crash_groups.py --data DIR            grade, or go on where it was
    python tests/benchmarks/crash_groups.py --data DIR --write    and docs/crash-groups.md anew
    python tests/benchmarks/crash_groups.py --data DIR --pairs    print pairs of samples to read

Imports the benchmarks, uploads every file, and has real workers grade them, with the verdict cache
as it is shipped, in a data directory of its own, which is kept. Stops with a note where the
reference data is absent.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

if TYPE_CHECKING:
    from grading.models import Submission

DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "crash-groups.md"


def main() -> int:
    options = _options()
    if not DATA.is_dir():
        print("crash groups: skipped, needs the reference data directory ../shared")
        return 0
    options.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["EVALSITE_DATA_DIR"] = str(options.data.resolve())
    os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"
    os.environ.setdefault("EVALSITE_LOG_LEVEL", "WARNING")
    import django

    django.setup()
    from benchmarks import groups_report

    grade_everything(options)
    if options.pairs:
        print(groups_report.pairs_text(groups_report.pairs()))
    if options.write:
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(
            groups_report.page(before, options.every, options.every_sample), encoding="utf-8"
        )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the instance's data directory")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="one task of N of each benchmark only"
    )
    parser.add_argument("--every-sample", action="store_true", help="of the largest set, too")
    parser.add_argument("--write", action="store_true", help="write docs/crash-groups.md")
    parser.add_argument("--pairs", action="store_true", help="print the pairs to read")
    return parser.parse_args()


def grade_everything(options: argparse.Namespace) -> None:
    """Return when every sample has a verdict; what was done before is not done again."""
    from evalsite import progress
    from evalsite.console import Console
    from evalsite.graders import Graders

    console = Console(sys.stderr)
    with ExitStack() as stack:
        graders = Graders(stack, "crash groups", console.log)
        _import_tasks(options.data, options.every)
        graders.ensure()
        progress.wait(_uploaded(options.every_sample), console, graders.ensure)


def _import_tasks(directory: Path, every: int) -> None:
    from benchmarks.public_runs import CHECKS, write_checks, write_share
    from django.core.management import call_command

    from grading.models import Benchmark

    call_command("migrate", verbosity=0)
    files = {name: directory / f"{name}.jsonl" for name in ("humaneval", "mbpp", CHECKS)}
    write_share(DATA / "tasks_humaneval/HumanEval.jsonl.gz", files["humaneval"], every)
    write_share(DATA / "tasks_mbpp/mbpp.jsonl.gz", files["mbpp"], every)
    write_checks(DATA, files[CHECKS], every)
    for name in files.keys() - set(Benchmark.objects.values_list("slug", flat=True)):
        call_command("import_benchmark", str(files[name]), slug=name)


def _uploaded(every_sample: bool) -> list[Submission]:
    from benchmarks.public_runs import runs
    from django.contrib.auth import get_user_model

    from grading import uploads
    from grading.intake.fields import Choices
    from grading.models import BenchmarkVersion

    user, _ = get_user_model().objects.get_or_create(username="admin", is_staff=True)
    versions = {
        version.benchmark.slug: version
        for version in BenchmarkVersion.objects.select_related("benchmark")
    }
    found = []
    for run in runs(DATA, every_sample):
        # Other rows than the benchmark's, such as those in another language, are left out.
        with run.file.open("rb") as stream:
            found.append(
                uploads.accept(
                    stream,
                    run.file.name,
                    versions[run.benchmark],
                    run.model,
                    user,
                    good_lines_only=True,
                    choices=Choices(reading=run.reading),
                ).submission
            )
    return found


if __name__ == "__main__":
    sys.exit(main())
