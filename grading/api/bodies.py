"""Values that calls take: named by a schema, held to the rules of the page's form."""

from __future__ import annotations

from typing import Any, TypeVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from ninja import Schema
from pydantic import ConfigDict, field_validator

from grading.api.errors import Problem
from grading.models import BenchmarkVersion

AForm = TypeVar("AForm", bound=forms.Form)


class Body(Schema):
    """A name that is not known is refused, so that none is misspelt unseen."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def holds_text(cls, value: Any) -> Any:
        """JSON can spell halves of characters, which nothing can store."""
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            raise ValueError("a half of a surrogate pair is no character")
        return value


class VersionName(Body):
    """A version of a benchmark, such as {"benchmark": "humaneval", "version": 2}."""

    benchmark: str
    version: int


def form_data(body: Body, *versions: str) -> dict[str, Any]:
    """The fields as a form takes them; those called ``versions`` by their primary keys.

    Raises `Problem` for a version that does not exist.
    """
    data: dict[str, Any] = body.model_dump()
    for name in versions:
        if data[name] is not None:
            data[name] = _version_id(name, data[name]["benchmark"], data[name]["version"])
    return data


def _version_id(field: str, slug: str, number: int) -> int:
    found = BenchmarkVersion.objects.filter(benchmark__slug=slug, number=number).first()
    if found is None:
        raise invalid([(field, f"there is no version {number} of {slug!r}")])
    return found.pk


def valid(form: AForm) -> AForm:
    """The form with its data cleaned. Raises `Problem` with its errors by field."""
    if not form.is_valid():
        raise invalid(
            ("" if field == NON_FIELD_ERRORS else field, str(message))
            for field, messages in form.errors.items()
            for message in messages
        )
    return form


def invalid(errors: Any) -> Problem:
    """The answer to wrong values; ``errors`` are (field, what is wrong), no field for the whole."""
    listed = [{"field": field, "detail": detail} for field, detail in errors]
    told = "; ".join(f"{one['field']}: {one['detail']}".removeprefix(": ") for one in listed)
    return Problem(422, "invalid parameters", told, errors=listed)
