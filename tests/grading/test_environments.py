"""Environments of benchmark versions: rules, storing, grading in them, pages."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db.models import ProtectedError
from django.test import Client
from pytest_django import Settings

from grading import benchmarks, chunks, environment_rules, environments, grader, jobs
from grading.engine import canary
from grading.engine.outcome import Outcome
from grading.engine.records import TaskRecord
from grading.models import Attempt, BenchmarkVersion, Environment, Submission, Task
from tests.grading import web_records
from tests.grading.pipeline_records import stored_submission
from tests.packages import make_uv, make_wheel

pytestmark = pytest.mark.django_db

PROGRAM = "import tiny\ndef add(a, b):\n    return a + b + tiny.VALUE - 42\n"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canaries_due: None) -> Iterator[Path]:
    """A host that has built nothing yet, with an installer that takes no time."""
    make_uv(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("EVALSITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(grader, "_sandboxes", {})
    yield tmp_path
    for found in grader._sandboxes.values():
        found.environment.release()


def science(**changes: Any) -> Environment:
    fields = {"python": "3.12", "packages": ["numpy==2.1.0", "pandas"]} | changes
    return Environment.objects.create(name="science", **fields)


def version_in(environment: Environment | None, slug: str = "mine") -> BenchmarkVersion:
    records = [TaskRecord("T/0", prompt="Write f(x).", targets=("f(1) == 1",))]
    return benchmarks.import_version(slug, "Mine", records, environment=environment).version


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("environment", *words, stdout=out, stderr=out)
    return out.getvalue()


# --- rules ----------------------------------------------------------------------------------------


def test_requirements_are_lines_without_comments() -> None:
    text = (
        "# all\nnumpy==2.1.0 \\\n    --hash=sha256:00\n\npandas  # newest\n-f /wheels\na @ x#y=1\n"
    )
    assert environment_rules.requirements(text) == [
        "numpy==2.1.0  --hash=sha256:00",
        "pandas",
        "-f /wheels",
        "a @ x#y=1",
    ]


@pytest.mark.parametrize(
    ("text", "size"),
    [("8G", 8 << 30), ("512 MiB", 512 << 20), ("300000000", 300_000_000), ("none", 0),
     ("default", None)],
)  # fmt: skip
def test_address_spaces(text: str, size: int | None) -> None:
    assert environment_rules.address_space(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "8X", "1.5G"])
def test_what_is_no_address_space(text: str) -> None:
    with pytest.raises(ValueError, match="use a size such as 8G"):
        environment_rules.address_space(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"packages": "numpy"},
        {"packages": [1]},
        {"packages": ["-r other.txt"]},
        {"provision": ["\0"]},
        {"variables": []},
        {"variables": {"A": 1}},
        {"variables": {"A=B": "1"}},
        {"address_space": 1},
    ],
)
def test_what_cannot_be_stored(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        environments.store("science", changes)
    assert list(caught.value.message_dict) == list(changes)
    assert not Environment.objects.exists()


def test_the_words_for_it() -> None:
    def words(**fields: Any) -> str:
        return Environment(**fields).summary

    assert words(python="3.12") == "Python 3.12"
    assert words(packages=["a", "--index-url https://me:pw@index", "b"]) == (
        "the grader’s Python with a, b"
    )
    assert words(python="/opt/py", packages=list("abcde")) == "/opt/py with a, b, c and 2 more"


# --- versions -------------------------------------------------------------------------------------


def test_another_environment_is_another_version() -> None:
    bare, science_ = version_in(None), version_in(science())
    assert (bare.number, science_.number) == (1, 2)
    assert bare.content_hash != science_.content_hash
    other = Environment.objects.create(name="o", python="3.12", packages=["numpy==2.1.0", "pandas"])
    # A name changes no result.
    assert version_in(other) == science_
    records = [TaskRecord("T/0", prompt="p", targets=("f(1) == 1",))]
    hashes = {
        benchmarks.hash_of(records, Environment(**fields))
        for fields in (
            {},
            {"python": "3.12"},
            {"packages": ["a"]},
            {"provision": ["a"]},
            {"variables": {"a": "b"}},
            {"address_space": 0},
        )
    }
    assert len(hashes | {benchmarks.hash_of(records)}) == 7


def test_a_used_environment_is_frozen() -> None:
    environment = science()
    environments.store("science", {"python": "3.13"})
    environment.refresh_from_db()
    version_in(environment)
    assert environments.store("science", {"python": "3.13"}) == environment
    with pytest.raises(environments.Frozen, match=r"Mine version 1 uses the environment science"):
        environments.store("science", {"python": "3.12"})
    with pytest.raises(ProtectedError):
        environment.delete()


def test_the_admin_freezes_it_too(client: Client) -> None:
    client.force_login(web_records.person("ada", superuser=True))
    environment = science()
    page = f"/admin/grading/environment/{environment.pk}/change/"
    assert 'name="packages"' in client.get(page).content.decode()
    assert b"Write a list of strings" in client.post(page, {"name": "s", "packages": '"a"'}).content
    version_in(environment)
    assert 'name="packages"' not in client.get(page).content.decode()
    client.post(page, {"name": "renamed", "packages": "[]", "python": "3.8"})
    environment.refresh_from_db()
    assert (environment.name, environment.python) == ("renamed", "3.12")


# --- grading --------------------------------------------------------------------------------------


def submission_in(environment: Environment, text: str = PROGRAM) -> Submission:
    submission = stored_submission(tasks=1, per_task=2, text=text)
    BenchmarkVersion.objects.filter(pk=submission.version_id).update(environment=environment)
    return submission


def in_a_fork(work: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def grade(submission: Submission) -> list[Attempt]:
    chunk = submission.chunks.get()
    chunks.ring(chunk.pk)
    jobs.grade_chunk(chunk.pk)
    return list(Attempt.objects.order_by("pk"))


@pytest.mark.sandbox
def test_samples_are_graded_in_the_environment_of_their_version(
    host: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VERDICT_CACHE = False
    checked: list[str] = []
    check = canary.check
    monkeypatch.setattr(canary, "check", lambda box: (checked.append(box.name), check(box)))
    environment = science(python="", packages=[make_wheel(host)], address_space=0)
    first, second = grade(submission_in(environment))
    assert (first.outcome, second.outcome) == ("pass", "pass"), first.detail
    found = grader.sandbox_of(environment)
    assert first.environment == second.environment == found.environment.stamp != ""
    assert first.text.limits["address_space_bytes"] is None
    assert checked == ["science"]
    grade(submission_in(environment))
    assert checked == ["science"]
    bare = grade(stored_submission(tasks=1, per_task=1, text=PROGRAM))[-1]
    assert (bare.outcome, bare.environment, checked) == ("error", "", ["science", "host"])


@pytest.mark.sandbox
def test_the_lease_is_renewed_while_the_environment_is_built(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew = chunks.renew

    def renewing(lease: chunks.Lease) -> bool:
        (host / "go").touch()
        return renew(lease)

    monkeypatch.setattr(jobs, "RENEW_S", 0.0)
    monkeypatch.setattr(chunks, "renew", renewing)
    environment = science(python="", packages=[f"hold @ {host}", make_wheel(host)])
    assert {one.outcome for one in grade(submission_in(environment))} == {"pass"}


def test_what_cannot_be_built_holds_the_chunk_with_the_installers_words(host: Path) -> None:
    submission = submission_in(science(python="", packages=["fail"]))
    assert grade(submission) == []
    chunk = submission.chunks.get()
    assert (chunk.state, chunk.token) == ("queued", "")
    for sample in submission.samples.all():
        assert (sample.state, sample.losses) == ("queued", 0)
        assert sample.platform_failure.startswith("Held: cannot install the packages")
        assert "no such package" in sample.platform_failure
        assert "build.log" in sample.platform_failure


def test_a_site_for_others_runs_nothing_in_a_weak_one(
    host: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FOR_OTHERS, settings.ALLOW_UNSAFE = True, False
    monkeypatch.setattr("grading.engine.sandbox.safe_for_strangers", lambda *_: False)
    submission = submission_in(science(python="", packages=[make_wheel(host)]))
    assert grade(submission) == []
    assert "Install bubblewrap" in submission.samples.all()[0].platform_failure


@pytest.mark.sandbox
def test_references_are_graded_in_the_environment(host: Path, tmp_path: Path) -> None:
    line = {
        "task_id": "T/0", "category": "code_exec", "prompt": "Write f(x).",
        "targets": ["f(1) == tiny.VALUE"], "metric_name": "code_exec",
        "post_process": "extract_code_block",
        "metadata": {"reference": "import tiny\ndef f(x):\n    return tiny.VALUE\n",
                     "setup": "import tiny"},
    }  # fmt: skip
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps(line) + "\n")
    science(python="", packages=[make_wheel(host)])
    out = io.StringIO()
    call_command("import_benchmark", str(file), "--environment", "science", stdout=out, stderr=out)
    assert "Reference solutions: 1 of 1 pass." in out.getvalue()
    verdict = Task.objects.get().reference_verdict
    assert verdict["outcome"] == Outcome.PASS and verdict["environment"]
    with pytest.raises(CommandError, match="No environment 'other'; there are: science"):
        call_command("import_benchmark", str(file), "--environment", "other")


@pytest.mark.sandbox
def test_a_worker_keeps_what_a_job_looked_for(host: Path) -> None:
    """A job's own process ends with it, so what it found must be had by the one that forks it."""
    environment = science(python="", packages=[make_wheel(host)])
    in_a_fork(lambda: grader.sandbox_of(environment))
    assert grader._sandboxes == {}
    grader.keep_ready()
    (kept,) = grader._sandboxes.values()
    assert grader.sandbox_of(environment) is kept
    grader.keep_ready()
    assert list(grader._sandboxes.values()) == [kept]
    in_a_fork(lambda: grader.sandbox_of(environment, force=True))
    grader.keep_ready()
    assert grader._sandboxes == {}
    # It is looked for once more, and found anew.
    assert grader.sandbox_of(environment).environment.venv != kept.environment.venv


