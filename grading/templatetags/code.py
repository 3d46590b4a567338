"""Tags that show text a model wrote."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import template
from django.utils.safestring import SafeString

from grading import hostile

register = template.Library()


@register.inclusion_tag("partials/code.html")
def code_lines(
    text: str,
    label: str,
    python: bool = False,
    used: Collection[int] = (),
    hits: Collection[int] = (),
    anchor: str = "",
) -> dict[str, Any]:
    """A named, focusable region of numbered lines; ``anchor`` prefixes the ids of hit lines."""
    view = hostile.code_view(text, python, used, hits)
    return {"view": view, "label": label, "python": python, "anchor": anchor}


@register.filter
def shown(text: str) -> SafeString:
    """Hostile text in one piece; capped at 4,096 characters."""
    return hostile.excerpt(text, 4096)


@register.filter
def brief(text: str) -> SafeString:
    return hostile.excerpt(text, 160)


@register.filter
def words(name: str) -> str:
    """``prompt_style`` -> ``Prompt style``."""
    return name.replace("_", " ").capitalize()


@register.simple_tag
def python_inline(text: str) -> SafeString:
    """One target, highlighted; line ends kept as such."""
    view = hostile.code_view(text, python=True)
    lines = SafeString("\n".join(line.html for line in view.lines))
    return lines if not view.cut else SafeString(f"{lines} … {view.cut}")
