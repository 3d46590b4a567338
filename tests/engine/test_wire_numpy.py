"""numpy's values come back equal, of the same dtype and shape; hostile nodes are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from grading.engine import framing, kinds
from grading.engine.decoder import Decoder
from grading.engine.encoder import Encoder

few = settings(max_examples=40)


def opaque(encoder: Encoder, value: Any) -> Any:
    return encoder.library_node(value)


def refuse(tag: str, node: Any) -> Any:
    raise framing.WireError("unknown tag")


def travel(value: Any) -> Any:
    node = Encoder(opaque).encode(value)
    return Decoder(refuse).decode(framing.loads(framing.dumps(node)))


def decode(node: Any) -> Any:
    return Decoder(refuse).decode(node)


def same(left: Any, right: Any) -> bool:
    """The same class, dtype, shape and bytes; objects and text by their values."""
    if type(left) is not type(right) or left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.names:
        return all(same(left[name], right[name]) for name in left.dtype.names)
    if left.dtype.hasobject or left.dtype.kind == "U":
        return bool(left.tolist() == right.tolist())
    return bool(left.tobytes() == right.tobytes())


plain_dtypes = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes()
    | hnp.unsigned_integer_dtypes()
    | hnp.floating_dtypes()
    | hnp.complex_number_dtypes()
    | hnp.datetime64_dtypes()
    | hnp.timedelta64_dtypes()
    | hnp.byte_string_dtypes(min_len=1)
    | hnp.unicode_string_dtypes(min_len=1)
)
shapes = hnp.array_shapes(min_dims=0, min_side=0, max_dims=4, max_side=4)


@few
@given(st.data(), plain_dtypes)
def test_an_array_comes_back_the_same(data: st.DataObject, dtype: Any) -> None:
    array = data.draw(hnp.arrays(dtype, shapes))
    assert same(travel(array), array)


@few
@given(st.data(), plain_dtypes)
def test_a_scalar_comes_back_the_same(data: st.DataObject, dtype: Any) -> None:
    scalar = data.draw(hnp.arrays(dtype, ()))[()]
    assert same(travel(scalar), scalar)


structures = st.lists(plain_dtypes, min_size=1, max_size=3).map(
    lambda dtypes: np.dtype([(f"f{n}", dtype) for n, dtype in enumerate(dtypes)])
)


@few
@given(st.data(), structures)
def test_a_structure_comes_back_the_same(data: st.DataObject, dtype: Any) -> None:
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(max_dims=2, max_side=3)))
    assert same(travel(array), array)
    assert same(travel(array.flat[0]), array.flat[0])


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, "a", None, [2, {3: 4}]], dtype=object),
        np.array([[(1, 2), (3,)]], dtype=object),
        np.arange(6).reshape(2, 3).T,
        np.arange(10)[::3],
        np.asfortranarray([[1.5, 2.5], [3.5, 4.5]]),
        np.array([1, 2], dtype=">i4"),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array([[("a", [1, 2])]], dtype=[("name", "U3"), ("pair", "i4", (2,))]),
        np.array([({"k": 1},)], dtype=[("any", object)]),
        np.longdouble("1.5") * np.ones(2, np.longdouble),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_layouts_and_objects(array: Any) -> None:
    back = travel(array)
    assert same(back, array)
    assert back.flags.owndata
    assert back.flags.writeable


@pytest.mark.parametrize("value", [np.dtype("f4"), np.dtype("U3"), np.dtype([("a", "i4", (2,))])])
def test_dtypes(value: Any) -> None:
    assert travel(value) == value
    assert travel(np.float32) is np.float32
    assert travel(np.bool_) is np.bool_


def test_types_inside_containers_and_shared_arrays() -> None:
    array = np.arange(3)
    left, right = travel([array, array])
    assert left is right
    back = travel({"mean": np.float32(1.5), "n": np.int64(3)})
    assert type(back["mean"]) is np.float32
    assert type(back["n"]) is np.int64


def test_the_nan_of_numpy_arrives_as_itself() -> None:
    assert travel({"mean": np.nan}) == {"mean": np.nan}
    assert travel({"mean": float("nan")}) != {"mean": np.nan}


def test_an_object_array_that_holds_itself_is_refused() -> None:
    array = np.empty(1, dtype=object)
    array[0] = array
    with pytest.raises(framing.WireError):
        travel(array)


def test_a_change_in_place_is_told() -> None:
    argument = np.array([[3, 1], [2, 0]])
    out = Encoder(opaque)
    received = Decoder(refuse)
    theirs = received.decode(framing.loads(framing.dumps(out.encode(argument))))
    theirs.sort(axis=0)
    theirs.shape = (4,)
    reply = Encoder(opaque, received.objects.values())
    node, contents = reply.encode([theirs]), reply.contents(theirs)
    back = Decoder(refuse, out.objects)
    assert back.decode(framing.loads(framing.dumps(node)))[0] is argument
    back.refill(argument, framing.loads(framing.dumps(contents)))
    assert same(argument, np.array([2, 0, 3, 1]))


class Liar(np.ndarray):
    """Says of itself whatever is asked."""

    def __eq__(self, other: object) -> Any:
        return np.ones(3, bool)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError

    __array_ufunc__ = __array_function__ = __getitem__ = __iter__ = __len__ = __array__  # type: ignore[assignment]
    tobytes = tolist = view = reshape = __reduce__ = __array__  # type: ignore[assignment]

    @property
    def dtype(self) -> Any:
        raise AssertionError

    shape = nbytes = dtype


class LyingNumber(np.float64):
    def __float__(self) -> float:
        return 42.0

    __eq__ = __array__ = __float__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    @property
    def dtype(self) -> Any:
        raise AssertionError


def test_a_class_of_the_program_is_read_as_its_base() -> None:
    liar = np.ndarray.__new__(Liar, (3,), np.int64)
    np.ndarray.fill(liar, 7)
    assert same(travel(liar), np.array([7, 7, 7]))
    assert same(travel(LyingNumber(1.5)), np.float64(1.5))


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked_array([1, 2], [True, False]),
        np.ndarray.__new__(np.matrix, (1, 1)),
        np.random.default_rng(0),
        np.array(["a"], dtype=np.dtypes.StringDType()),
        np.sin,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_stays(value: Any) -> None:
    encoder = Encoder(opaque)
    with pytest.raises(kinds.NotData):
        encoder.encode(value)
    assert encoder.objects == []
    assert encoder.numbers == {}


def test_sizes_are_capped_before_anything_is_copied() -> None:
    with pytest.raises(framing.TooLarge):
        travel(np.zeros(framing.MAX_FRAME))
    with pytest.raises(framing.TooLarge):
        travel(np.array(["x" * 100_000, *["y"] * 1000]))
    with pytest.raises(framing.TooLarge):
        decode(["ndarray", 0, "<U1000000", [1000], *["a"] * 1000])


HOSTILE = [
    ["ndarray", 0, "<f8", [-1], ""],
    ["ndarray", 0, "<f8", [2], "00" * 8],
    ["ndarray", 0, "<f8", [1], "00" * 9],
    ["ndarray", 0, "<f8", [1], "zz" * 8],
    ["ndarray", 0, "<f8", [1.0], "00" * 8],
    ["ndarray", 0, "<f8", [True], "00" * 8],
    ["ndarray", 0, "<f8", "1", "00" * 8],
    ["ndarray", 0, "<f8", [1], "00" * 8, "00"],
    ["ndarray", 0, "<f8", [1] * 80, "00" * 8],
    ["ndarray", 0, "<f8", [2**62, 4, 0], ""],
    ["ndarray", 0, "|b1", [1], "02"],
    ["ndarray", 0, "|O", [2], 1],
    ["ndarray", 0, "<U2", [1], 1],
    ["ndarray", 0, "<f3", [1], "000000"],
    ["ndarray", 0, "f8,i4", [0], ""],
    ["ndarray", 0, "=f8,O", [0], ""],
    ["ndarray", 0, "|T16", [0], ""],
    ["ndarray", 0, "<M8[zz]", [0], ""],
    ["ndarray", 0, None, [0], ""],
    ["ndarray", 0, [["a", "<i4", []], ["a", "<i4", []]], [0], ["<i4", [0], ""]],
    ["ndarray", 0, [["a", "<i4", []]], [1], ["<i4", [2], "00" * 8]],
    ["ndarray", 0, [["a", "<i4", [0]]], [1], ["<i4", [1, 0], ""]],
    ["ndarray", 0, [["a", "<i4", []]], [1]],
    ["ndarray", "0", "<f8", [0], ""],
    ["ndarray", 0],
    ["ndarray"],
    ["npscalar", "<f8", [1], "00" * 8],
    ["npscalar", "|O", [], 1],
    ["npdtype", "object"],
    ["nptype", "ndarray"],
    ["nptype", "os"],
    ["nptype", 1],
]


@pytest.mark.parametrize("node", HOSTILE, ids=repr)
def test_nonsense_is_a_wire_error(node: Any) -> None:
    with pytest.raises(framing.WireError):
        decode(node)


parts = st.recursive(
    st.sampled_from(["<f8", "|O", "<U1", "|b1", "<M8[s]", "", "00" * 8, "x"])
    | st.integers(-2, 9)
    | st.none(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(["ndarray", "npscalar", "npdtype", "nptype"]), st.lists(parts, max_size=5))
def test_any_node_is_a_value_or_a_wire_error(tag: str, rest: Any) -> None:
    try:
        decode([tag, *rest])
    except framing.WireError:
        return
