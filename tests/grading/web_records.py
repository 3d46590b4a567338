"""Records as the pages show them: a small benchmark, people, submissions with verdicts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from grading import verdicts
from grading.accounts import roles
from grading.accounts.roles import Role
from grading.engine.limits import Limits
from grading.engine.outcome import (
    Extraction,
    Failure,
    Label,
    Outcome,
    Stream,
    TargetResult,
    Verdict,
)
from grading.models import (
    Benchmark,
    BenchmarkVersion,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
    Task,
)

PASSWORD = "a fine long password 42"
PROGRAM = "def longest(items):\n    best = items[0]\n    return best\n"
CHAT = f"Here it is:\n\n```python\n{PROGRAM}```\nTies go to the first.\n"
SECRET_TARGET = "assert longest(['secret argument']) == 'secret argument'"
TOKEN = "t" * 32

Judge = Callable[[Task, int], Verdict | str | None]


@lru_cache
def _hashed(password: str) -> str:
    """One slow hash for a whole session."""
    return make_password(password)


def person(
    name: str, *, staff: bool = False, superuser: bool = False, role: Role | None = None
) -> User:
    user = User.objects.create(
        username=name,
        password=_hashed(PASSWORD),
        is_staff=staff or superuser,
        is_superuser=superuser,
    )
    if role:
        roles.give(user, [role])
    return user


def page(client: Client, path: str, status: int = 200) -> str:
    """The text of a page, which must have this status."""
    answer = client.get(path)
    assert answer.status_code == status, path
    return answer.content.decode()


def benchmark(
    slug: str = "tidepool", *, tasks: int = 3, hidden: bool = False, published: bool = True
) -> BenchmarkVersion:
    owner = Benchmark.objects.create(slug=slug, title=slug.capitalize(), targets_hidden=hidden)
    version = BenchmarkVersion.objects.create(
        benchmark=owner, number=1, content_hash="0" * 64, published=published
    )
    for position in range(tasks):
        Task.objects.create(
            version=version,
            task_id=f"{owner.title}/{position}",
            slug=f"{owner.title}-{position}",
            position=position,
            prompt=f'def longest(items):\n    """Task {position}."""\n',
            targets=[SECRET_TARGET, "assert longest([1]) == 1", "assert longest([]) is None"],
            setup="",
            entry_points=["longest"],
            reference=PROGRAM,
            content_hash=f"{position:064d}",
            reference_verdict=verdict(Outcome.PASS).as_dict(),
        )
    return version


def verdict(outcome: Outcome, **changes: object) -> Verdict:
    """A verdict on three targets, plausible for its outcome; ``changes`` replace fields."""
    true = {Outcome.PASS: 3, Outcome.ASSERTION_FAIL: 2}.get(outcome, 0)
    details = ["", "", "IndexError: list index out of range"]
    asked = 0 if outcome is Outcome.SYNTAX_ERROR else 3
    facts: dict[str, object] = {
        "outcome": outcome,
        "passed": true,
        "total": 3,
        "targets": [
            TargetResult(
                index, index < true, Label.SEALED, "" if index < true else details[2], 0.004
            )
            for index in range(asked)
        ],
        "detail": "" if outcome is Outcome.PASS else f"detail of a {outcome.value}",
        "failure": _failure(outcome),
        "denied": [],
        "stdout": Stream(head="best so far: 2\n", size=15),
        "stderr": Stream(),
        "wall_s": 0.07,
        "cpu_s": 0.04,
        "peak_bytes": 11_900_000,
        "starved": False,
        "tier": "bwrap",
        "hardening": [],
        "python": "3.11.7",
        "limits": Limits().as_dict(),
        "extraction": Extraction("defines", 0, 1),
        "program": PROGRAM,
    }
    return Verdict(**(facts | changes))  # type: ignore[arg-type]


def _failure(outcome: Outcome) -> Failure | None:
    if outcome is Outcome.PASS:
        return None
    phases = {Outcome.SYNTAX_ERROR: "compile", Outcome.ERROR: "import"}
    exceptions = {
        Outcome.SYNTAX_ERROR: "SyntaxError",
        Outcome.ERROR: "NameError",
        Outcome.ASSERTION_FAIL: "IndexError",
    }
    return Failure(
        phase=phases.get(outcome, "target"),
        exception=exceptions.get(outcome, ""),
        message=f"message of a {outcome.value}",
        frames=[(2, "longest")],
    )


def mixed(task: Task, index: int) -> Verdict:
    """All five outcomes in turn."""
    return verdict(list(Outcome)[(task.position + index) % 5])


def submission(
    version: BenchmarkVersion,
    uploader: User,
    judge: Judge = mixed,
    *,
    n: int = 2,
    model: str = "Quillfish 8B",
    text: str = CHAT,
    private: bool = False,
) -> Submission:
    """Every task with ``n`` samples. ``judge`` gives a verdict, a platform failure or None."""
    row, _ = LanguageModel.objects.get_or_create(
        name=model, defaults={"slug": model.lower().replace(" ", "-")}
    )
    made = Submission.objects.create(
        version=version,
        language_model=row,
        uploader=uploader,
        visibility="private" if private else "public",
        file_name="quillfish.jsonl",
        file_hash="ab" * 32,
        sample_count=version.tasks.count() * n,
        settings={"temperature": 0.2},
    )
    chunk = Chunk.objects.create(
        submission=made,
        position=0,
        state=Chunk.State.RUNNING,
        token=TOKEN,
        worker="w1-77",
        lease_until=timezone.now() + timedelta(hours=1),
    )
    open_ = [
        _sample(made, chunk, task, index, text, judge(task, index)).state == Sample.State.QUEUED
        for task in version.tasks.all()
        for index in range(n)
    ]
    if not any(open_):
        Chunk.objects.filter(pk=chunk.pk).update(state=Chunk.State.DONE)
        Submission.objects.filter(pk=made.pk).update(
            state=Submission.State.DONE, finished_at=timezone.now()
        )
    made.refresh_from_db()
    return made


def _sample(
    made: Submission, chunk: Chunk, task: Task, index: int, text: str, ruling: Verdict | str | None
) -> Sample:
    sample = Sample.objects.create(submission=made, chunk=chunk, task=task, index=index)
    Generation.objects.create(sample=sample, text=text)
    if isinstance(ruling, Verdict):
        assert verdicts.record(sample.pk, TOKEN, ruling, "w1-77")
    elif ruling:
        for _ in range(3):
            verdicts.record_platform_failure(sample.pk, TOKEN, ruling)
    sample.refresh_from_db()
    return sample
