"""Calls that say which names mean the same language model."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router

from grading import model_merges
from grading.api.auth import Caller
from grading.api.bodies import Body, valid
from grading.api.errors import Problem
from grading.model_forms import AliasForm, MergeForm
from grading.models import LanguageModel
from grading.permissions import Action
from grading.queries.language_models import names_of

router = Router(tags=["models"], auth=Caller("triage", Action.MANAGE_MODELS))


class Name(Body):
    name: str


class Wish(Body):
    """``into``: any name of the model that this one is the same as."""

    into: str
    reason: str


@router.post("/{slug}/aliases", summary="Let uploads under another name be this model's")
def add_alias(request: HttpRequest, slug: str, name: Name) -> dict[str, Any]:
    found = _model_or_404(slug)
    form = valid(AliasForm(name.model_dump()))
    try:
        model_merges.add_alias(found, form.cleaned_data["name"], cast(User, request.user))
    except model_merges.Refused as refused:
        raise _refused(refused) from None
    return _names(found)


@router.delete("/{slug}/aliases", summary="Take an alias away")
def remove_alias(request: HttpRequest, slug: str, name: str) -> dict[str, Any]:
    found = _model_or_404(slug)
    try:
        model_merges.remove_alias(found, name)
    except model_merges.Refused as refused:
        raise _refused(refused) from None
    return _names(found)


@router.post("/{slug}/merge", summary="Merge this model into another")
def merge(request: HttpRequest, slug: str, wish: Wish) -> dict[str, Any]:
    """Its submissions move, its name becomes one of the other's, its addresses lead there."""
    found = _model_or_404(slug)
    form = valid(MergeForm(wish.model_dump()))
    into, reason = form.cleaned_data["into"], form.cleaned_data["reason"]
    try:
        model_merges.merge(found, into, cast(User, request.user), reason)
    except model_merges.Refused as refused:
        raise _refused(refused) from None
    return _names(into)


@router.post("/{slug}/unmerge", summary="Undo the merge of this model")
def unmerge(request: HttpRequest, slug: str) -> dict[str, Any]:
    found = _model_or_404(slug)
    try:
        model_merges.undo(found, cast(User, request.user))
    except model_merges.Refused as refused:
        raise _refused(refused) from None
    return _names(found)


def _names(model: LanguageModel) -> dict[str, Any]:
    return {"slug": model.slug, "name": model.name, "names": names_of(model).all}


def _model_or_404(slug: str) -> LanguageModel:
    return get_object_or_404(LanguageModel, slug=slug)


def _refused(refused: model_merges.Refused) -> Problem:
    return Problem(409, "refused", str(refused))
