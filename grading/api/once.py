"""Idempotency keys: a call that is sent again for want of an answer is carried out once."""

from __future__ import annotations

import hashlib
import json
from typing import BinaryIO, TypeAlias

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from grading.api.errors import Problem
from grading.models import IdempotencyKey, Regrade, Submission

HEADER = "Idempotency-Key"
MAX_CHARACTERS = 200

Made: TypeAlias = Submission | Regrade


def key_of(request: HttpRequest) -> str:
    """The key sent along, empty for none. Raises `Problem` for one that is too long."""
    key: str = request.headers.get(HEADER, "")
    if len(key) > MAX_CHARACTERS:
        raise Problem(422, "invalid parameters", f"{HEADER}: at most {MAX_CHARACTERS} characters.")
    return key


def fingerprint(request: HttpRequest, stream: BinaryIO) -> str:
    """What tells one request from another: its address, parameters and the bytes it carries."""
    named = [request.path, sorted(request.GET.lists())]
    digest = hashlib.sha256(json.dumps(named).encode())
    stream.seek(0)
    for block in iter(lambda: stream.read(1 << 16), b""):
        digest.update(block)
    stream.seek(0)
    return digest.hexdigest()


def earlier(user: AbstractBaseUser, key: str, seen: str) -> Made | None:
    """What the same request with this key led to. Raises `Problem` where it was another request."""
    known = IdempotencyKey.objects.filter(user_id=user.pk, key=key).first()
    if known is None:
        return None
    if known.fingerprint != seen:
        raise Problem(422, "key used before", f"{HEADER}: it was sent with another request before.")
    return known.submission or known.regrade


def remember(user: AbstractBaseUser, key: str, seen: str, made: Made) -> None:
    """Raises `Problem` where the same key came with a second request at the same time."""
    try:
        with transaction.atomic():
            led_to = {"submission" if isinstance(made, Submission) else "regrade": made}
            IdempotencyKey.objects.create(user_id=user.pk, key=key, fingerprint=seen, **led_to)
    except IntegrityError:
        raise Problem(
            409, "sent twice at once", "Another request with this key is under way."
        ) from None
