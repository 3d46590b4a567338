"""Short random names of records, for use in URLs."""

from __future__ import annotations

import secrets

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def public_id() -> str:
    """Ten characters without look-alikes: 31**10 values."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))
