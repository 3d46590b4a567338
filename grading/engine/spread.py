"""Many runs in several processes of one machine, each with a warm judge for a batch of them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from grading.engine.sandbox import Sandbox

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH = 20
# So many for each process, for the case that one of them is much slower than the others.
_BATCHES = 2

_job: tuple[Callable[[Any, Sandbox], Any], Sandbox]


def spread(
    function: Callable[[Item, Sandbox], Result],
    items: Sequence[Item],
    sandbox: Sandbox,
    workers: int,
) -> Iterator[Result]:
    """``function(item, sandbox)`` of each item, in order; with one worker in this process.

    Results have to be such that can be pickled.
    """
    if workers <= 1 or len(items) < 2:
        with sandbox.warm():
            yield from (function(item, sandbox) for item in items)
        return
    size = max(1, min(BATCH, len(items) // (_BATCHES * workers)))
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    initial = (function, sandbox)
    with multiprocessing.get_context("fork").Pool(workers, _begin, initial) as pool:
        for results in pool.imap(_run, batches):
            yield from results


def _begin(function: Callable[[Any, Sandbox], Any], sandbox: Sandbox) -> None:
    global _job
    _job = function, sandbox


def _run(batch: Sequence[Any]) -> list[Any]:
    function, sandbox = _job
    with sandbox.warm():
        return [function(item, sandbox) for item in batch]
