"""Many runs in several processes of one machine, each of which keeps its sandboxes meanwhile."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.util import Finalize
from typing import Any, Self, TypeVar

from grading.engine.sandbox import Sandbox

Item = TypeVar("Item")
Result = TypeVar("Result")

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
    with Crew(function, sandbox, workers) as crew:
        yield from crew.map(items)


class Crew:
    """Worker processes that stay for more than one sequence of items; see :func:`spread`."""

    def __init__(
        self, function: Callable[[Any, Sandbox], Any], sandbox: Sandbox, workers: int
    ) -> None:
        self._workers = workers
        context = multiprocessing.get_context("fork")
        cores = context.SimpleQueue()
        for core in _cores(workers):
            cores.put(core)
        self._pool = context.Pool(workers, _begin, (function, sandbox, cores))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            # What a worker keeps is ended by the worker itself.
            self._pool.close()
            self._pool.join()
        else:
            self._pool.terminate()

    def map(self, items: Sequence[Any]) -> Iterator[Any]:
        """The results in order."""
        yield from self._pool.imap(_run, items)


def _cores(workers: int) -> list[int]:
    """One for each worker: the processes of a run take turns, so they lose by being apart."""
    cores = sorted(os.sched_getaffinity(0))
    return [cores[number % len(cores)] for number in range(workers)]


def _begin(function: Callable[[Any, Sandbox], Any], sandbox: Sandbox, cores: Any) -> None:
    global _job
    _job = function, sandbox
    with suppress(OSError):
        os.sched_setaffinity(0, [cores.get()])
    kept = ExitStack()
    kept.enter_context(sandbox.warm())
    Finalize(None, kept.close, exitpriority=1)


def _run(item: Any) -> Any:
    function, sandbox = _job
    return function(item, sandbox)
