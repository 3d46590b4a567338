"""The administrator's pages of people: who is here, what they may do, who is invited."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from grading import quotas
from grading.accounts import invitations, mail, roles
from grading.accounts.forms import InvitationForm, PersonForm
from grading.accounts.roles import GIVEN, Role
from grading.forms import QuotaForm
from grading.permissions import Action, needs
from grading.queries.paging import page_of

PEOPLE_PER_PAGE = 50
REFUSED = 422


@require_safe
@needs(Action.MANAGE_PEOPLE)
def people(request: HttpRequest) -> HttpResponse:
    return _page(request, InvitationForm())


@require_POST
@never_cache
@needs(Action.MANAGE_PEOPLE)
def invite(request: HttpRequest) -> HttpResponse:
    """Make an invitation and show its link, this one time; mailed too where that works."""
    assert request.user.is_authenticated
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=REFUSED)
    data = form.cleaned_data
    token = invitations.invite(request.user, data["roles"], data["days"], data["email"])
    link = request.build_absolute_uri(reverse("join", args=[token]))
    text = f"You are invited to Evalsite. This link makes your account, once:\n\n{link}\n"
    mailed = bool(data["email"]) and mail.send(data["email"], "Invitation to Evalsite", text)
    return _page(request, InvitationForm(), {"link": link, "mailed_to": mailed and data["email"]})


def _page(
    request: HttpRequest,
    form: InvitationForm,
    more: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    found = User.objects.order_by("username").prefetch_related("groups")
    context = {
        "form": form,
        "invitations": invitations.open_invitations().select_related("created_by"),
        "sends_email": settings.SENDS_EMAIL,
        "page_obj": page_of(found, PEOPLE_PER_PAGE, request.GET.get("page", "1"), _rows),
    }
    return render(request, "accounts/people.html", context | (more or {}), status=status)


def _rows(users: Any) -> list[dict[str, Any]]:
    return [{"user": user, "roles": _role_names(user)} for user in users]


def _role_names(user: User) -> str:
    """As `roles.given_roles`, from groups that are already here."""
    groups = {group.name for group in user.groups.all()} | (
        {Role.ADMIN} if user.is_staff else set()
    )
    return ", ".join(role for role in GIVEN if role in groups)


@require_POST
@needs(Action.MANAGE_PEOPLE)
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete an invitation that nobody has used."""
    deleted, _ = invitations.open_invitations().filter(pk=pk).delete()
    if deleted:
        messages.success(request, "The invitation is revoked; its link opens nothing any more.")
    return redirect("people")


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Action.MANAGE_PEOPLE)
def person(request: HttpRequest, pk: int) -> HttpResponse:
    """Roles of one person and whether they may sign in; nobody can shut themselves out."""
    found = get_object_or_404(User, pk=pk)
    form = _person_form(found, request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _person(request, found, form)
    data = form.cleaned_data
    if found == request.user and not (Role.ADMIN in data["roles"] and data["is_active"]):
        form.add_error(None, "You cannot take your own account's access to this page away.")
        return _person(request, found, form, status=REFUSED)
    roles.give(found, data["roles"])
    User.objects.filter(pk=pk).update(is_active=data["is_active"])
    messages.success(request, f"Saved for {found.get_username()}.")
    return redirect("person", pk)


@require_POST
@needs(Action.MANAGE_PEOPLE)
def quota(request: HttpRequest, pk: int) -> HttpResponse:
    """Give one person limits of their own, or the site's again."""
    found = get_object_or_404(User, pk=pk)
    form = QuotaForm(request.POST, instance=quotas.own(found))
    if not form.is_valid():
        return _person(request, found, _person_form(found), quota_form=form, status=REFUSED)
    form.save()
    messages.success(request, f"Saved the quota of {found.get_username()}.")
    return redirect("person", pk)


@require_POST
@never_cache
@needs(Action.MANAGE_PEOPLE)
def reset_link(request: HttpRequest, pk: int) -> HttpResponse:
    """A link that sets a new password, once, within three days; shown this one time."""
    found = get_object_or_404(User, pk=pk, is_active=True)
    uid = urlsafe_base64_encode(force_bytes(found.pk))
    token = default_token_generator.make_token(found)
    link = request.build_absolute_uri(reverse("password-new", args=[uid, token]))
    return _person(request, found, _person_form(found), link=link)


def _person_form(found: User, data: QueryDict | None = None) -> PersonForm:
    initial = {"roles": roles.given_roles(found), "is_active": found.is_active}
    return PersonForm(data, initial=initial)


def _person(
    request: HttpRequest,
    found: User,
    form: PersonForm,
    link: str = "",
    quota_form: QuotaForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "person": found,
        "form": form,
        "link": link,
        "submissions": found.submissions.count(),
        "quota": quotas.standing(found),
        "quota_form": quota_form or QuotaForm(instance=quotas.own(found)),
    }
    return render(request, "accounts/person.html", context, status=status)
