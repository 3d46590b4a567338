"""The page of one's API tokens."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from grading import tokens as service
from grading.forms import TokenForm
from grading.models import ApiToken


@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """Make a token, shown this one time, and see the ones there are."""
    assert request.user.is_authenticated
    form, secret = TokenForm(request.user, request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        secret, _ = service.make(request.user, data["name"], data["scopes"], data["days"])
        form = TokenForm(request.user)
    context = {
        "form": form,
        "secret": secret,
        "tokens": ApiToken.objects.filter(user=request.user, revoked_at=None),
    }
    response = render(request, "grading/tokens.html", context)
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    assert request.user.is_authenticated
    if service.revoke(request.user, token_id):
        messages.success(request, "The token is revoked; nothing is taken with it any more.")
    return redirect("tokens")
