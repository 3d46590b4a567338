"""Forms of crash review."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User

from grading import triage
from grading.forms import VersionField
from grading.models import BenchmarkVersion, CrashGroup
from grading.queries.triage import NOBODY, assignable

NOTE_CHARS = 10_000


class DecisionForm(forms.Form):
    """A decision on one group or many; what is left empty stays as it is."""

    state = forms.ChoiceField(required=False, label="State")
    assignee = forms.ChoiceField(required=False, label="Assigned to")
    note = forms.CharField(
        required=False,
        label="Reason or note",
        max_length=NOTE_CHARS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    ignored_until = forms.IntegerField(
        required=False, min_value=1, max_value=10**9, label="Ignored until so many samples"
    )
    fixed_in_grader = forms.IntegerField(
        required=False, min_value=1, max_value=10**6, label="Fixed in grader version"
    )
    fixed_in_version = VersionField(
        BenchmarkVersion.objects.select_related("benchmark"),
        required=False,
        label="Fixed in benchmark version",
        empty_label="none",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [person.get_username() for person in assignable()]
        states = [(state.value, state.label) for state in triage.CHOSEN]
        _choice(self, "state").choices = [("", "as it is"), *states]
        _choice(self, "assignee").choices = [
            ("", "as it is"),
            (NOBODY, NOBODY),
            *((name, name) for name in names if name != NOBODY),
        ]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not any(data.get(name) for name in ("state", "assignee", "note")):
            raise forms.ValidationError("Nothing to change: choose a state, a person or write.")
        return data

    def decision(self) -> triage.Decision:
        """What was asked for; the form is valid."""
        data = self.cleaned_data
        name = data["assignee"]
        person: User | bool | None = None
        if name:
            person = False if name == NOBODY else User.objects.get(username=name)
        return triage.Decision(
            state=CrashGroup.State(data["state"]) if data["state"] else None,
            assignee=person,
            note=data["note"],
            ignored_until=data["ignored_until"],
            fixed_in_grader=data["fixed_in_grader"],
            fixed_in_version=data["fixed_in_version"],
        )


def _choice(form: forms.Form, name: str) -> Any:
    return form.fields[name]
