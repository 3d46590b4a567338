"""What pages and calls read about names of language models."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from grading.models import LanguageModel, ModelAlias, ModelMerge


@dataclass(frozen=True, slots=True)
class Names:
    """Further names of a model: ``aliases`` that can be removed, ``merged`` models."""

    aliases: tuple[ModelAlias, ...]
    merged: tuple[LanguageModel, ...]

    @property
    def all(self) -> list[str]:
        names = [one.name for one in self.aliases] + [one.name for one in self.merged]
        return sorted(names, key=str.casefold)


def names_of(model: LanguageModel) -> Names:
    """Two queries."""
    aliases = ModelAlias.objects.filter(language_model=model).select_related("by")
    return Names(tuple(aliases), tuple(LanguageModel.objects.filter(merged_into=model)))


def merges_of(model: LanguageModel) -> list[ModelMerge]:
    """Merges that the model had a part in, newest first, those undone too; one query."""
    found = ModelMerge.objects.filter(Q(source=model) | Q(target=model))
    return list(found.select_related("source", "target", "by", "undone_by"))
