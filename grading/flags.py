"""What the task audit may find of a task, and which of it casts doubt on which failures. Pure."""

from __future__ import annotations

FLAGS = {
    "reference fails": "its own reference solution does not pass",
    "suspect": "better models do worse on it than weaker ones",
    "flaky": "the same program got different outcomes",
    "limit too tight": "passing programs come close to the time limit",
    "unsolved": "no model has a sample that passes",
    "saturated": "every sample of every model passes",
}
# By kind of failure, the strongest first.
DOUBTS = {
    "assertion": ("suspect", "flaky"),
    "timeout": ("limit too tight", "flaky"),
}
