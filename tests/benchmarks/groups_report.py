"""What a database of graded samples says of its crash groups: the page, and pairs to read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from agreement.report import cell
from django.db.models import Count

from grading.engine.outcome import Outcome
from grading.models import Attempt, CrashGroup, Fingerprint, Sample, Submission
from grading.queries import evidence, triage

SHOWN = 30
PAIRS = 20
SEED = 21
# Written by who has read the pairs, and kept when the page is made anew.
READ = "## Twenty pairs, read"

INTRO = """# Crash groups of the public sets

Made by `make crash-groups`; do not edit by hand above *{read}*.

Every generation set of the reference data that has tests, uploaded file by file and graded by the
site's own workers, with the verdict cache, so that the groups formed as they do in use
([triage.md](triage.md)).
{share}
A model here is what a file or its rows name; the prompt's form is no part of it.
"""


def page(before: str, every: int, every_sample: bool) -> str:
    """The document as Markdown, with what ``before`` says of the pairs."""
    tasks = "All tasks" if every == 1 else f"One task in {every} of each benchmark"
    samples = "all" if every_sample else "the first twenty"
    share = f"{tasks}; of CodeGen's hundred samples a task {samples}, of the others all."
    intro = INTRO.format(read=READ.removeprefix("## "), share=share)
    read = before[before.index(READ) :] if READ in before else f"{READ}\n"
    return "\n".join([intro, *_summary(), *_top(), *_sizes(), read])


def _summary() -> list[str]:
    samples = Sample.objects.count()
    outcomes = dict(
        Sample.objects.filter(current_attempt__isnull=False)
        .order_by()
        .values_list("current_attempt__outcome")
        .annotate(n=Count("pk"))
    )
    runs = Attempt.objects.filter(repeats=None).exclude(kind=Attempt.Kind.REGRADE).count()
    mix = ", ".join(f"{outcomes.get(one.value, 0):,} {one.value}" for one in Outcome)
    failed = Sample.objects.filter(state=Sample.State.PLATFORM_FAILED).count()
    waiting = Sample.objects.filter(state=Sample.State.QUEUED).count()
    left = f" {waiting:,} samples were not graded yet." if waiting else ""
    models = Submission.objects.aggregate(n=Count("language_model", distinct=True))["n"]
    return [
        f"- {Submission.objects.count():,} submissions of {models:,} models, {samples:,} samples, "
        f"{runs:,} programs run; {cell(mix)}, {failed:,} failed by the platform.{left}",
        f"- {CrashGroup.objects.count():,} groups.",
        "",
    ]


def _rows() -> list[Any]:
    return list(triage.groups(triage.Filters(state=triage.ANY_STATE, sort="samples")))


def _top() -> list[str]:
    shown = _rows()[:SHOWN]
    hints = evidence.suggestions(shown)
    parts = dict(Fingerprint.objects.filter(group__in=shown).values_list("group_id", "parts"))
    lines = [
        f"## The {SHOWN} largest",
        "",
        "| | group | grouped by | samples | models | tasks | suggestion |",
        "|--:|---|---|--:|--:|--:|---|",
    ]
    for number, group in enumerate(shown, 1):
        by = "; ".join(f"{word} {value}" for word, value in parts[group.pk])
        hint = hints.get(group.pk)
        said = f"{hint.word} {hint.reason}" if hint else ""
        lines.append(
            f"| {number} | {cell(group.title)} | {cell(by)} | {group.samples:,} "
            f"| {group.models} | {group.tasks} | {cell(said)} |"
        )
    return [*lines, ""]


def _sizes() -> list[str]:
    """How many groups of each kind there are, and how large."""
    lines = ["## By kind", "", "| kind | groups | of one sample | samples | largest |"]
    lines.append("|---|--:|--:|--:|--:|")
    rows = _rows()
    for kind in triage.KINDS:
        sizes = [group.samples for group in rows if group.kind == kind]
        if sizes:
            lines.append(
                f"| {kind} | {len(sizes):,} | {sizes.count(1):,} | {sum(sizes):,} "
                f"| {max(sizes):,} |"
            )
    return [*lines, ""]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of one group with different programs."""

    group: CrashGroup
    one: Sample
    other: Sample


def pairs(count: int = PAIRS, seed: int = SEED) -> list[Pair]:
    """Always the same of one database: every sample counts alike, and each kind for its share.

    The samples of groups with two programs or more stand in a row by kind and size of their
    group, are cut into ``count`` equal stretches, and from each one sample is drawn and
    another with another program from its group.
    """
    dice = random.Random(seed)
    row = _distinct()
    cuts = [len(row) * number // count for number in range(count + 1)]
    found = []
    for start, end in pairwise(cuts):
        group, own = row[dice.randrange(start, end)]
        others = [pk for held, pk in row if held == group and pk != own]
        found.append(
            Pair(CrashGroup.objects.get(pk=group), _sample(own), _sample(dice.choice(others)))
        )
    return found


def _distinct() -> list[tuple[int, int]]:
    """(group, sample) of one sample for each program of each group of two programs or more."""
    rows = (
        Sample.objects.filter(fingerprint__isnull=False, current_attempt__isnull=False)
        .order_by("pk")
        .values_list(
            *("fingerprint__group", "fingerprint__kind"),
            *("current_attempt__run_key", "pk"),
        )
    )
    groups: dict[tuple[str, int], dict[str, int]] = {}
    for group, kind, key, pk in rows:
        groups.setdefault((kind, group), {}).setdefault(key, pk)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))
    return [
        (group, pk)
        for (_, group), programs in ordered
        if len(programs) > 1
        for pk in programs.values()
    ]


def _sample(pk: int) -> Sample:
    return Sample.objects.select_related(
        *("submission__language_model", "task", "current_attempt__text", "fingerprint")
    ).get(pk=pk)


def pairs_text(found: Sequence[Pair]) -> str:
    """The pairs with all that is known of both, to be read."""
    texts = []
    for number, pair in enumerate(found, 1):
        texts.append(f"===== pair {number}: {pair.group.title!a} =====")
        texts += [_record(pair.one), _record(pair.other)]
    return "\n".join(texts)


def _record(sample: Sample) -> str:
    attempt = sample.current_attempt
    assert attempt is not None and sample.fingerprint is not None
    missed = [row for row in attempt.text.targets if not row["true"]]
    first = missed[0] if missed else {}
    target = sample.task.targets[first["index"]] if first else ""
    lines = [
        f"--- {sample.task.task_id} #{sample.index}, {sample.submission.language_model.name!a}",
        f"parts: {sample.fingerprint.parts!a}",
        f"{attempt.outcome} {attempt.passed}/{attempt.total}: {attempt.detail!a}",
        f"failure: {attempt.text.failure!a}",
        f"first missed: {first!a}",
        f"target: {str(target)[-700:]!a}",
        *(f"    {line!a}"[:160] for line in attempt.text.program.split("\n")[:60]),
    ]
    return "\n".join(lines)
