"""E-mail, where it is configured; everything works without."""

from __future__ import annotations

import logging
import smtplib

from django.conf import settings
from django.core.mail import send_mail

log = logging.getLogger(__name__)


def send(to: str, subject: str, text: str) -> bool:
    """Was it handed to the mail server? One that refuses is logged, not raised."""
    if not settings.SENDS_EMAIL:
        return False
    try:
        send_mail(subject, text, None, [to])
    except (OSError, smtplib.SMTPException) as problem:
        log.error("e-mail to %s: %s", to, problem)
        return False
    return True
