"""What an operator may write into an environment, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from grading.engine.environment import Spec
from grading.engine.outcome import PlatformError

MIN_ADDRESS_SPACE = 256 * 1024**2
MAX_ADDRESS_SPACE = 2**62
NO_LIMIT = 0
_SIZE = re.compile(r"(\d+) ?([KMGT]?)(?:I?B)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def requirements(text: str) -> list[str]:
    """The requirements of a file: its lines without comments, continued ones joined."""
    joined = re.sub(r"\\\n[ \t]*", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def address_space(text: str) -> int | None:
    """Bytes of ``8G`` or ``512 MiB``, `NO_LIMIT` of ``none``, None of ``default``.

    Raises ValueError for anything else.
    """
    if text in ("none", "default"):
        return NO_LIMIT if text == "none" else None
    size = _SIZE.fullmatch(text.upper())
    if size is None:
        raise ValueError(f"{text!r}: use a size such as 8G, none, or default")
    return int(size[1]) * 1024 ** " KMGT".index(size[2] or " ")


def problems(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it) of an environment's fields."""
    lists = [name for name in ("packages", "provision") if not _are_texts(content[name])]
    for name in lists:
        yield name, 'Write a list of strings, such as ["numpy"].'
    variables = content["variables"]
    if not isinstance(variables, dict) or not all(map(_is_variable, variables.items())):
        yield "variables", 'Write names and texts, such as {"NLTK_DATA": "{venv}/nltk"}.'
    size = content["address_space"]
    if size is not None and size != NO_LIMIT and not MIN_ADDRESS_SPACE <= size <= MAX_ADDRESS_SPACE:
        yield "address_space", f"Write at least {MIN_ADDRESS_SPACE} bytes, or 0 for no limit."
    if not lists:
        try:
            Spec(packages=tuple(content["packages"]))
        except PlatformError as problem:
            yield "packages", f"{problem}."


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_variable(pair: tuple[Any, Any]) -> bool:
    name, text = pair
    return bool(_NAME.fullmatch(name)) and _is_text(text)
