"""Names of language models: which model a name means, and what it may have been meant for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q
from django.utils.text import slugify

from grading.models import LanguageModel, ModelAlias, Submission
from grading.permissions import Viewer, visible_submissions

_SPACE = re.compile(r"\s+")


def named(name: str) -> LanguageModel | None:
    """The model that goes by this name: its own, an alias, or that of one merged into it."""
    name = name.strip()
    found = LanguageModel.objects.select_related("merged_into").filter(name=name).first()
    if found is not None:
        return found.merged_into or found
    alias = ModelAlias.objects.select_related("language_model").filter(name=name).first()
    return alias.language_model if alias else None


def named_or_new(name: str) -> LanguageModel:
    """As `named`, made on first use; its slug is unique and never empty.

    Call it in a transaction: the model is locked, so that no merge comes between.
    """
    found = named(name)
    if found is None:
        name = name.strip()
        return LanguageModel.objects.create(name=name, slug=_free_slug(name))
    held = LanguageModel.objects.select_for_update(no_key=True, of=("self",)).get(pk=found.pk)
    return held.merged_into or held


def _free_slug(name: str) -> str:
    stem = slugify(name)[:100]
    if not re.search("[a-z0-9]", stem):
        stem = f"model-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    slug, again = stem, 2
    while LanguageModel.objects.filter(slug=slug).exists():
        slug, again = f"{stem}-{again}", again + 1
    return slug


def offered(viewer: Viewer) -> list[str]:
    """Names of the models that ``viewer`` sees a submission of, or nobody submitted, in order."""
    seen = visible_submissions(viewer).order_by().values("language_model")
    unused = ~Exists(Submission.everything.filter(language_model=OuterRef("pk")))
    models = LanguageModel.objects.filter(unused | Q(pk__in=seen), merged_into=None)
    return list(models.values_list("name", flat=True))


def similar(name: str, viewer: Viewer) -> str:
    """A model's name that differs from ``name`` in case and space only; empty for none.

    Never for a name that means a model already, nor one whose submissions ``viewer`` may not see.
    """
    if named(name):
        return ""
    known = offered(viewer)
    return _alike(name, known) or _owner_of(_alike(name, _aliases(known)))


def told(name: str, viewer: Viewer) -> dict[str, str]:
    """For reports: the model that ``name`` means, and one that it may have been meant for."""
    found = named(name)
    return {"model": found.name if found else name, "similar_model": similar(name, viewer)}


def _aliases(of: Iterable[str]) -> list[str]:
    names = ModelAlias.objects.filter(language_model__name__in=of)
    return list(names.values_list("name", flat=True))


def _owner_of(alias: str) -> str:
    found = named(alias) if alias else None
    return found.name if found else ""


def _alike(name: str, known: Iterable[str]) -> str:
    wanted = _squeezed(name)
    return next((one for one in known if _squeezed(one) == wanted), "")


def _squeezed(name: str) -> str:
    return _SPACE.sub("", name).casefold()
