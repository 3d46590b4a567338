"""The texts in a value of a record: a string, a list of them, chat messages, an API's choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 4


class NoText(ValueError):
    """The value is neither a text nor a list of texts; ``value`` is the part that is none."""

    def __init__(self, value: object) -> None:
        super().__init__(type(value).__name__)
        self.value = value


def texts_of(value: Any) -> list[str]:
    """The texts in their order; null is the empty text. Raises `NoText`."""
    return list(_texts(value, MAX_DEPTH))


def _texts(value: Any, depth: int) -> Iterator[str]:
    if value is None or isinstance(value, str):
        yield value or ""
    elif isinstance(value, dict):
        yield from _of_message(value, depth)
    elif isinstance(value, list) and depth:
        if any(isinstance(item, dict) and "role" in item for item in value):
            yield _last_reply(value)
        else:
            for item in value:
                yield from _texts(item, depth - 1)
    else:
        raise NoText(value)


def _of_message(value: dict[str, Any], depth: int) -> Iterator[str]:
    """A chat message, or what a chat API answers: choices that hold messages."""
    if isinstance(value.get("choices"), list) and depth:
        yield from _texts(value["choices"], depth - 1)
    elif "message" in value and depth:
        yield from _texts(value["message"], depth - 1)
    elif "content" in value:
        yield _content(value["content"])
    elif isinstance(value.get("text"), str):
        yield value["text"]
    else:
        raise NoText(value)


def _last_reply(messages: list[Any]) -> str:
    """What the assistant said last; empty where it said nothing."""
    replies = [
        message.get("content")
        for message in messages
        if isinstance(message, dict) and message.get("role") in ("assistant", "model")
    ]
    return _content(replies[-1]) if replies else ""


def _content(value: Any) -> str:
    """A message's content: a string, or parts of which some are text."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    if value is not None and not isinstance(value, str):
        raise NoText(value)
    return value or ""
