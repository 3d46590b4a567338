"""The clocks of a run."""

from __future__ import annotations

import time

import pytest

from grading.engine import watch
from grading.engine.run import Timeout
from grading.engine.watch import Watch


def test_the_deadline_is_absolute() -> None:
    clock = Watch(time.monotonic() + 10, None, None)
    assert 0 < clock.wait_s() < 1
    clock.deadline = time.monotonic()
    with pytest.raises(Timeout):
        clock.wait_s()


def test_waiting_for_a_core_moves_the_deadline_up_to_a_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = [2.0]
    clock = Watch(time.monotonic(), None, None)
    clock.forgive(lambda: waited[0])
    assert clock.wait_s() > 0
    assert clock.granted_s == 2.0
    clock.deadline = time.monotonic()
    with pytest.raises(Timeout):
        clock.wait_s()
    waited[0] = 500.0
    assert clock.wait_s() > 0
    assert clock.granted_s == watch._FORGIVEN_S
    clock.deadline = time.monotonic()
    waited[0] = 600.0
    with pytest.raises(Timeout):
        clock.wait_s()


def test_tick_is_called_about_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    ticks: list[float] = []
    clock = Watch(1000.0, lambda: ticks.append(now[0]), None)
    for _ in range(30):
        now[0] += 0.1
        clock.wait_s()
    assert len(ticks) in (2, 3)
