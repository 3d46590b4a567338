"""Forms about language models."""

from __future__ import annotations

from django import forms

from grading import language_models
from grading.model_merges import MAX_NAME_CHARS
from grading.models import LanguageModel

REASON_CHARS = 2_000


class AliasForm(forms.Form):
    name = forms.CharField(
        label="Another name",
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Write the name."},
    )


class MergeForm(forms.Form):
    """Into which model, by any of its names, and why."""

    into = forms.CharField(
        label="Merge into",
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
        error_messages={"required": "Name the model it is the same as."},
    )
    reason = forms.CharField(
        max_length=REASON_CHARS,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say why they are the same model."},
    )

    def clean_into(self) -> LanguageModel:
        found = language_models.named(self.cleaned_data["into"])
        if found is None:
            raise forms.ValidationError("No model has this name.")
        return found
