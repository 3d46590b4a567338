"""Language models that are one: further names of a model, and merging two models.

A merged model keeps its record, its name and its slug, so that old addresses lead on; its
submissions are the other's. Merges never chain: what was merged into a model moves on with it.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from grading import language_models
from grading.models import (
    BenchmarkVersion,
    ChangeLogEntry,
    LanguageModel,
    ModelAlias,
    ModelMerge,
    Submission,
)

MAX_NAME_CHARS = 200


class Refused(Exception):
    """It cannot be done; the text says why. Nothing was changed."""


@transaction.atomic
def add_alias(model: LanguageModel, name: str, by: User) -> ModelAlias:
    """Let uploads under ``name`` be the model's. Raises `Refused` for a name that means a model."""
    name = name.strip()
    (held,) = _locked(model)
    if held.merged_into:
        raise Refused(f"{held.name} is merged into {held.merged_into.name}: name that one.")
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise Refused(f"Use 1 to {MAX_NAME_CHARS} printable characters.")
    if meant := language_models.named(name):
        more = "" if meant == held else "; merge the two instead"
        raise Refused(f"“{name}” is a name of {meant.name} already{more}.")
    return ModelAlias.objects.create(name=name, language_model=held, by=by)


@transaction.atomic
def remove_alias(model: LanguageModel, name: str) -> None:
    """Uploads under ``name`` make a model of their own again. Raises `Refused` for other names."""
    gone, _ = ModelAlias.objects.filter(language_model=model, name=name).delete()
    if not gone:
        raise Refused(f"“{name}” is no alias of {model.name}. A merge is undone, not removed.")


@transaction.atomic
def merge(source: LanguageModel, target: LanguageModel, by: User, reason: str) -> ModelMerge:
    """Make ``source`` a name of ``target``: submissions and aliases move, all in one transaction.

    Each version with a public run of ``source`` has a line in its change log. Raises `Refused`.
    """
    if source.pk == target.pk:
        raise Refused("A model cannot be merged into itself.")
    source, target = _locked(source, target)
    _refuse(source, target)
    moved = Submission.everything.filter(language_model=source)
    aliases = ModelAlias.objects.filter(language_model=source)
    done = ModelMerge.objects.create(
        source=source,
        target=target,
        reason=reason,
        submissions=list(moved.order_by("pk").values_list("pk", flat=True)),
        aliases=list(aliases.values_list("name", flat=True)),
        by=by,
    )
    _write_down(source, f"Model {source.name} merged into {target.name}", reason, by)
    moved.update(language_model=target)
    aliases.update(language_model=target)
    LanguageModel.objects.filter(merged_into=source).update(merged_into=target)
    LanguageModel.objects.filter(pk=source.pk).update(merged_into=target)
    return done


@transaction.atomic
def undo(source: LanguageModel, by: User) -> ModelMerge:
    """Give a merged model back what moved, as far as it is still there.

    What was submitted under its name since stays with the other. Raises `Refused` where it is not
    merged, or the other is merged itself by now.
    """
    (held,) = _locked(source)
    done = ModelMerge.objects.filter(source=held, undone_at=None).order_by("-pk").first()
    if held.merged_into is None or done is None:
        raise Refused(f"{held.name} is not merged into another model.")
    if done.target_id != held.merged_into_id:
        raise Refused(f"{done.target.name} was merged itself since: undo that first.")
    target = held.merged_into
    Submission.everything.filter(pk__in=done.submissions, language_model=target).update(
        language_model=held
    )
    ModelAlias.objects.filter(name__in=done.aliases, language_model=target).update(
        language_model=held
    )
    own = ModelMerge.objects.filter(target=held, undone_at=None).values("source")
    LanguageModel.objects.filter(pk__in=own, merged_into=target).update(merged_into=held)
    LanguageModel.objects.filter(pk=held.pk).update(merged_into=None)
    ModelMerge.objects.filter(pk=done.pk).update(undone_by=by, undone_at=timezone.now())
    _write_down(held, f"Model {held.name} taken out of {target.name} again", "", by)
    return done


def _locked(*models: LanguageModel) -> list[LanguageModel]:
    """The models as they are now, locked in one order; in the order given."""
    keys = [model.pk for model in models]
    rows = LanguageModel.objects.select_for_update(of=("self",)).select_related("merged_into")
    held = {row.pk: row for row in rows.filter(pk__in=keys).order_by("pk")}
    if missing := [model.name for model in models if model.pk not in held]:
        raise Refused(f"{missing[0]} was deleted.")
    return [held[key] for key in keys]


def _refuse(source: LanguageModel, target: LanguageModel) -> None:
    for model in (source, target):
        if model.merged_into:
            raise Refused(f"{model.name} is merged into {model.merged_into.name} already.")
    if source.synthetic != target.synthetic:
        raise Refused("A synthetic model and a real one are never the same.")


def _write_down(model: LanguageModel, what: str, reason: str, by: User) -> None:
    """On the boards that anybody sees a run of the model on."""
    public = Submission.objects.filter(
        language_model=model, visibility=Submission.Visibility.PUBLIC
    )
    for version in BenchmarkVersion.objects.filter(pk__in=public.order_by().values("version")):
        ChangeLogEntry.objects.create(version=version, what=what[:300], reason=reason, by=by)
