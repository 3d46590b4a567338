"""Forms of regrades."""

from __future__ import annotations

from typing import Any

from django import forms

from grading.engine.outcome import Outcome
from grading.forms import VersionField
from grading.models import Benchmark, BenchmarkVersion
from grading.regrades import MOST_REPEATS, Selection

REASON_CHARS = 2_000


class RegradeForm(forms.Form):
    """What to regrade, how often and why; all that is chosen holds together."""

    group = forms.CharField(required=False, label="Crash group", max_length=10)
    submission = forms.CharField(required=False, label="Submission", max_length=10)
    benchmark = forms.ChoiceField(required=False, label="Benchmark")
    version = forms.IntegerField(required=False, min_value=1, max_value=10**6, label="Its version")
    task = forms.CharField(required=False, label="Task", max_length=200)
    model = forms.CharField(required=False, label="Model", max_length=200)
    outcome = forms.ChoiceField(
        required=False,
        label="Outcome",
        choices=[("", "any"), *((outcome.value, outcome.value) for outcome in Outcome)],
    )
    worker = forms.CharField(required=False, label="Worker", max_length=120)
    grader_below = forms.IntegerField(
        required=False, min_value=1, max_value=10**6, label="Grader older than version"
    )
    repeats = forms.IntegerField(
        initial=1, min_value=1, max_value=MOST_REPEATS, label=f"Runs of each, 1 to {MOST_REPEATS}"
    )
    target = VersionField(
        queryset=BenchmarkVersion.objects.select_related("benchmark"),
        required=False,
        label="Against the tasks of",
        empty_label="their own version",
    )
    reason = forms.CharField(
        label="Reason",
        max_length=REASON_CHARS,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say why: the reason is shown beside what changes."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["benchmark"]
        field.choices = [("", "any"), *Benchmark.objects.values_list("slug", "title")]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors and not self.selection(data).chosen():
            raise forms.ValidationError("Choose what to regrade: everything is never meant.")
        return data

    @staticmethod
    def selection(data: dict[str, Any]) -> Selection:
        return Selection(**{name: data[name] for name in Selection.__slots__})
