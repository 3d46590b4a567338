"""pandas' values come back equal by pandas' own strictest comparison; hostile nodes are refused."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing as pdt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.engine import framing, kinds
from grading.engine.decoder import Decoder
from grading.engine.encoder import Encoder


def opaque(encoder: Encoder, value: Any) -> Any:
    return encoder.library_node(value)


def refuse(tag: str, node: Any) -> Any:
    raise framing.WireError("unknown tag")


def travel(value: Any) -> Any:
    node = Encoder(opaque).encode(value)
    return Decoder(refuse).decode(framing.loads(framing.dumps(node)))


def check(value: Any) -> None:
    """Compares a value with its copy from the other side, types, names and freq included."""
    back = travel(value)
    assert type(back) is type(value)
    if isinstance(value, pd.DataFrame):
        pdt.assert_frame_equal(back, value, check_exact=True, check_column_type="equiv")
        assert back.columns.dtype == value.columns.dtype
    elif isinstance(value, pd.Series):
        pdt.assert_series_equal(back, value, check_exact=True)
    elif isinstance(value, pd.Index):
        pdt.assert_index_equal(back, value, exact="equiv", check_exact=True)
        assert getattr(back, "freq", None) == getattr(value, "freq", None)
    else:
        pdt.assert_extension_array_equal(back, value)


DAYS = pd.date_range("2024-03-30", periods=3, freq="D", name="day")
INDEXES = [
    pd.RangeIndex(2, 11, 3, name="n"),
    pd.Index([3, 1, 2]),
    pd.Index([1.5, np.nan]),
    pd.Index(["a", "b"], name="letter"),
    pd.Index(["a", 1, None], dtype=object),
    pd.Index([(1, 2), (3,)], tupleize_cols=False),
    pd.Index([True, False]),
    pd.Index([]),
    DAYS,
    pd.date_range("2024-03-30", periods=3, freq="h", tz="Europe/Berlin"),
    pd.date_range("2024-03-30", periods=2, tz="UTC+02:00"),
    pd.DatetimeIndex(["2024-01-01", None, "2020-01-01"]),
    pd.timedelta_range("1h", periods=3, freq="2h"),
    pd.period_range("2024-01", periods=3, freq="M"),
    pd.interval_range(0, 3, closed="left"),
    pd.CategoricalIndex(["a", "b", "a"], ordered=True, name="c"),
    pd.MultiIndex.from_product([["a", "b"], DAYS], names=["x", ("y", 1)]),
    pd.MultiIndex.from_tuples([], names=["x", "y"]),
]

COLUMNS = [
    [1, 2, 3],
    [1.5, np.nan, 2],
    ["a", None, "c"],
    np.array([1, 2, 3], dtype="u1"),
    np.array([[1], {2: 3}, None], dtype=object),
    pd.array([1, None, 3]),
    pd.array([1.5, None, 3]),
    pd.array([True, None, False]),
    pd.array(["a", None, "c"], dtype=pd.StringDtype("python")),
    pd.Categorical(["a", "b", None], categories=["b", "a", "z"]),
    pd.cut([1, 2, 3], 2),
    DAYS,
    DAYS.tz_localize("America/New_York"),
    DAYS - DAYS[0],
    DAYS.to_period("W"),
    np.array(["2024", "2025", "NaT"], dtype="M8[s]"),
]


@pytest.mark.parametrize(
    "index", INDEXES, ids=lambda index: f"{type(index).__name__} {index.dtype}"
)
def test_indexes(index: Any) -> None:
    check(index)
    check(pd.Series(range(len(index)), index=index, name=("a", 1)))
    check(pd.DataFrame(np.ones((1, len(index))), columns=index))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(pd.Series(column).dtype))
def test_columns(column: Any) -> None:
    check(pd.Series(column))
    check(pd.DataFrame({"first": [1, 2, 3], "it": column, 3: column}))
    check(pd.DataFrame({"it": column}).iloc[:0])


@pytest.mark.parametrize(
    "array", [*COLUMNS[5:11], DAYS.tz_localize("UTC").array], ids=lambda a: type(a).__name__
)
def test_extension_arrays(array: Any) -> None:
    check(array)


def test_frames_of_odd_shapes() -> None:
    check(pd.DataFrame())
    check(pd.DataFrame(index=[1, 2]))
    check(pd.DataFrame(columns=["a", "b"]))
    check(pd.DataFrame([[1, 2, "x"]], columns=["a", "a", "b"]))
    check(pd.DataFrame({"a": [1]}).rename_axis(index="i", columns="c"))
    check(pd.DataFrame({"k": ["x", "y", "x"], "v": [1, 2, 3]}).groupby("k").agg(["sum", "mean"]))
    check(pd.DataFrame({"k": ["x", "y"], "v": [1, 2]}).describe(include="all"))


names = st.text(max_size=3) | st.integers(-9, 9)
cells = st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=4) | st.none()


@settings(max_examples=40)
@given(st.data(), st.lists(names, max_size=4), st.integers(0, 4))
def test_a_frame_comes_back_the_same(data: st.DataObject, labels: list[Any], rows: int) -> None:
    lists = [data.draw(st.lists(cells, min_size=rows, max_size=rows)) for _ in labels]
    frame = pd.DataFrame(dict(enumerate(lists)), index=range(rows))
    frame.columns = pd.Index(labels)
    check(frame)


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2024-02-29 12:34:56.789012345"),
        pd.Timestamp("2024-02-29", tz="Asia/Tokyo"),
        pd.Timestamp("2024-02-29", tz=datetime.UTC),
        pd.Timestamp(0, unit="s"),
        pd.Timedelta("1 day 00:00:00.000000001"),
        pd.Timedelta(5, unit="D"),
        pd.Period("2024-02", "M"),
        pd.Interval(0, 1.5, "both"),
        pd.Interval(pd.Timestamp("2024"), pd.Timestamp("2025")),
    ],
    ids=repr,
)
def test_scalars(value: Any) -> None:
    back = travel(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)
    assert getattr(back, "unit", None) == getattr(value, "unit", None)


def test_missing_values_are_the_same_objects() -> None:
    assert travel(pd.NaT) is pd.NaT
    assert travel(pd.NA) is pd.NA
    assert travel([pd.NaT, 1])[0] is pd.NaT


def test_a_returned_frame_is_the_same_object_and_its_change_is_told() -> None:
    frame, series = pd.DataFrame({"a": [2, 1]}), pd.Series([1.5, 2.5], name="s")
    out = Encoder(opaque)
    received = Decoder(refuse)
    theirs = received.decode(framing.loads(framing.dumps(out.encode((frame, series)))))
    theirs[0]["b"] = ["x", "y"]
    theirs[0].index = pd.Index(["u", "v"])
    theirs[1].iloc[0] = 9.0
    reply = Encoder(opaque, received.objects.values())
    nodes = [reply.encode(theirs[0]), *map(reply.contents, theirs)]
    same, *contents = framing.loads(framing.dumps(nodes))
    back = Decoder(refuse, out.objects)
    assert back.decode(same) is frame
    back.refill(frame, contents[0])
    back.refill(series, contents[1])
    pdt.assert_frame_equal(frame, pd.DataFrame({"a": [2, 1], "b": ["x", "y"]}, index=["u", "v"]))
    assert series.tolist() == [9.0, 2.5]


class LyingFrame(pd.DataFrame):
    @property
    def iloc(self) -> Any:
        raise AssertionError

    index = columns = dtypes = values = iloc  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return True

    def equals(self, other: object) -> bool:
        return True


class LyingSeries(pd.Series):
    def __eq__(self, other: object) -> Any:
        return True

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError

    to_numpy = tolist = __array__  # type: ignore[assignment]


def test_a_class_of_the_program_is_read_as_its_base() -> None:
    frame = travel(LyingFrame({"a": [1, 2]}))
    pdt.assert_frame_equal(frame, pd.DataFrame({"a": [1, 2]}))
    assert type(frame) is pd.DataFrame
    series = travel(LyingSeries([1, 2], name="s"))
    pdt.assert_series_equal(series, pd.Series([1, 2], name="s"))
    assert type(series) is pd.Series


@pytest.mark.parametrize(
    "value",
    [
        pd.Series(pd.arrays.SparseArray([0, 0, 1])),
        pd.DataFrame({"a": [[1]], "b": pd.arrays.SparseArray([1])}),
        pd.DataFrame({"a": [1]}).groupby("a"),
        pd.offsets.BMonthEnd(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_stays(value: Any) -> None:
    encoder = Encoder(opaque)
    with pytest.raises(kinds.NotData):
        encoder.encode(value)
    assert encoder.objects == []
    assert encoder.numbers == {}


INTS = ["numpy", "<i8", [2], "00" * 16]
FLAT = ["flat", [None], INTS, None]
RANGE = ["range", [None], 0, 2, 1]
HOSTILE = [
    ["Series", 0, None, ["range", [None], 0, 3, 1], INTS],
    ["Series", 0, [], RANGE, INTS],
    ["Series", 0, ["list", 1], RANGE, INTS],
    ["Series", 0, None, RANGE, ["numpy", "<i8", [2, 1], "00" * 16]],
    ["Series", 0, None, RANGE, ["pickle", "00"]],
    ["Series", 0, None, RANGE, ["masked", "category", INTS[1:], ["|b1", [2], "0000"]]],
    ["Series", 0, None, RANGE, ["masked", "Int64", INTS[1:], ["|b1", [3], "000000"]]],
    ["Series", 0, None, RANGE, ["string", "python", "nan", 1, 2]],
    ["Series", 0, None, RANGE, ["string", "nowhere", "nan", "a", "b"]],
    ["Series", 0, None, RANGE, ["zoned", "No/Where", "<M8[s]", [2], "00" * 16]],
    ["Series", 0, None, RANGE, ["zoned", None, "<M8[s]", [2], "00" * 16]],
    ["Series", 0, None, RANGE, ["categorical", ["<i1", [2], "0009"], RANGE, False]],
    ["Series", 0, None, RANGE, ["categorical", ["<i1", [2], "0001"], FLAT, False]],
    ["Series", 0, None, RANGE, ["interval", "up", RANGE, RANGE]],
    ["Series", 0, None, RANGE, ["interval", "left", ["range", [None], 3, 5, 1], RANGE]],
    ["Series", 0, None, RANGE, ["period", "nonsense", *INTS[1:]]],
    ["DataFrame", 0, RANGE, RANGE, INTS],
    ["DataFrame", 0, RANGE, ["range", [None], 0, 1, 1], ["numpy", "<i8", [2, 1], "00" * 16]],
    ["DataFrame", 0, RANGE, ["range", [None], 0, 1, 1], ["numpy", "<i8", [3], "00" * 24]],
    ["DataFrame", 0],
    ["Index", "range", [None], 0, "2", 1],
    ["Index", "range", [None], 0, 1, 0],
    ["Index", "range", [], 0, 1, 1],
    ["Index", "flat", [["list", 0]], INTS, None],
    ["Index", "flat", [None], ["numpy", "<M8[s]", [2], "00" * 16], "D"],
    ["Index", "flat", [None], ["numpy", "<i8", [1, 1], "00" * 8], None],
    ["Index", "multi", [None], [FLAT, FLAT], [["<i1", [1], "00"]]],
    ["Index", "multi", [None], [RANGE], [["<i1", [1], "09"]]],
    ["Index", "what", [None]],
    ["Timestamp", None, "<i8", [2], "00" * 16],
    ["Timestamp", "No/Where", "<M8[s]", [], "00" * 8],
    ["Timestamp", 3, "<M8[s]", [], "00" * 8],
    ["Timedelta", None, "<M8[s]", [], "00" * 8],
    ["Period", "x", "M"],
    ["Period", 1, "nonsense"],
    ["Interval", 2, 1, "left"],
    ["Interval", "b", "c", "left"],
    ["missing", "None"],
    ["column", "numpy"],
]


@pytest.mark.parametrize("node", HOSTILE, ids=repr)
def test_nonsense_is_a_wire_error(node: Any) -> None:
    with pytest.raises(framing.WireError):
        Decoder(refuse).decode(node)
