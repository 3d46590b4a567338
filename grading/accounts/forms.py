"""Forms of accounts: log in, sign up, invite, give roles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UserCreationForm
from django.contrib.auth.models import User

from grading.accounts import throttle
from grading.accounts.roles import GIVEN, Role

ROLE_CHOICES = [(role.value, role.value) for role in GIVEN]
DAYS_CHOICES = [(1, "1 day"), (7, "7 days"), (30, "30 days")]


def too_many(wait: timedelta) -> forms.ValidationError:
    minutes = max(1, round(wait.total_seconds() / 60))
    unit = "minute" if minutes == 1 else "minutes"
    return forms.ValidationError(
        f"Too many attempts. Try again in {minutes} {unit}.", code="too_many"
    )


class LogInForm(AuthenticationForm):
    """Log-in with a brake on guessing; what is refused never reaches the password check."""

    def clean(self) -> dict[str, Any]:
        assert self.request is not None
        address = throttle.address_of(self.request)
        limits = throttle.log_in_limits(self.cleaned_data.get("username", ""), address)
        if wait := throttle.spend(limits):
            raise too_many(wait)
        cleaned: dict[str, Any] = super().clean()
        # Right for this name; the address has still tried the others.
        throttle.forgive([limit for limit in limits if limit.what != "log in from"])
        return cleaned


class AccountForm(UserCreationForm):
    """A new account."""

    email = forms.EmailField(
        required=False, label="E-mail", help_text="Only to reset a lost password."
    )

    class Meta:
        model = User
        fields = ("username", "email")


class RolesField(forms.MultipleChoiceField):
    def __init__(self) -> None:
        super().__init__(
            choices=ROLE_CHOICES,
            required=False,
            widget=forms.CheckboxSelectMultiple,
            label="Roles",
        )

    def clean(self, value: Any) -> list[Role]:
        return [Role(name) for name in super().clean(value)]


class InvitationForm(forms.Form):
    email = forms.EmailField(required=False, label="E-mail")
    days = forms.TypedChoiceField(choices=DAYS_CHOICES, coerce=int, initial=7, label="Open for")
    roles = RolesField()


class PersonForm(forms.Form):
    roles = RolesField()
    is_active = forms.BooleanField(required=False, label="May sign in")


class PasswordForm(forms.Form):
    """Asks for one's own password again before something that matters."""

    password = forms.CharField(
        strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if wait := throttle.spend([throttle.Limit("confirm", (str(self.user.pk),), 10)]):
            raise too_many(wait)
        if not self.user.check_password(password):
            raise forms.ValidationError("This is not your password.")
        return password
