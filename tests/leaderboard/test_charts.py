"""Where charts put things, and what they say without being seen."""

from __future__ import annotations

import re

from leaderboard.charts import Axis, axis_for, axis_header, rank_strip, spread, task_strip, whisker
from leaderboard.ranking import Standing
from leaderboard.statistics import Interval


def test_the_axis_holds_every_interval_and_starts_on_a_fifth():
    axis = axis_for([Interval(0.28, 0.5), None, Interval(0.6, 0.91)])
    assert (axis.low, axis.high) == (0.2, 1.0)
    assert axis.ticks() == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert axis_for([Interval(0.61, 0.62)]) == Axis(0.6, 0.8)
    assert axis_for([Interval(0.98, 1.0)]) == Axis(0.8, 1.0)
    assert axis_for([]) == Axis(0.0, 1.0)


def test_positions_are_percent_inside_the_padding():
    assert (Axis(0.2, 1.0).x(0.2), Axis(0.2, 1.0).x(1.0)) == (6, 94)
    assert re.findall(r'<text [^>]* x="([\d.]+)%"', axis_header(Axis(0.6, 1.0)))[0] == "6.00"


def test_a_whisker_says_its_numbers():
    drawn = whisker(0.89, Interval(0.851, 0.92), Axis(0.8, 1.0))
    assert 'aria-label="89.0 %, 95 % interval 85.1 to 92.0"' in drawn
    assert 'cx="45.60%"' in drawn
    assert "hollow" not in drawn
    hollow = whisker(0.89, Interval(0.851, 0.92), Axis(0.8, 1.0), hollow=True)
    assert "on the tasks attempted" in hollow
    assert 'class="dot hollow"' in hollow


def test_a_row_without_a_value_has_only_the_grid():
    drawn = whisker(None, None, Axis())
    assert "circle" not in drawn
    assert 'class="gl"' in drawn


def test_the_spread_fills_who_shares_the_top():
    drawn = spread([(0.5, True), (0.2, False), (0.4, True)])
    assert drawn.count('class="pip top"') == 2
    assert 'aria-label="pass@1 of 3 models, best 50.0 %, lowest 20.0 %"' in drawn
    assert "role" not in spread([])


def test_the_strip_covers_the_range_of_ranks():
    drawn = rank_strip(Standing(low=2, high=4, better=1, worse=1, level=2))
    assert 'class="rg" x="20.00%" width="60.00%"' in drawn
    alone = rank_strip(Standing(low=1, high=1, better=0, worse=0, level=0))
    assert 'x="0.00%" width="100.00%"' in alone


def test_only_all_and_nothing_get_the_outer_levels():
    drawn = task_strip([0.0, 0.001, 0.5, 0.999, 1.0, None])
    assert re.findall(r'class="(h\d)"', drawn) == ["h0", "h1", "h2", "h4", "h5"]
    assert 'aria-label="Mean fraction of 6 tasks: 1 at 1, 3 between, 1 at 0, 1 not graded"' in drawn
