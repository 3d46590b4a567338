"""numpy's data on the wire: arrays, scalars and dtypes.

A content is ``[dtype, shape, *data]``: numbers, dates and raw bytes as one text of hexadecimal
digits in C order, text and objects item by item, structures field by field. An array of another
class arrives as a plain one, read through the methods of ``ndarray`` itself.

numpy is looked up among the loaded modules to encode, and imported to decode. What arrives may
have been written by a candidate, so sizes and dtypes are checked.

This file runs inside the cell and the judge, so it is written for Python 3.8.
"""

from __future__ import annotations

import sys

from grading.engine.framing import MAX_FRAME, TooLarge, WireError
from grading.engine.kinds import NotData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grading.engine.decoder import Decoder
    from grading.engine.encoder import Encoder

# Kinds of dtype whose bytes say all: bool, integers, floats, complex, dates, bytes.
_BY_BYTES = "biufcmMSV"
_BY_ITEM = "UO"
# Room in memory; text of unequal lengths takes more of it than of a frame.
_MAX_BYTES = 16 * MAX_FRAME
_MAX_SPEC = 40


def loaded(name: str) -> Any:
    """A library for decoding: imported where it is not."""
    __import__(name)
    return sys.modules[name]


# --- out --------------------------------------------------------------------------------------


def array_node(encoder: Encoder, value: Any) -> Any:
    seen, number = encoder.number(value)
    return ["ref", number] if seen else ["ndarray", number, *content(encoder, value)]


def scalar_node(encoder: Encoder, value: Any) -> Any:
    numpy: Any = sys.modules["numpy"]
    holder = numpy.empty((), numpy.generic.dtype.__get__(value))
    holder[()] = value
    return ["npscalar", *content(encoder, holder)]


def dtype_node(encoder: Encoder, value: Any) -> Any:
    return ["npdtype", _spec(value)]


def content(encoder: Encoder, value: Any) -> list[Any]:
    """``[dtype, shape, *data]`` of an array; NotData for dtypes that are not."""
    numpy: Any = sys.modules["numpy"]
    plain = numpy.ndarray.view(value, numpy.ndarray)
    dtype = plain.dtype
    if plain.nbytes > _MAX_BYTES:
        raise TooLarge("too large")
    start = [_spec(dtype), list(plain.shape)]
    if dtype.names is not None:
        return [*start, *(content(encoder, plain[name]) for name in dtype.names)]
    if dtype.kind in _BY_ITEM:
        return [*start, *map(encoder.encode, plain.reshape(-1).tolist())]
    encoder.spend(2 * plain.nbytes)
    return [*start, plain.tobytes().hex()]


def _spec(dtype: Any) -> Any:
    """A dtype as text, or the fields of a structure as [name, dtype, shape]."""
    if dtype.names is not None:
        fields = [(name, dtype.fields[name][0]) for name in dtype.names]
        return [[name, _spec(field.base), list(field.shape)] for name, field in fields]
    if dtype.kind not in _BY_BYTES + _BY_ITEM:
        raise NotData
    return dtype.str


# --- in ---------------------------------------------------------------------------------------


def take_array(decoder: Decoder, node: Any) -> Any:
    return decoder.register(node[1], array_of(decoder, node[2:]))


def take_scalar(decoder: Decoder, node: Any) -> Any:
    array = array_of(decoder, node[1:])
    if array.shape or array.dtype.hasobject:
        raise WireError("not a scalar")
    return array[()]


def take_dtype(decoder: Decoder, node: Any) -> Any:
    return _dtype(loaded("numpy"), node[1])


def take_type(decoder: Decoder, node: Any) -> Any:
    numpy = loaded("numpy")
    found = getattr(numpy, node[1])
    if not isinstance(found, type) or not issubclass(found, numpy.generic):
        raise WireError("not a scalar type")
    return found


def array_of(decoder: Decoder, parts: Any) -> Any:
    """The array of a content; WireError where its parts do not fit."""
    numpy = loaded("numpy")
    spec, shape, *data = parts
    dtype, count = _dtype(numpy, spec), _count(shape)
    if count * dtype.itemsize > _MAX_BYTES:
        raise TooLarge("too large")
    if dtype.names is not None:
        return _structured(numpy, decoder, dtype, shape, data)
    if dtype.kind in _BY_ITEM:
        return _by_item(numpy, dtype, shape, [decoder.decode(item) for item in data])
    raw = bytes.fromhex(data[0])
    if len(raw) != count * dtype.itemsize or len(data) != 1:
        raise WireError("size")
    if dtype.kind == "b" and raw.strip(b"\0\1"):
        raise WireError("not a truth value")
    return numpy.ndarray(shape, dtype, raw).copy()


def _structured(numpy: Any, decoder: Decoder, dtype: Any, shape: Any, data: Any) -> Any:
    array = numpy.zeros(shape, dtype)
    if len(data) != len(dtype.names):
        raise WireError("fields")
    for position, name in enumerate(dtype.names):
        field = array_of(decoder, data[position])
        if field.shape != array[name].shape:
            raise WireError("shape of a field")
        array[name] = field
    return array


def _by_item(numpy: Any, dtype: Any, shape: Any, items: list[Any]) -> Any:
    array = numpy.empty(shape, dtype)
    if len(items) != array.size:
        raise WireError("size")
    if dtype.kind == "U" and any(type(item) is not str for item in items):
        raise WireError("not text")
    flat = array.reshape(-1)
    for position, item in enumerate(items):
        flat[position] = item
    return array


def _dtype(numpy: Any, spec: Any) -> Any:
    """The dtype of a spec: exactly the forms that :func:`_spec` gives."""
    if type(spec) is list:
        fields = [
            (name, _dtype(numpy, part), tuple(shape)) for name, part, shape in spec if _count(shape)
        ]
        if len(fields) != len(spec):
            raise WireError("an empty field")
        return numpy.dtype(fields)
    plain = type(spec) is str and 2 <= len(spec) <= _MAX_SPEC and spec[0] in "<>|="
    if not plain or spec[1] not in _BY_BYTES + _BY_ITEM or "," in spec:
        raise WireError("dtype")
    return numpy.dtype(spec)


def _count(shape: Any) -> int:
    """How many items an array of this shape has."""
    count = 1
    for size in shape:
        if type(size) is not int or size < 0:
            raise WireError("shape")
        count *= size
    return count


# --- in place -----------------------------------------------------------------------------------


def refill(value: Any, new: Any) -> None:
    """Give an array the shape and items of ``new``."""
    if value.dtype != new.dtype:
        raise WireError("a dtype cannot change in place")
    if value.shape != new.shape:
        value.shape = new.shape
    value[...] = new