def test_a_worker_builds_nothing_between_jobs(host: Path) -> None:
    environment = science(python="", packages=["fail"])
    grader._NUMBER.pack_into(grader._looked_for, 0, environment.pk)
    grader.keep_ready()
    assert grader._sandboxes == {}
    assert not (host / "installations").exists()


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.sandbox
def test_the_command_stores_builds_and_lists(host: Path, tmp_path: Path) -> None:
    assert "There is no environment" in command()
    (tmp_path / "requirements.txt").write_text(f"# ours\n{make_wheel(host)}\n")
    (tmp_path / "provision.py").write_text("print('provisioned', 1 + 1)\n")
    said = command(
        "science",
        *("--requirements", str(tmp_path / "requirements.txt")),
        *("--provision", str(tmp_path / "provision.py")),
        *("--variable", "DATA={venv}/data", "--address-space", "none"),
    )
    assert "provisioned 2" in said and "\n  tiny==1.0\n" in said
    stored = Environment.objects.get()
    assert stored.packages == [str(host / "tiny-1.0-py3-none-any.whl")]
    assert stored.variables == {"DATA": "{venv}/data"}
    assert (stored.python, stored.address_space) == ("", 0)
    assert "provisioned" not in command("science")
    assert "provisioned 2" in command("science", "--force")
    version_in(stored)
    assert "used by Mine version 1" in command()
    with pytest.raises(CommandError, match="give the changed one a new name"):
        command("science", "--python", "3.12")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--address-space", "much"], "use a size such as 8G"),
        (["--variable", "A"], "use NAME=VALUE"),
        (["--requirements", "/no/such/file"], "No such file"),
        (["--package", "-r x"], "packages: package '-r x'"),
        (["--package", "fail"], "science is stored, but: cannot install the packages"),
    ],
)
def test_the_command_says_what_is_wrong(host: Path, words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        command("science", *words)


# --- pages ----------------------------------------------------------------------------------------


def test_pages_tell_interpreter_and_packages(client: Client) -> None:
    version = web_records.benchmark()
    ran = web_records.verdict(Outcome.PASS, environment="0123456789ab", python="3.12.1")
    made = web_records.submission(version, web_records.person("rosa"), lambda *_: ran)
    BenchmarkVersion.objects.update(environment=science(address_space=8 << 30))
    summary = "Python 3.12 with numpy==2.1.0, pandas"
    for page in ("/b/tidepool/", "/b/tidepool/tasks/"):
        assert summary in client.get(page).content.decode()
    task = client.get("/b/tidepool/tasks/Tidepool-0/").content.decode()
    assert "numpy==2.1.0, pandas" in task and "8\N{NO-BREAK SPACE}GB" in task
    sample = client.get(f"/s/{made.public_id}/Tidepool-0/0/").content.decode()
    assert "0123456789ab" in sample and "numpy==2.1.0, pandas" in sample
    assert "--out - --python 3.12 --package numpy==2.1.0 --package pandas" in sample
    told = client.get("/api/v1/benchmarks/tidepool").json()["environment"]
    assert told == {"name": "science", "python": "3.12", "packages": ["numpy==2.1.0", "pandas"]}


@pytest.mark.sandbox
def test_the_sandbox_page_tells_what_this_host_has(client: Client, host: Path) -> None:
    client.force_login(web_records.person("sam", staff=True))
    environment = science(python="", packages=[make_wheel(host)])
    Environment.objects.create(name="old", python="2.99")
    page = client.get("/sandbox/").content.decode()
    assert "built when it is first needed" in page
    assert "no Python interpreter &#x27;2.99&#x27;" in page
    built = grader.sandbox_of(environment).environment
    page = client.get("/sandbox/").content.decode()
    assert built.stamp in page and "tiny==1.0" in page
