"""Django settings, all from ``EVALSITE_*`` environment variables with working defaults.

docs/operations.md describes every variable.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from csp.constants import NONE, SELF

from evalsite import datadir, env
from evalsite.checks import is_loopback

BASE_DIR = datadir.BASE_DIR
DATA_DIR = datadir.data_dir()

DEBUG = env.flag("EVALSITE_DEBUG")
SECRET_KEY = env.text("EVALSITE_SECRET_KEY") or datadir.secret("secret_key")
ALLOWED_HOSTS = env.words("EVALSITE_ALLOWED_HOSTS", ("127.0.0.1", "localhost", "[::1]"))
# Whether people off this host can reach the site; `manage.py up --host` says so, too.
FOR_OTHERS = env.flag("EVALSITE_FOR_OTHERS") or not all(map(is_loopback, ALLOWED_HOSTS))
ALLOW_UNSAFE = env.flag("EVALSITE_ALLOW_UNSAFE")
VERDICT_CACHE = env.flag("EVALSITE_VERDICT_CACHE", default=True)
CSRF_TRUSTED_ORIGINS = env.words("EVALSITE_TRUSTED_ORIGINS")
# Set where a proxy in front of the site speaks HTTPS to its visitors.
HTTPS = env.flag("EVALSITE_HTTPS")

INSTALLED_APPS = [
    "evalsite",
    "grading",
    "leaderboard",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_rq",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # Before the body is read, which the CSRF check does.
    "evalsite.middleware.refuse_unfit_requests",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "evalsite.urls"
WSGI_APPLICATION = "evalsite.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def _database(url: str) -> dict[str, Any]:
    """SQLite in the data directory, or the PostgreSQL server that ``url`` names."""
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATA_DIR / "db.sqlite3",
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
            # A file, not memory: tests run worker processes that open it too.
            "TEST": {"NAME": DATA_DIR / "test.sqlite3"},
        }
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/"):
        shown = re.sub(r"//[^@/]*@", "//...@", url)
        raise env.BadSetting(
            f"EVALSITE_DATABASE_URL={shown!r}: use postgresql://user:password@host:port/name"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


DATABASES = {"default": _database(env.text("EVALSITE_DATABASE_URL"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"


def _mail_server(url: str) -> dict[str, Any]:
    """Django's settings for the server that ``url`` names; TLS unless it is on this host."""
    parts = urlsplit(url)
    if parts.scheme not in {"smtp", "smtps"} or not parts.hostname:
        raise env.BadSetting(
            "EVALSITE_EMAIL_URL: use smtp://USER:PASSWORD@HOST:587 or smtps://USER:PASSWORD@HOST:465"
        )
    wrapped = parts.scheme == "smtps"
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or (465 if wrapped else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": wrapped,
        "EMAIL_USE_TLS": not wrapped and not is_loopback(parts.hostname),
    }


EMAIL_URL = env.text("EVALSITE_EMAIL_URL")
SENDS_EMAIL = bool(EMAIL_URL)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("EVALSITE_EMAIL_FROM", "evalsite@localhost")
if EMAIL_URL:
    globals().update(_mail_server(EMAIL_URL))

# An outside broker, or the embedded one, whose port is chosen when it starts.
REDIS_URL = env.text("EVALSITE_REDIS_URL")
GRADE_QUEUE = "grade"
# Regrades, which wait for everything else.
LOW_QUEUE = "regrade"
RQ_QUEUES = {
    name: {
        "URL": REDIS_URL or "redis://127.0.0.1:1/0",
        "SERIALIZER": "rq.serializers.JSONSerializer",
        "DEFAULT_TIMEOUT": 3600,
        "DEFAULT_RESULT_TTL": 0,
    }
    for name in (GRADE_QUEUE, LOW_QUEUE)
}
RQ = {"JOB_CLASS": "evalsite.queueing.Job", "WORKER_CLASS": "evalsite.queueing.Worker"}
RQ_SHOW_ADMIN_LINK = False
# Called by the sweep process every round, after it has mended what was lost.
SWEEP_STEPS = ("leaderboard.snapshots.take_due", "leaderboard.audit.audit_due")

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
# Whether strangers make accounts for themselves; otherwise the administrator invites them.
SIGN_UP = env.flag("EVALSITE_SIGN_UP")

# How much one person may send in a day and have waiting at once; 0 is no limit.
QUOTA_SUBMISSIONS = env.integer("EVALSITE_QUOTA_SUBMISSIONS", default=100, minimum=0)
QUOTA_SAMPLES = env.integer("EVALSITE_QUOTA_SAMPLES", default=500_000, minimum=0)
QUOTA_WAITING = env.integer("EVALSITE_QUOTA_WAITING", default=500_000, minimum=0)

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "evalsite" / "assets"]
# Served straight from the source tree: nothing to collect before the first start.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = False
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0

# One upload is one file; the caps on what is inside it are in grading/uploads.py.
DATA_UPLOAD_MAX_MEMORY_SIZE = None
DATA_UPLOAD_MAX_NUMBER_FILES = 4

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": env.text("EVALSITE_LOG_LEVEL", "INFO")},
}
