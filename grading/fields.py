"""Text that may hold anything, on its way into the database."""

from __future__ import annotations

import json
import re
from typing import Any

from django.db import models

# What PostgreSQL's text refuses.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def plain(text: str) -> str:
    """``text`` without what a text column cannot hold."""
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


class HostileJSONField(models.TextField):
    """Any JSON value, kept as ASCII JSON text.

    Model output holds NUL characters and lone surrogates, which PostgreSQL's text and jsonb
    refuse; as escapes inside ASCII text they survive every database and come back unchanged.
    """

    # For the type checker: any JSON value goes in and comes out.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, ensure_ascii=True)

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj), ensure_ascii=True)
