"""One known-good and one known-bad program, run before a batch.

A broken host gives every model 0 or every model 1 and nobody notices; these two notice.
"""

from __future__ import annotations

from grading.engine.grade import grade
from grading.engine.outcome import Outcome, PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task

_TASK = Task(
    targets=("total([1, 2, 3]) == 6", "total([]) == 0"), entry_points=("total",), timeout_s=10.0
)
_GOOD = Generation("def total(values):\n    return sum(values)\n")
_BAD = Generation("def total(values):\n    return 0\n")


def check(sandbox: Sandbox) -> None:
    """PlatformError when the host does not tell a right program from a wrong one."""
    good = grade(_TASK, _GOOD, sandbox)
    if good.outcome is not Outcome.PASS:
        raise PlatformError(f"canary: a right program got {good.outcome}: {good.detail}")
    bad = grade(_TASK, _BAD, sandbox)
    if bad.outcome is not Outcome.ASSERTION_FAIL or bad.passed != 1:
        raise PlatformError(f"canary: a wrong program got {bad.outcome}: {bad.detail}")
