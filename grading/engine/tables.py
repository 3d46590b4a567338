"""pandas' data on the wire: series, frames, indexes, and the scalars and columns they hold.

A column is told by its dtype: numpy's as in :mod:`grading.engine.arrays`, pandas' own as the plain
parts that they are made of. What is none of these (sparse columns, say) is no data, and what
holds it stays where it is.

pandas is looked up among the loaded modules to encode, and imported to decode. Whatever arrives is
put together by pandas' own constructors, which check it.

This file runs inside the cell and the judge, so it is written for Python 3.8.
"""

from __future__ import annotations

import sys

from grading.engine import arrays
from grading.engine.framing import WireError
from grading.engine.kinds import NotData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from grading.engine.decoder import Decoder
    from grading.engine.encoder import Encoder


_SIZES = ("8", "16", "32", "64")
_MASKED = (
    "boolean",
    "Float32",
    "Float64",
    *("Int" + n for n in _SIZES),
    *("UInt" + n for n in _SIZES),
)


# --- columns ------------------------------------------------------------------------------------


def column_node(encoder: Encoder, value: Any) -> Any:
    """The node of the values of a series, an index or an extension array."""
    dtype = value.dtype
    numpy: Any = sys.modules["numpy"]
    if isinstance(dtype, numpy.dtype):
        return ["numpy", *arrays.content(encoder, numpy.asarray(value))]
    array = getattr(value, "array", value)
    if dtype.name in _MASKED:
        return _masked(encoder, array, dtype)
    part = _COLUMN_NODES.get(type(dtype).__name__)
    if part is None:
        raise NotData
    return part(encoder, array, dtype)


def _masked(encoder: Encoder, array: Any, dtype: Any) -> Any:
    data = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
    mask = arrays.content(encoder, array.isna())
    return ["masked", dtype.name, arrays.content(encoder, data), mask]


def _string(encoder: Encoder, array: Any, dtype: Any) -> Any:
    na_value = getattr(dtype, "na_value", None)
    missing = "nan" if isinstance(na_value, float) else "NA"
    numpy: Any = sys.modules["numpy"]
    items = numpy.where(array.isna(), None, numpy.asarray(array, dtype=object)).tolist()
    return ["string", dtype.storage, missing, *map(encoder.encode, items)]


def _zoned(encoder: Encoder, array: Any, dtype: Any) -> Any:
    moments = array.asi8.view("M8[" + dtype.unit + "]")
    return ["zoned", zone_name(dtype.tz), *arrays.content(encoder, moments)]


def _categorical(encoder: Encoder, array: Any, dtype: Any) -> Any:
    codes = arrays.content(encoder, array.codes)
    return ["categorical", codes, index_node(encoder, dtype.categories), dtype.ordered is True]


def _period(encoder: Encoder, array: Any, dtype: Any) -> Any:
    return ["period", dtype.name[len("period[") : -1], *arrays.content(encoder, array.asi8)]


def _interval(encoder: Encoder, array: Any, dtype: Any) -> Any:
    sides = [index_node(encoder, array.left), index_node(encoder, array.right)]
    return ["interval", dtype.closed, *sides]


_COLUMN_NODES: dict[str, Callable[[Encoder, Any, Any], Any]] = {
    "StringDtype": _string,
    "DatetimeTZDtype": _zoned,
    "CategoricalDtype": _categorical,
    "PeriodDtype": _period,
    "IntervalDtype": _interval,
}


def take_column(decoder: Decoder, node: Any) -> Any:
    """The array of a column."""
    take = _TAKERS.get(node[0])
    if take is None:
        raise WireError("unknown column")
    return take(decoder, node[1:])


def _take_masked(decoder: Decoder, parts: Any) -> Any:
    name, data, mask = parts
    if name not in _MASKED:
        raise WireError("unknown dtype")
    pandas = arrays.loaded("pandas")
    array = pandas.array(arrays.array_of(decoder, data), dtype=name)
    array[arrays.array_of(decoder, mask)] = pandas.NA
    return array


