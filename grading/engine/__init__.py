"""The grading engine: pure Python, standard library only.

``grade(task, generation, sandbox)`` turns a model's generation into a verdict::

    sandbox = Sandbox("host")
    sandbox.ensure()
    verdict = grade(Task(targets=("add(1, 2) == 3",)), Generation(text), sandbox)
"""

from grading.engine.extract import extract
from grading.engine.grade import grade
from grading.engine.interpreter import resolve_python
from grading.engine.outcome import Outcome, PlatformError, Verdict
from grading.engine.passk import pass_at_k
from grading.engine.sandbox import ExecResult, Sandbox
from grading.engine.task import Generation, Task

__all__ = [
    "ExecResult",
    "Generation",
    "Outcome",
    "PlatformError",
    "Sandbox",
    "Task",
    "Verdict",
    "extract",
    "grade",
    "pass_at_k",
    "resolve_python",
]
