"""What an uploader does with a submission: show or hide it, withdraw it, delete it."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from grading import life
from grading.forms import VisibilityForm
from grading.models import Submission
from grading.permissions import Action, may, require, roles_for, submission_or_404

REFUSED = 422
ANY_OF = (Action.SHOW_OR_HIDE, Action.WITHDRAW, Action.DELETE)


def manages(request: HttpRequest, found: Submission) -> bool:
    return any(may(request.user, action, found) for action in ANY_OF)


@require_safe
def manage(request: HttpRequest, public_id: str) -> HttpResponse:
    found = submission_or_404(request.user, public_id)
    if not manages(request, found):
        raise PermissionDenied(roles_for(Action.WITHDRAW))
    return _page(request, found, VisibilityForm(instance=found))


@require_POST
def visibility(request: HttpRequest, public_id: str) -> HttpResponse:
    found = submission_or_404(request.user, public_id)
    require(request.user, Action.SHOW_OR_HIDE, found)
    form = VisibilityForm(request.POST, instance=found)
    if not form.is_valid():
        return _page(request, found, form, REFUSED)
    if found.withdrawn_at and form.cleaned_data["visibility"] == Submission.Visibility.PUBLIC:
        form.add_error("visibility", "It is withdrawn, so it is on no list any more.")
        return _page(request, found, form, REFUSED)
    found.save(update_fields=["visibility", "generations_hidden"])
    messages.success(request, "Saved.")
    return redirect("submission", public_id)


@require_POST
def withdraw(request: HttpRequest, public_id: str) -> HttpResponse:
    found = submission_or_404(request.user, public_id)
    require(request.user, Action.WITHDRAW, found)
    life.withdraw(found, request.user.pk)
    messages.success(request, "Withdrawn: it is on no list and no board any more.")
    return redirect("submission", public_id)


@require_POST
def delete(request: HttpRequest, public_id: str) -> HttpResponse:
    """For good; the form asks for the submission's id, so that no slip of the hand does it."""
    found = submission_or_404(request.user, public_id)
    require(request.user, Action.DELETE, found)
    if request.POST.get("confirm", "").strip() != found.public_id:
        return _page(request, found, VisibilityForm(instance=found), REFUSED, mistyped=True)
    life.delete(found)
    messages.success(request, f"Submission {public_id} is deleted, with everything it brought.")
    return redirect("account")


def _page(
    request: HttpRequest,
    found: Submission,
    form: VisibilityForm,
    status: int = 200,
    mistyped: bool = False,
) -> HttpResponse:
    context = {"submission": found, "form": form, "mistyped": mistyped}
    return render(request, "grading/manage.html", context, status=status)
