"""Time extraction on hostile text: it has to grow with the size, not with its square.

.venv/bin/python tests/benchmarks/extraction_time.py [MEGABYTES ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from grading.engine.extract import extract


def _chain(size: int) -> str:
    links = (f"```\ndef g{i}():\n    return g{i + 1}()\n```\n" for i in range(size // 40))
    return "".join(links) + "```\ndef f(): return g0()\n```"


SHAPES: dict[str, Callable[[int], str]] = {
    "many fences": lambda size: "```python\nx = 1\n```\n" * (size // 20),
    "every block lacks the next": _chain,
    "blank lines": lambda size: "\n" * size,
    "one blank line": lambda size: " " * size + "x",
    "backticks": lambda size: "`" * size,
    "unclosed, open brackets": lambda size: "```python\n" + "(\n" * (size // 2),
    "unclosed, decorators": lambda size: "```python\n" + "@a\n" * (size // 3),
    "unclosed, one line": lambda size: "```python\nx = " + "1+" * (size // 2),
    "thoughts in inline code": lambda size: "`</think>` " * (size // 11),
    "thoughts in fences": lambda size: "```\n</think>\n```\n" * (size // 17),
    "runs of all lengths": lambda size: "".join(
        "`" * (i % 300) + " </think> " for i in range(size // 160)
    ),
    "end tokens": lambda size: "x" + "</s>\n" * (size // 5),
    "bare code": lambda size: "def f():\n    return 1\n" * (size // 22),
    "carriage returns": lambda size: "\r" * size,
    "one deep list": lambda size: "```python\n" + "[" * size,
}


def main() -> None:
    sizes = [float(word) for word in sys.argv[1:]] or [0.2, 1, 10]
    print(f"{'seconds for':32}" + "".join(f"{size:>9g} MB" for size in sizes))
    for name, shape in SHAPES.items():
        print(f"{name:32}", end="", flush=True)
        for size in sizes:
            text = shape(int(size * 1e6))
            start = time.perf_counter()
            extract(text, ("f",))
            print(f"{time.perf_counter() - start:12.2f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
