"""Forms of the grading pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings

from grading import queue_control, tokens
from grading.engine.task import Format
from grading.intake.fields import OFFERED_NAME_CHARS, Choices
from grading.intake.task_table import Match
from grading.models import BenchmarkVersion, Quota, Submission
from grading.permissions import Viewer, visible_versions

NOTES_CHARS = 2_000
SCOPE_LABELS = {
    "read": "read what you can read",
    "submit": "submit and cancel",
    "triage": "review crashes",
    "admin": "administer",
}


class VersionField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.benchmark.title}, version {obj.number}"


ACCEPTED_FILES = ".jsonl,.json,.ndjson,.gz,.zst,.zip"
READINGS = [
    ("", "as detected"),
    (Format.GENERATION.value, "chat replies or whole programs"),
    (Format.COMPLETION.value, "continuations of the prompt"),
]
MATCHES = [
    ("", "as detected"),
    (Match.ID.value, "their exact id"),
    (Match.NUMBER.value, "the number in their id"),
    (Match.PROMPT.value, "their prompt"),
    (Match.POSITION.value, "their place, from 0"),
]


class ReadingForm(forms.Form):
    """A file and how to read it: the fields besides ``file`` correct what was detected.

    ``file`` may be left out where one is staged.
    """

    file = forms.FileField(
        label="File",
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ACCEPTED_FILES}),
    )
    text_field = forms.CharField(
        label="Text field", required=False, max_length=OFFERED_NAME_CHARS, widget=forms.Select
    )
    reading = forms.ChoiceField(label="Texts are", required=False, choices=READINGS)
    match = forms.ChoiceField(label="Find tasks by", required=False, choices=MATCHES)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_fields(())

    def offer_fields(self, names: Iterable[str]) -> None:
        """Text fields to choose from, with the one chosen now."""
        chosen = self.data.get("text_field", "")
        offered = dict.fromkeys([*names, chosen]) if chosen else dict.fromkeys(names)
        select: Any = self.fields["text_field"].widget
        select.choices = [("", "as detected"), *((name, name) for name in offered)]

    def choices(self) -> Choices:
        """Corrections of what was detected."""
        data = self.cleaned_data
        return Choices(data["text_field"], data["reading"], data["match"])


class SubmissionForm(ReadingForm):
    """One upload: the file, what it answers, who wrote it and how.

    ``benchmark`` may be left out where the file's tasks tell it.
    """

    benchmark = VersionField(
        queryset=BenchmarkVersion.objects.none(), required=False, empty_label="as detected"
    )
    model = forms.CharField(
        label="Language model",
        max_length=200,
        widget=forms.TextInput(attrs={"list": "model-names", "autocomplete": "off"}),
        error_messages={"required": "Name the language model, such as Petrel 9B."},
    )
    visibility = forms.ChoiceField(
        label="Visible to",
        choices=[
            (Submission.Visibility.PUBLIC, "everyone"),
            (Submission.Visibility.UNLISTED, "who has the link"),
            (Submission.Visibility.PRIVATE, "me and staff"),
        ],
    )
    temperature = forms.FloatField(
        required=False,
        min_value=0,
        max_value=10,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
        error_messages={"invalid": "Write a number with a point, such as 0.2."},
    )
    n = forms.IntegerField(
        label="Samples per task",
        required=False,
        min_value=1,
        max_value=10_000,
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
        error_messages={"invalid": "Write a whole number, such as 10."},
    )
    prompt_style = forms.CharField(required=False, max_length=200)
    notes = forms.CharField(
        required=False, max_length=NOTES_CHARS, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, viewer: Viewer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["benchmark"]
        field.queryset = newest_versions(viewer)
        wanted = self.initial.pop("benchmark", None)
        offered = list(field.queryset)
        named = [one for one in offered if one.benchmark.slug == wanted or len(offered) == 1]
        field.initial = next(iter(named), None)

    def choose(self, version: BenchmarkVersion) -> None:
        """Show ``version`` as the chosen one, whoever chose it."""
        self.cleaned_data["benchmark"] = version
        data: Any = self.data
        changed = data.copy()
        changed["benchmark"] = str(version.pk)
        self.data = changed

    def clean_model(self) -> str:
        name: str = self.cleaned_data["model"]
        if not name.isprintable():
            raise forms.ValidationError("Use printable characters only.")
        return name

    def settings(self) -> dict[str, Any]:
        """What is known about how the generations were made; only what was filled in."""
        names = ("temperature", "n", "prompt_style", "notes")
        values = {name: self.cleaned_data[name] for name in names}
        return {name: value for name, value in values.items() if value not in (None, "")}


class VisibilityForm(forms.ModelForm):
    """Who sees a submission, and how much of it."""

    class Meta:
        model = Submission
        fields = ("visibility", "generations_hidden")
        labels = {"generations_hidden": "Hide what the model wrote"}


class QuotaForm(forms.ModelForm):
    """A person's own limits; an empty one is the site's."""

    class Meta:
        model = Quota
        fields = ("submissions", "samples", "waiting")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        of_the_site = {
            "submissions": settings.QUOTA_SUBMISSIONS,
            "samples": settings.QUOTA_SAMPLES,
            "waiting": settings.QUOTA_WAITING,
        }
        for name, limit in of_the_site.items():
            site = f"{limit:,}" if limit else "no limit"
            self.fields[name].help_text = f"Empty: the site's, {site}. 0: no limit."


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(
        max_length=80,
        help_text="What it is for, such as nightly evaluation.",
        error_messages={"required": "Give it a name, to know it again."},
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose what the token may do."},
    )
    days = forms.TypedChoiceField(
        label="Expires",
        coerce=lambda text: int(text) or None,
        choices=[(90, "in 90 days"), (30, "in 30 days"), (365, "in a year"), (0, "never")],
    )

    def __init__(self, user: Viewer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["scopes"]
        field.choices = [(scope, SCOPE_LABELS[scope]) for scope in tokens.usable_scopes(user)]
        field.initial = ["read", "submit"]


class QueueForm(forms.Form):
    """What all workers are told; to stop them takes a reason."""

    mode = forms.ChoiceField(choices=queue_control.Mode.choices)
    reason = forms.CharField(
        label="Reason to stop",
        max_length=queue_control.REASON_CHARS,
        help_text="People who wait read it.",
        error_messages={"required": "Say why: people who wait read it."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = self.data.get("mode") != queue_control.Mode.RUNNING


def newest_versions(viewer: Viewer) -> Any:
    """The newest version of each benchmark that ``viewer`` may submit to."""
    versions = visible_versions(viewer).select_related("benchmark")
    newest: dict[int, int] = {}
    for pk, benchmark in versions.order_by("number").values_list("pk", "benchmark"):
        newest[benchmark] = pk
    return versions.filter(pk__in=newest.values()).order_by("benchmark__title")
