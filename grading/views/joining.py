"""Getting an account, by invitation or by oneself, and getting back into a lost one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordResetConfirmView, PasswordResetView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.views.decorators.cache import never_cache

from grading.accounts import invitations, mail, throttle
from grading.accounts.forms import AccountForm, LogInForm, too_many

REFUSED = 422
GONE = 410
SIGN_UPS_EACH = 10
RESETS_EACH = 5


class LogIn(LoginView):
    authentication_form = LogInForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(sign_up=settings.SIGN_UP, **kwargs)


def sign_up(request: HttpRequest) -> HttpResponse:
    """An account for anybody, where the site allows it; 404 where it does not."""
    if not settings.SIGN_UP:
        raise Http404
    form = AccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if wait := _spend(request, "sign up", SIGN_UPS_EACH):
            form.add_error(None, too_many(wait))
        else:
            return _welcome(request, form.save())
    return _form(request, form, "Make an account")


@never_cache
def join(request: HttpRequest, token: str) -> HttpResponse:
    """The account of an invitation; 410 where the link has been used or is too old."""
    invitation = invitations.find(token)
    if invitation is None:
        return render(request, "accounts/invitation_gone.html", status=GONE)
    form = AccountForm(request.POST or None, initial={"email": invitation.email})
    if request.method == "POST" and form.is_valid():
        try:
            user = invitations.accept(token, form.save)
        except invitations.InvitationUsed:
            return render(request, "accounts/invitation_gone.html", status=GONE)
        return _welcome(request, user)
    return _form(request, form, "Accept the invitation")


def _form(request: HttpRequest, form: AccountForm, title: str) -> HttpResponse:
    status = REFUSED if form.errors else 200
    return render(request, "accounts/join.html", {"form": form, "title": title}, status=status)


def _welcome(request: HttpRequest, user: User) -> HttpResponse:
    login(request, user, "django.contrib.auth.backends.ModelBackend")
    messages.success(request, f"Welcome, {user.get_username()}. You can submit generations now.")
    return redirect("account")


def _spend(request: HttpRequest, what: str, times: int) -> timedelta | None:
    return throttle.spend([throttle.Limit(what, (throttle.address_of(request),), times)])


class ResetForm(PasswordResetForm):
    """Mails the link; a mail server that refuses it is logged, and the answer is the same."""

    def send_mail(self, *args: Any, **kwargs: Any) -> None:
        _, _, context, _, to = args[:5]
        link = reverse("password-new", args=[context["uid"], context["token"]])
        mail.send(
            to,
            "Evalsite: choose a new password",
            f"Somebody, probably you, asked for a new password for {context['user']}.\n\n"
            f"{context['protocol']}://{context['domain']}{link}\n\n"
            "If it was not you, do nothing: the password stays as it is.\n",
        )


class LostPassword(PasswordResetView):
    """Asks for the address to mail a link to; without e-mail it says whom to ask."""

    template_name = "accounts/password_lost.html"
    form_class = ResetForm
    success_url = reverse_lazy("login")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(sends_email=settings.SENDS_EMAIL, **kwargs)

    def form_valid(self, form: PasswordResetForm) -> HttpResponse:
        if not settings.SENDS_EMAIL:
            raise Http404
        if wait := _spend(self.request, "reset", RESETS_EACH):
            form.add_error(None, too_many(wait))
            return self.form_invalid(form)
        messages.info(self.request, "If the address belongs to an account, a link is on its way.")
        return super().form_valid(form)


class NewPassword(PasswordResetConfirmView):
    """Where a reset link leads, from an e-mail or from the administrator."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, "The password is changed. Sign in with it.")
        return super().form_valid(form)
