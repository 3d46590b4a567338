"""The calm text an instance prints when it is ready."""

from __future__ import annotations

import textwrap

from evalsite import datadir
from evalsite.instance import Plan
from grading.engine.limits import ADDRESS_SPACE_BYTES, affordable_address_space
from grading.engine.sandbox import Sandbox

WIDTH = 100
LABEL = 16


def text(plan: Plan, sandbox: Sandbox, password: str | None) -> str:
    """What a newcomer needs: where it is, where its data are, how safe it is, how to log in.

    ``password`` None: the first start has shown it.
    """
    rows = [
        ("URL", plan.url),
        ("Data directory", str(datadir.data_dir())),
        ("Sandbox tier", sandbox.tier),
        *_memory(plan),
        ("Hardening", ", ".join(sandbox.hardening) or "none"),
        *[("Missing", finding.line()) for finding in sandbox.findings()],
        ("User name", "admin"),
        ("Password", _password(password)),
    ]
    return "\n".join(["", "Evalsite is ready.", "", *map(_row, rows), ""])


def _memory(plan: Plan) -> list[tuple[str, str]]:
    """A row where the workers have to share less memory than each program may have."""
    cap = affordable_address_space(plan.workers)
    if cap >= ADDRESS_SPACE_BYTES:
        return []
    return [("Memory", f"{cap // 1024**2} MB for each program: {plan.workers} workers share it")]


def _row(row: tuple[str, str]) -> str:
    label, value = row
    # Paths and addresses stay in one piece, to be copied.
    return textwrap.fill(
        value,
        WIDTH,
        initial_indent=f"  {label:<{LABEL}}",
        subsequent_indent=" " * (LABEL + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _password(password: str | None) -> str:
    if password is None:
        return "as it was; a new one: .venv/bin/python manage.py changepassword admin"
    return f"{password}   (shown only now)"
