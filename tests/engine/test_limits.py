from __future__ import annotations

import pytest

from grading.engine import limits


@pytest.mark.parametrize(
    ("memory_gb", "workers", "right_gb"), [(64, 2, 4.0), (16, 4, 4.0), (8, 4, 2.0), (1, 2, 0.5)]
)
def test_programs_of_all_workers_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch, memory_gb: int, workers: int, right_gb: float
) -> None:
    facts = {"SC_PHYS_PAGES": memory_gb * 2**18, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(limits.os, "sysconf", facts.__getitem__)
    assert limits.affordable_address_space(workers) == right_gb * 1024**3


@pytest.mark.parametrize(("timeout_s", "cpu_s"), [(3.0, 8), (0.5, 6), (29.5, 35)])
def test_cpu_time_is_the_wall_limit_and_five_seconds(timeout_s: float, cpu_s: int) -> None:
    assert limits.Limits(timeout_s=timeout_s).cpu_s == cpu_s
