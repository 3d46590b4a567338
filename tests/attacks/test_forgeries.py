"""Generated forgeries: none passes; many would pass a grader that shares its interpreter."""

from __future__ import annotations

import pytest

from tests.attacks import forgeries
from tests.attacks.fake_host import NoFakeHost

pytestmark = pytest.mark.sandbox
COUNT = 150


def test_no_generated_forgery_passes(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        tally = forgeries.run(COUNT, workers=2)
    except NoFakeHost as problem:
        pytest.skip(f"needs a throw-away host: {problem}")
    with capsys.disabled():
        print(f"\n{tally}")  # noqa: T201
    assert tally.problems() == []


def test_every_forgery_is_a_program_and_comes_from_its_seed() -> None:
    made = forgeries.generate(400)
    assert made == forgeries.generate(400)
    assert {one.trick for one in made} == {make.__name__ for _, make in forgeries.TRICKS}
    for one in made:
        compile(one.program, "forgery", "exec")


def test_a_forged_pass_is_reported() -> None:
    one = forgeries.generate(1)[0]
    tally = forgeries.Tally(4, sealed=[one])
    tally.in_process["lying_object"] = 1
    assert tally.problems() == [f"forgery {one.seed} ({one.trick}) passes"]
    tally.in_process.clear()
    assert "too weak" in tally.problems()[1]
