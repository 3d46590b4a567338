"""numpy's and pandas' data on the wire: which function is for what.

Loaded when the first such value is met. This file runs inside the cell and the judge, so it is
written for Python 3.8.
"""

from __future__ import annotations

from grading.engine import arrays, tables
from grading.engine.kinds import EXTENSION_ARRAYS, library_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from grading.engine.decoder import Decoder
    from grading.engine.encoder import Encoder

# --- out --------------------------------------------------------------------------------------

NODES: dict[str, Callable[[Encoder, Any], Any]] = {
    "ndarray": arrays.array_node,
    "generic": arrays.scalar_node,
    "dtype": arrays.dtype_node,
    "Series": tables.series_node,
    "DataFrame": tables.frame_node,
    "Index": lambda encoder, value: ["Index", *tables.index_node(encoder, value)],
    "Timestamp": tables.moment_node("Timestamp"),
    "Timedelta": tables.moment_node("Timedelta"),
    "Period": tables.period_node,
    "Interval": tables.interval_node,
    "missing": tables.missing_node,
    **{
        name: lambda encoder, value: ["column", *tables.column_node(encoder, value)]
        for name in EXTENSION_ARRAYS
    },
}

CONTENTS: dict[Any, Callable[[Encoder, Any], Any]] = {
    "ndarray": arrays.content,
    "Series": tables.series_content,
    "DataFrame": tables.frame_content,
}

# --- in ---------------------------------------------------------------------------------------

VALUES: dict[str, Callable[[Decoder, Any], Any]] = {
    "ndarray": arrays.take_array,
    "npscalar": arrays.take_scalar,
    "npdtype": arrays.take_dtype,
    "nptype": arrays.take_type,
    "Series": tables.take_series,
    "DataFrame": tables.take_frame,
    "Index": lambda decoder, node: tables.take_index(decoder, node[1:]),
    "column": lambda decoder, node: tables.take_column(decoder, node[1:]),
    "Timestamp": tables.take_timestamp,
    "Timedelta": tables.take_timedelta,
    "Period": tables.take_period,
    "Interval": tables.take_interval,
    "missing": tables.take_missing,
}

CONTAINERS: dict[Any, Callable[[Decoder, Any], Any]] = {
    "ndarray": arrays.array_of,
    "Series": tables.series_of,
    "DataFrame": tables.frame_of,
}


def refill(value: Any, new: Any) -> None:
    """Make an array, series or frame hold what ``new``, another one, holds."""
    put = arrays.refill if library_name(type(value)) == "ndarray" else tables.refill
    put(value, new)
