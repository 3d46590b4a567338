"""Names of language models: aliases, merges, and what stays when a merge is undone."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from grading import language_models, life, model_merges, tokens, uploads
from grading.accounts.roles import Role
from grading.models import (
    BenchmarkVersion,
    ChangeLogEntry,
    LanguageModel,
    ModelAlias,
    ModelMerge,
    Submission,
)
from tests.grading import web_records

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_broker")]


@pytest.fixture
def version() -> BenchmarkVersion:
    return web_records.benchmark()


@pytest.fixture
def rosa() -> User:
    return web_records.person("rosa")


@pytest.fixture
def keeper(client: Client) -> User:
    person = web_records.person("keeper", role=Role.MAINTAINER)
    client.force_login(person)
    return person


@pytest.fixture
def two(version: BenchmarkVersion, rosa: User) -> tuple[LanguageModel, LanguageModel]:
    """One model under two names, a public run of each."""
    web_records.submission(version, rosa, model="Kea 1B")
    web_records.submission(version, rosa, model="Kea-1B-it")
    return LanguageModel.objects.get(name="Kea-1B-it"), LanguageModel.objects.get(name="Kea 1B")


def upload(version: BenchmarkVersion, by: User, model: str) -> LanguageModel:
    line = json.dumps({"task_id": "Tidepool/0", "generation": web_records.PROGRAM, "note": model})
    stream = io.BytesIO(f"{line}\n".encode())
    return uploads.accept(stream, "file.jsonl", version, model, by).submission.language_model


def owners() -> list[str]:
    rows = Submission.objects.order_by("pk").values_list("language_model__name", flat=True)
    return list(rows)


def test_a_merge_moves_all_and_says_so(two: Any, version: BenchmarkVersion, keeper: User) -> None:
    source, target = two
    model_merges.add_alias(source, "kea-it", keeper)
    model_merges.merge(source, target, keeper, "the card says so")
    assert owners() == ["Kea 1B", "Kea 1B"]
    for name in ("Kea-1B-it", "kea-it", " Kea 1B "):
        assert language_models.named(name) == target, name
    entry = ChangeLogEntry.objects.get()
    assert (entry.version, entry.by, entry.reason) == (version, keeper, "the card says so")
    assert entry.what == "Model Kea-1B-it merged into Kea 1B"
    done = ModelMerge.objects.get()
    assert (done.source, done.target, done.by) == (source, target, keeper)
    assert len(done.submissions) == 1


def test_uploads_under_any_name_land_on_the_model(
    two: Any, version: BenchmarkVersion, rosa: User, keeper: User
) -> None:
    source, target = two
    model_merges.add_alias(target, "kea-latest", keeper)
    model_merges.merge(source, target, keeper, "same")
    for name in ("Kea-1B-it", "kea-latest"):
        assert upload(version, rosa, name) == target
    assert LanguageModel.objects.count() == 2
    again = upload(version, rosa, "Kea-1B-it")
    assert (again, Submission.objects.count()) == (target, 4), "the same file is recognised"


def test_private_runs_are_in_no_public_log(
    version: BenchmarkVersion, rosa: User, keeper: User
) -> None:
    web_records.submission(version, rosa, model="Kea 1B")
    web_records.submission(version, rosa, model="Secret", private=True)
    secret, kea = LanguageModel.objects.order_by("-name")
    model_merges.merge(secret, kea, keeper, "same")
    assert not ChangeLogEntry.objects.exists()


@pytest.mark.parametrize("wrong", ["itself", "again", "into a merged one", "synthetic", "gone"])
def test_what_cannot_be_merged(two: Any, keeper: User, wrong: str) -> None:
    source, target = two
    if wrong == "itself":
        target = source
    if wrong == "again":
        model_merges.merge(source, target, keeper, "same")
    if wrong == "into a merged one":
        model_merges.merge(target, source, keeper, "same")
    if wrong == "synthetic":
        LanguageModel.objects.filter(pk=source.pk).update(synthetic=True)
    if wrong == "gone":
        LanguageModel.objects.filter(pk=target.pk).update(organisation="")
        life.delete(Submission.objects.get(language_model=target))
    before, merges = owners(), ModelMerge.objects.count()
    with pytest.raises(model_merges.Refused):
        model_merges.merge(source, target, keeper, "same")
    assert (owners(), ModelMerge.objects.count()) == (before, merges)


def test_a_failure_in_the_middle_changes_nothing(
    two: Any, keeper: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(model_merges, "_write_down", fail)
    before = owners()
    with pytest.raises(OSError, match="disk full"):
        model_merges.merge(*two, keeper, "same")
    assert owners() == before
    assert not ModelMerge.objects.exists()


def test_merges_do_not_chain(two: Any, version: BenchmarkVersion, rosa: User, keeper: User) -> None:
    first, second = two
    web_records.submission(version, rosa, model="Kea")
    third = LanguageModel.objects.get(name="Kea")
    model_merges.merge(first, second, keeper, "same")
    model_merges.merge(second, third, keeper, "same")
    assert owners() == ["Kea"] * 3
    assert language_models.named("Kea-1B-it") == third
    with pytest.raises(model_merges.Refused, match="merged itself since"):
        model_merges.undo(first, keeper)
    model_merges.undo(second, keeper)
    assert language_models.named("Kea-1B-it") == second
    assert owners() == ["Kea 1B", "Kea 1B", "Kea"]
    model_merges.undo(first, keeper)
    assert owners() == ["Kea 1B", "Kea-1B-it", "Kea"]


def test_undoing_gives_back_what_moved(
    two: Any, version: BenchmarkVersion, rosa: User, keeper: User
) -> None:
    source, target = two
    model_merges.add_alias(source, "kea-it", keeper)
    model_merges.merge(source, target, keeper, "same")
    assert upload(version, rosa, "Kea-1B-it") == target
    model_merges.undo(source, keeper)
    assert owners() == ["Kea 1B", "Kea-1B-it", "Kea 1B"]
    assert language_models.named("kea-it") == source
    assert upload(version, rosa, "kea-it") == source
    done = ModelMerge.objects.get()
    assert (done.undone_by, done.undone_at is None) == (keeper, False)
    with pytest.raises(model_merges.Refused, match="not merged"):
        model_merges.undo(source, keeper)


def test_an_alias_is_a_new_name(two: Any, keeper: User) -> None:
    source, target = two
    for name in ("Kea-1B-it", "Kea 1B", "", "a\x00b", "x" * 201):
        with pytest.raises(model_merges.Refused):
            model_merges.add_alias(target, name, keeper)
    model_merges.add_alias(target, "kea", keeper)
    with pytest.raises(model_merges.Refused, match="a name of Kea 1B already"):
        model_merges.add_alias(source, "kea", keeper)
    with pytest.raises(model_merges.Refused, match="no alias of Kea-1B-it"):
        model_merges.remove_alias(source, "kea")
    model_merges.remove_alias(target, "kea")
    assert language_models.named("kea") is None


def test_a_model_with_other_names_outlives_its_submissions(two: Any, keeper: User) -> None:
    source, target = two
    model_merges.merge(source, target, keeper, "same")
    for made in Submission.objects.all():
        life.delete(made)
    assert LanguageModel.objects.count() == 2


# --- what is offered ------------------------------------------------------------------------------


def test_names_of_private_submissions_are_not_offered_to_strangers(
    client: Client, version: BenchmarkVersion, rosa: User
) -> None:
    web_records.submission(version, rosa, model="Secret 9B", private=True)
    web_records.submission(version, rosa, model="Open 9B")
    stranger = web_records.person("stranger")
    for person, sees in ((stranger, False), (rosa, True)):
        client.force_login(person)
        page = client.get("/submit/").content.decode()
        assert ("Secret 9B" in page, "Open 9B" in page) == (sees, True)
        assert (language_models.similar("secret9b", person) == "Secret 9B") is sees


def test_names_that_differ_in_case_and_space_are_suggested(two: Any, keeper: User) -> None:
    model_merges.add_alias(two[1], "The Kea", keeper)
    for typed, meant in (
        ("kea1b", "Kea 1B"),
        ("KEA  1b ", "Kea 1B"),
        ("the KEA", "Kea 1B"),
        ("Kea 1B", ""),
        ("The Kea", ""),
        ("Kea 2B", ""),
    ):
        assert language_models.similar(typed, keeper) == meant, typed


def test_the_report_names_the_model_that_is_meant(client: Client, two: Any, keeper: User) -> None:
    model_merges.add_alias(two[1], "kea <latest>", keeper)

    def told(model: str) -> str:
        file = io.BytesIO(b'{"task_id": "Tidepool/0", "generation": "x = 1"}\n')
        file.name = "file.jsonl"
        fields = {"file": file, "model": model, "visibility": "public"}
        return client.post("/submit/", fields).content.decode()

    assert "This is another name of <strong>Kea 1B</strong>" in told("kea <latest>")
    assert "There is a model named <strong>Kea 1B</strong>" in told("KEA 1B")
    assert "another name" not in told("Kea 1B")


# --- pages and calls ------------------------------------------------------------------------------


def test_the_page_merges_and_old_addresses_lead_on(client: Client, two: Any, keeper: User) -> None:
    source, target = two
    assert f"/m/{source.slug}/manage/" in client.get(f"/m/{source.slug}/").content.decode()
    wrong = client.post(f"/m/{source.slug}/merge/", {"into": "Nobody"})
    assert wrong.status_code == 422
    assert "No model has this name." in wrong.content.decode()
    assert "Say why they are the same model." in wrong.content.decode()
    itself = client.post(f"/m/{source.slug}/merge/", {"into": source.name, "reason": "x"})
    assert "cannot be merged into itself" in itself.content.decode()
    done = client.post(f"/m/{source.slug}/merge/", {"into": "Kea 1B", "reason": "<b>same</b>"})
    assert done.headers["Location"] == f"/m/{target.slug}/manage/"
    page = client.get(done.headers["Location"]).content.decode()
    assert "Reason: &lt;b&gt;same&lt;/b&gt;" in page
    client.logout()
    moved = client.get(f"/m/{source.slug}/?sort=fraction")
    assert moved.status_code == 301
    assert moved.headers["Location"] == f"/m/{target.slug}/?sort=fraction"
    assert "Also known as Kea-1B-it" in client.get(f"/m/{target.slug}/").content.decode()


def test_an_old_address_tells_strangers_nothing_of_a_private_model(
    client: Client, two: Any, keeper: User
) -> None:
    source, target = two
    model_merges.merge(source, target, keeper, "same")
    Submission.objects.update(visibility="private")
    client.force_login(web_records.person("stranger"))
    assert client.get(f"/m/{source.slug}/").status_code == 404
    assert client.get(f"/api/v1/models/{source.slug}").status_code == 404


def test_aliases_on_the_page(client: Client, two: Any, keeper: User) -> None:
    address = f"/m/{two[1].slug}"
    client.post(f"{address}/aliases/", {"name": "kea-latest"})
    assert ModelAlias.objects.get().by == keeper
    assert "kea-latest" in client.get(f"{address}/manage/").content.decode()
    twice = client.post(f"{address}/aliases/", {"name": "kea-latest"})
    assert (twice.status_code, "already" in twice.content.decode()) == (422, True)
    client.post(f"{address}/aliases/remove/", {"name": "kea-latest"})
    assert not ModelAlias.objects.exists()
    again = client.post(f"{address}/aliases/remove/", {"name": "kea-latest"}, follow=True)
    assert "is no alias" in again.content.decode()


def test_a_merge_is_undone_on_the_page(client: Client, two: Any, keeper: User) -> None:
    source, target = two
    model_merges.merge(source, target, keeper, "same")
    assert "Undo the merge" in client.get(f"/m/{source.slug}/manage/").content.decode()
    client.post(f"/m/{source.slug}/unmerge/")
    assert "Undone" in client.get(f"/m/{source.slug}/manage/").content.decode()
    assert owners() == ["Kea 1B", "Kea-1B-it"]
    again = client.post(f"/m/{source.slug}/unmerge/", follow=True)
    assert "is not merged into another model" in again.content.decode()


def test_the_page_of_names_reads_little(
    client: Client, two: Any, keeper: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(6):
        model_merges.add_alias(two[1], f"kea {number}", keeper)
    model_merges.merge(*two, keeper, "same")
    with django_assert_max_num_queries(9):
        client.get(f"/m/{two[1].slug}/manage/")


def test_models_are_merged_by_the_api(client: Client, two: Any, keeper: User) -> None:
    source, target = two
    secret, _ = tokens.make(keeper, "t", ["read", "triage"])
    bearer = {"Authorization": f"Bearer {secret}"}

    def post(path: str, **body: Any) -> Any:
        address = f"/api/v1/models/{path}"
        return client.post(address, body, content_type="application/json", headers=bearer)

    named = post(f"{target.slug}/aliases", name="kea-latest").json()
    assert named == {"slug": target.slug, "name": "Kea 1B", "names": ["kea-latest"]}
    assert post(f"{source.slug}/aliases", name="kea-latest").status_code == 409
    assert post(f"{source.slug}/merge", into="Nobody", reason="x").status_code == 422
    assert post(f"{source.slug}/merge", into="Kea-1B-it", reason="x").status_code == 409
    merged = post(f"{source.slug}/merge", into="kea-latest", reason="same").json()
    assert merged["names"] == ["Kea-1B-it", "kea-latest"]
    shown = client.get(f"/api/v1/models/{source.slug}").json()
    assert (shown["slug"], len(shown["submissions"])) == (target.slug, 2)
    assert shown["names"] == ["Kea-1B-it", "kea-latest"]
    assert post(f"{source.slug}/unmerge").json()["names"] == []
    assert post(f"{source.slug}/unmerge").status_code == 409
    address = f"/api/v1/models/{target.slug}/aliases?name=kea-latest"
    assert client.delete(address, headers=bearer).json()["names"] == []
    assert client.delete(address, headers=bearer).status_code == 409


def test_a_dry_run_names_the_model(client: Client, two: Any, keeper: User) -> None:
    secret, _ = tokens.make(keeper, "t", ["read", "submit"])
    address = "/api/v1/submissions?benchmark=tidepool&dry_run=true&model="

    def told(model: str) -> tuple[str, str]:
        answer = client.post(
            address + model,
            b'{"task_id": "Tidepool/0", "generation": "x = 1"}\n',
            content_type="application/octet-stream",
            headers={"Authorization": f"Bearer {secret}"},
        ).json()
        return answer["model"], answer["similar_model"]

    assert told("KEA1B") == ("KEA1B", "Kea 1B")
    assert told("Kea 1B") == ("Kea 1B", "")
