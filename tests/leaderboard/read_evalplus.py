"""``read_evalplus.py SAMPLES.jsonl``: EvalPlus' own evaluation of results that lie beside it.

It reads ``SAMPLES_eval_results.json`` and prints pass@k. What only downloads data is stood in for.
"""

from __future__ import annotations

import sys
from types import ModuleType


def main() -> None:
    for name in ("datasets", "tempdir", "wget"):
        module = ModuleType(name)
        module.load_dataset = None  # type: ignore[attr-defined]
        sys.modules[name] = module
    from evalplus.evaluate import evaluate

    evaluate("humaneval", sys.argv[1], base_only=True)


if __name__ == "__main__":
    main()
