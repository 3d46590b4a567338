"""One's own account: roles, submissions, passwords and sessions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from grading import quotas
from grading.accounts.forms import PasswordForm
from grading.accounts.roles import given_roles
from grading.models import Submission
from grading.queries.paging import page_of

SUBMISSIONS_PER_PAGE = 25
REFUSED = 422


@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    assert request.user.is_authenticated
    return _page(request, PasswordForm(request.user))


@login_required
@require_POST
def sign_out_others(request: HttpRequest) -> HttpResponse:
    """End every other session of one's account, by hashing the same password anew."""
    assert request.user.is_authenticated
    form = PasswordForm(request.user, request.POST)
    if not form.is_valid():
        return _page(request, form, REFUSED)
    request.user.set_password(form.cleaned_data["password"])
    request.user.save(update_fields=["password"])
    update_session_auth_hash(request, request.user)
    messages.success(request, "You are signed out everywhere but here.")
    return redirect("account")


def _page(request: HttpRequest, form: PasswordForm, status: int = 200) -> HttpResponse:
    assert request.user.is_authenticated
    submissions = Submission.objects.filter(uploader=request.user).order_by("-pk")
    context = {
        "form": form,
        "roles": given_roles(request.user),
        "quota": quotas.standing(request.user),
        "page_obj": page_of(
            submissions.select_related("language_model", "version__benchmark"),
            SUBMISSIONS_PER_PAGE,
            request.GET.get("page", "1"),
            list,
        ),
    }
    return render(request, "accounts/account.html", context, status=status)