def _take_string(decoder: Decoder, parts: Any) -> Any:
    storage, missing, *items = parts
    if any(type(item) not in (str, type(None)) for item in items):
        raise WireError("not text")
    pandas = arrays.loaded("pandas")
    more = {"na_value": float("nan")} if missing == "nan" else {}
    return pandas.array(items, dtype=pandas.StringDtype(storage, **more))


def _take_zoned(decoder: Decoder, parts: Any) -> Any:
    moments = arrays.loaded("pandas").DatetimeIndex(arrays.array_of(decoder, parts[1:]))
    return moments.tz_localize("UTC").tz_convert(_text(parts[0])).array


def _take_categorical(decoder: Decoder, parts: Any) -> Any:
    codes, categories, ordered = parts
    return arrays.loaded("pandas").Categorical.from_codes(
        arrays.array_of(decoder, codes), take_index(decoder, categories), ordered is True
    )


def _take_period(decoder: Decoder, parts: Any) -> Any:
    pandas = arrays.loaded("pandas")
    dtype = pandas.PeriodDtype(_text(parts[0]))
    return pandas.arrays.PeriodArray(arrays.array_of(decoder, parts[1:]), dtype=dtype)


def _take_interval(decoder: Decoder, parts: Any) -> Any:
    left, right = (take_index(decoder, part) for part in parts[1:])
    pandas = arrays.loaded("pandas")
    return pandas.arrays.IntervalArray.from_arrays(left, right, closed=_text(parts[0]))


_TAKERS: dict[str, Callable[[Decoder, Any], Any]] = {
    "numpy": lambda decoder, parts: arrays.array_of(decoder, parts),
    "masked": _take_masked,
    "string": _take_string,
    "zoned": _take_zoned,
    "categorical": _take_categorical,
    "period": _take_period,
    "interval": _take_interval,
}


# --- indexes --------------------------------------------------------------------------------------


def index_node(encoder: Encoder, value: Any) -> Any:
    pandas: Any = sys.modules["pandas"]
    names = [encoder.encode(name) for name in value.names]
    if isinstance(value, pandas.RangeIndex):
        return ["range", names, value.start, value.stop, value.step]
    if isinstance(value, pandas.MultiIndex):
        levels = [index_node(encoder, level) for level in value.levels]
        codes = [arrays.content(encoder, code) for code in value.codes]
        return ["multi", names, levels, codes]
    return ["flat", names, column_node(encoder, value), getattr(value, "freqstr", None)]


def take_index(decoder: Decoder, node: Any) -> Any:
    """The index of a node."""
    pandas = arrays.loaded("pandas")
    kind, name_nodes, *parts = node
    names = [decoder.decode(name) for name in name_nodes]
    if kind == "range":
        return pandas.RangeIndex(*parts, name=names[0])
    if kind == "multi":
        levels = [take_index(decoder, level) for level in parts[0]]
        codes = [arrays.array_of(decoder, code) for code in parts[1]]
        return pandas.MultiIndex(levels, codes, names=names)
    if kind != "flat":
        raise WireError("unknown index")
    column = take_column(decoder, parts[0])
    index = pandas.Index(column, dtype=column.dtype, name=names[0], tupleize_cols=False)
    if parts[1] is not None and isinstance(index, (pandas.DatetimeIndex, pandas.TimedeltaIndex)):
        index.freq = _text(parts[1])
    return index


# --- series and frames ----------------------------------------------------------------------------


def series_node(encoder: Encoder, value: Any) -> Any:
    seen, number = encoder.number(value)
    return ["ref", number] if seen else ["Series", number, *series_content(encoder, value)]


def frame_node(encoder: Encoder, value: Any) -> Any:
    seen, number = encoder.number(value)
    return ["ref", number] if seen else ["DataFrame", number, *frame_content(encoder, value)]


def take_series(decoder: Decoder, node: Any) -> Any:
    return decoder.register(node[1], series_of(decoder, node[2:]))


