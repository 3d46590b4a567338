"""Making hostile text fit to store and show."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b.?")
# Control characters but tab and line feed, bidirectional overrides, and lone surrogates.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean(text: str, limit: int) -> str:
    """``text`` without control sequences, at most ``limit`` characters, cut with a marker."""
    text = _UNFIT.sub("\ufffd", _ESCAPES.sub("", text[: 4 * limit].replace("\r\n", "\n")))
    if len(text) <= limit:
        return text
    return text[: limit - 2] + " …"
