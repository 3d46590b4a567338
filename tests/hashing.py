"""Password hashes for tests."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class FewRounds(PBKDF2PasswordHasher):
    """Django's own hash; its rounds, which make guessing slow, are all that is left out."""

    iterations = 1_000
