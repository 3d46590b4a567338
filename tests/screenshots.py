"""Take the pictures in docs/images anew from a running instance.

    .venv/bin/python tests/screenshots.py http://127.0.0.1:8000 humaneval MODEL_A MODEL_B

MODEL_A and MODEL_B are short names of models, as in their addresses. Needs Chromium.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.e2e.browser import launched, visiting  # noqa: E402

FOLDER = ROOT / "docs" / "images"
HEIGHT = 900


def main() -> None:
    options = _options()
    board = f"/b/{options.benchmark}/"
    pictures = {
        "board": (board, "light"),
        "board-dark": (board, "dark"),
        "heatmap": (f"{board}heatmap/", "light"),
        "compare": (f"{board}compare/{options.a}...{options.b}/", "light"),
    }
    FOLDER.mkdir(exist_ok=True)
    with launched() as browser:
        for name, (path, scheme) in pictures.items():
            with visiting(browser, options.site.rstrip("/"), scheme) as visitor:
                visitor.page.set_default_navigation_timeout(120_000)
                visitor.page.set_viewport_size({"width": 1280, "height": HEIGHT})
                visitor.go(path)
                visitor.page.screenshot(path=FOLDER / f"{name}.png")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("site")
    parser.add_argument("benchmark")
    parser.add_argument("a")
    parser.add_argument("b")
    return parser.parse_args()


if __name__ == "__main__":
    main()
