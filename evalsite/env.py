"""Typed readers for environment variables; a value that cannot be read stops the start.

Every reader also looks for ``NAME_FILE`` and reads the value from that file, so that secrets
can be mounted instead of passed. Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path


class BadSetting(Exception):
    """An environment variable holds a value that Evalsite cannot use."""


def text(name: str, default: str = "") -> str:
    """Value of ``name``, or of the file named by ``name_FILE``, or ``default``."""
    if name in os.environ:
        return os.environ[name]
    file_name = os.environ.get(f"{name}_FILE")
    if file_name is None:
        return default
    try:
        return Path(file_name).read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise BadSetting(f"{name}_FILE: cannot read {file_name}: {problem.strerror}") from problem


def flag(name: str, default: bool = False) -> bool:
    """``1/true/yes/on`` or ``0/false/no/off``."""
    value = text(name).strip().lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise BadSetting(f"{name}={value!r}: use 1 or 0")


def integer(name: str, default: int, minimum: int | None = None) -> int:
    value = text(name).strip()
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise BadSetting(f"{name}={value!r}: use a whole number") from None
    if minimum is not None and number < minimum:
        raise BadSetting(f"{name}={number}: use {minimum} or more")
    return number


def path(name: str, default: Path) -> Path:
    value = text(name).strip()
    return Path(value).expanduser().resolve() if value else default


def words(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Comma-separated list."""
    value = text(name).strip()
    if not value:
        return list(default)
    return [word.strip() for word in value.split(",") if word.strip()]
