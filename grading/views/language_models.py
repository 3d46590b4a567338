"""The page on which maintainers say which names mean the same language model."""

from __future__ import annotations

from typing import cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from grading import language_models, model_merges
from grading.model_forms import AliasForm, MergeForm
from grading.models import LanguageModel
from grading.permissions import Action, needs
from grading.queries.language_models import merges_of, names_of

REFUSED = 422
keepers_only = needs(Action.MANAGE_MODELS)


@keepers_only
@require_safe
def manage(request: HttpRequest, slug: str) -> HttpResponse:
    """Names, merges and their history; that of a merged model shows what it is part of."""
    return _page(request, _model_or_404(slug))


@keepers_only
@require_POST
def add_alias(request: HttpRequest, slug: str) -> HttpResponse:
    found, form = _model_or_404(slug), AliasForm(request.POST)
    if not form.is_valid():
        return _page(request, found, alias=form)
    try:
        model_merges.add_alias(found, form.cleaned_data["name"], cast(User, request.user))
    except model_merges.Refused as refused:
        form.add_error("name", str(refused))
        return _page(request, found, alias=form)
    messages.success(request, f"Uploads under “{form.cleaned_data['name']}” are {found.name}'s.")
    return redirect("model-manage", slug)


@keepers_only
@require_POST
def remove_alias(request: HttpRequest, slug: str) -> HttpResponse:
    found = _model_or_404(slug)
    try:
        model_merges.remove_alias(found, request.POST.get("name", ""))
    except model_merges.Refused as refused:
        messages.warning(request, str(refused))
    return redirect("model-manage", slug)


@keepers_only
@require_POST
def merge(request: HttpRequest, slug: str) -> HttpResponse:
    found, form = _model_or_404(slug), MergeForm(request.POST)
    if not form.is_valid():
        return _page(request, found, merge=form)
    into, reason = form.cleaned_data["into"], form.cleaned_data["reason"]
    try:
        model_merges.merge(found, into, cast(User, request.user), reason)
    except model_merges.Refused as refused:
        form.add_error("into", str(refused))
        return _page(request, found, merge=form)
    messages.success(request, f"{found.name} is merged into {into.name}.")
    return redirect("model-manage", into.slug)


@keepers_only
@require_POST
def unmerge(request: HttpRequest, slug: str) -> HttpResponse:
    found = _model_or_404(slug)
    try:
        model_merges.undo(found, cast(User, request.user))
    except model_merges.Refused as refused:
        messages.warning(request, str(refused))
    else:
        messages.success(request, f"{found.name} is a model of its own again.")
    return redirect("model-manage", slug)


def _model_or_404(slug: str) -> LanguageModel:
    return get_object_or_404(LanguageModel.objects.select_related("merged_into"), slug=slug)


def _page(
    request: HttpRequest,
    found: LanguageModel,
    alias: forms.Form | None = None,
    merge: forms.Form | None = None,
) -> HttpResponse:
    context = {
        "model": found,
        "names": names_of(found),
        "merges": merges_of(found),
        "alias_form": alias or AliasForm(),
        "merge_form": merge or MergeForm(),
        "others": [name for name in language_models.offered(request.user) if name != found.name],
    }
    status = REFUSED if alias or merge else 200
    return render(request, "grading/model_manage.html", context, status=status)
