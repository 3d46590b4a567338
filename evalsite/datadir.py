"""The data directory: 0700, with the secrets that the first start makes (0600).

Standard library only, so that settings can use it before Django is configured.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from evalsite import env

BASE_DIR = Path(__file__).resolve().parent.parent


def data_dir() -> Path:
    """``EVALSITE_DATA_DIR`` (default ``var/`` in the checkout), created on first use."""
    directory = env.path("EVALSITE_DATA_DIR", BASE_DIR / "var")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def secret(name: str) -> str:
    """The secret kept in file ``name`` of the data directory, made on first use.

    Two processes that start together agree on one value: the file is published by a link,
    which fails for the second one.
    """
    file = data_dir() / name
    if not file.exists():
        draft = file.with_name(f".{name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_urlsafe(48))
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return file.read_text(encoding="ascii")