def take_frame(decoder: Decoder, node: Any) -> Any:
    return decoder.register(node[1], frame_of(decoder, node[2:]))


def series_content(encoder: Encoder, value: Any) -> list[Any]:
    """``[name, index, column]`` of a series."""
    plain = _as(value, "Series")
    name = encoder.encode(plain.name)
    return [name, index_node(encoder, plain.index), column_node(encoder, plain)]


def frame_content(encoder: Encoder, value: Any) -> list[Any]:
    """``[index, column index, *columns]`` of a frame."""
    plain = _as(value, "DataFrame")
    columns = [column_node(encoder, plain.iloc[:, n]) for n in range(plain.shape[1])]
    return [index_node(encoder, plain.index), index_node(encoder, plain.columns), *columns]


def _as(value: Any, name: str) -> Any:
    """The same data without the class a program derived."""
    base = getattr(sys.modules["pandas"], name)
    return value if type(value) is base else base(value)


def series_of(decoder: Decoder, parts: Any) -> Any:
    name, index, column = parts
    array = take_column(decoder, column)
    labels = take_index(decoder, index)
    pandas = arrays.loaded("pandas")
    return pandas.Series(array, labels, array.dtype, decoder.decode(name))


def frame_of(decoder: Decoder, parts: Any) -> Any:
    index, labels, *columns = parts
    data = {n: take_column(decoder, column) for n, column in enumerate(columns)}
    for column in data.values():
        if column.ndim != 1:
            raise WireError("not a column")
    frame = arrays.loaded("pandas").DataFrame(data, take_index(decoder, index))
    frame.columns = take_index(decoder, labels)
    return frame


def refill(value: Any, new: Any) -> None:
    """Make a series or frame hold what ``new`` holds."""
    type(new).__init__(value, new)


# --- scalars --------------------------------------------------------------------------------------


def moment_node(tag: str) -> Callable[[Encoder, Any], Any]:
    """Encoder of a timestamp or a difference of two."""

    def node(encoder: Encoder, value: Any) -> Any:
        zone = getattr(value, "tz", None)
        moment = arrays.scalar_node(encoder, value.to_numpy())
        return [tag, zone and zone_name(zone), *moment[1:]]

    return node


def take_timestamp(decoder: Decoder, node: Any) -> Any:
    moment = arrays.loaded("pandas").Timestamp(arrays.array_of(decoder, node[2:])[()])
    return moment.tz_localize("UTC").tz_convert(_text(node[1])) if node[1] else moment


def take_timedelta(decoder: Decoder, node: Any) -> Any:
    return arrays.loaded("pandas").Timedelta(arrays.array_of(decoder, node[2:])[()])


def missing_node(encoder: Encoder, value: Any) -> Any:
    return ["missing", "NaT" if value is sys.modules["pandas"].NaT else "NA"]


def take_missing(decoder: Decoder, node: Any) -> Any:
    pandas = arrays.loaded("pandas")
    return {"NaT": pandas.NaT, "NA": pandas.NA}[node[1]]


def period_node(encoder: Encoder, value: Any) -> Any:
    return ["Period", value.ordinal, value.freqstr]


def take_period(decoder: Decoder, node: Any) -> Any:
    return arrays.loaded("pandas").Period(ordinal=node[1], freq=_text(node[2]))


def interval_node(encoder: Encoder, value: Any) -> Any:
    return ["Interval", encoder.encode(value.left), encoder.encode(value.right), value.closed]


def take_interval(decoder: Decoder, node: Any) -> Any:
    left, right = (decoder.decode(side) for side in node[1:3])
    return arrays.loaded("pandas").Interval(left, right, _text(node[3]))


def zone_name(zone: Any) -> str:
    """A name by which pandas knows a time zone; NotData for one without."""
    name = str(zone)
    if not all(letter.isalnum() or letter in "/_+-:" for letter in name):
        raise NotData
    return name


def _text(value: Any) -> str:
    if type(value) is not str:
        raise WireError("not text")
    return value
