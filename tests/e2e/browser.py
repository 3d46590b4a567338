"""A headless Chromium whose pages report everything that is wrong with them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = {360: 740, 1280: 900}
SCHEMES = ("light", "dark")
# Of axe's rules about colour all that run by default, so without those of level AAA.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} blocked ${event.blockedURI} ${event.sample}`);
});
"""


def executable() -> str:
    """Path of Chromium; skips the test where there is none."""
    found = os.environ.get("EVALSITE_CHROMIUM") or shutil.which("chromium")
    found = found or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("needs Chromium: apt-get install chromium, or EVALSITE_CHROMIUM=PATH")
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser for one test session."""
    path = executable()
    # Playwright's loop runs in this thread, which Django takes for an async context.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Visitor:
    """One browser window. ``faults`` collects console errors, page errors, CSP violations."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)
    expected_status: int = 200

    def go(self, path: str, status: int = 200) -> None:
        """Load a page and expect its status."""
        self.expected_status = status
        response = self.page.goto(self.base + path)
        assert response is not None
        assert response.status == status, f"{path}: {response.status}"

    def sign_in(self, name: str, password: str) -> None:
        self.go("/login/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def looks(self) -> Iterator[tuple[str, int]]:
        """The page in every scheme and width, one after the other, without loading it again."""
        for width, height in WIDTHS.items():
            self.page.set_viewport_size({"width": width, "height": height})
            for scheme in SCHEMES:
                self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                self.page.evaluate("document.getAnimations().forEach((one) => one.cancel())")
                yield scheme, width

    def problems(self, colours_only: bool = False) -> list[str]:
        """Faults since the last call, axe findings, sideways scroll; each names the page.

        ``colours_only``: nothing but them changed since the last call.
        """
        found = [*self.faults, *self._axe(colours_only), *self._overflow()]
        self.faults.clear()
        return [f"{self.page.url}: {problem}" for problem in found]

    def shoot(self, file: Path) -> None:
        self.page.screenshot(path=file, full_page=True)

    def _axe(self, colours_only: bool) -> list[str]:
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if colours_only:
            options["runOnly"] = {"type": "rule", "values": COLOUR_RULES}
        found: list[dict[str, Any]] = self.page.evaluate(
            "(options) => axe.run(document, options).then((found) => found.violations)", options
        )
        return [
            f"axe {rule['id']} ({rule['impact']}): {node['html'][:160]} {node['failureSummary']}"
            for rule in found
            for node in rule["nodes"]
        ]

    def _overflow(self) -> list[str]:
        root = "document.documentElement"
        wider = self.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        return [f"scrolls sideways by {wider} px"] if wider > 0 else []

    def note_console(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        # Chromium logs the status of an error page that was asked for.
        if self.expected_status >= 400 and "Failed to load resource" in message.text:
            return
        self.faults.append(f"console {message.type}: {message.text} {message.location.get('url')}")


@contextmanager
def visiting(
    browser: Browser,
    base: str,
    scheme: str = "light",
    width: int = 1280,
    javascript: bool = True,
    touch: bool = False,
) -> Iterator[Visitor]:
    """A fresh window, without cookies, watched from its first byte."""
    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": WIDTHS.get(width, 900)},
        java_script_enabled=javascript,
        has_touch=touch,
        # No colour is looked at on its way to another.
        reduced_motion="reduce",
        accept_downloads=True,
    )
    context.add_init_script(REPORT_VIOLATIONS)
    visitor = Visitor(context.new_page(), base)
    visitor.page.on("console", visitor.note_console)
    visitor.page.on("pageerror", lambda error: visitor.faults.append(f"page error: {error}"))
    try:
        yield visitor
    finally:
        context.close()
