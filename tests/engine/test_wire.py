"""Values come back equal, of the same type, with identities kept; hostile frames are refused."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import math
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine import decoder, framing, kinds
from grading.engine.decoder import Decoder
from grading.engine.encoder import Encoder


def no_opaque(*_: Any) -> Any:
    raise TypeError("not data")


def travel(value: Any) -> Any:
    node = Encoder(no_opaque).encode(value)
    return Decoder(no_opaque).decode(framing.loads(framing.dumps(node)))


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**60, max_value=2**400)
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=20)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 5))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4)
        | st.lists(inner, max_size=4).map(collections.deque)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4).map(collections.OrderedDict)
        | st.sets(scalars, max_size=4)
        | st.sets(scalars, max_size=4).map(frozenset)
        | st.binary(max_size=9).map(bytearray)
    ),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    """Equal with equal types all the way down: 1, 1.0 and True differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=True)
        return len(left) == len(right) and all(same(a, b) for a, b in pairs)
    if isinstance(left, list | tuple | collections.deque):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return left.hex() == right.hex()
    return bool(left == right)


@given(values)
def test_a_value_comes_back_the_same(value: Any) -> None:
    assert same(travel(value), value)


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        -0.0,
        5e-324,
        2**4000,
        "\ud83d",
        "a\0b",
        Ellipsis,
        NotImplemented,
        int,
        type(None),
        collections.Counter("aab"),
        collections.defaultdict(list, {1: [2]}),
        collections.deque([1, 2], 5),
        decimal.Decimal("1.10"),
        fractions.Fraction(1, 3),
        {1: 2}.keys(),
        {1: 2}.items(),
    ],
    ids=repr,
)
def test_special_values(value: Any) -> None:
    back = travel(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_the_nan_object_of_math_arrives_as_itself_and_others_do_not() -> None:
    assert travel(math.nan) is math.nan
    other = travel(float("nan"))
    assert math.isnan(other)
    assert other is not math.nan


def test_a_shared_list_stays_shared_and_a_cycle_stays_a_cycle() -> None:
    inner: list[Any] = [1]
    left, right = travel([inner, inner])
    assert left is right
    inner.append(inner)
    back = travel(inner)
    assert back[1] is back


@pytest.mark.parametrize("value", [{12, 13, 14, 15, 16}, {16, 15, 14, 13, 12}, set(range(12, 17))])
def test_a_set_keeps_the_order_of_its_items(value: set[Any]) -> None:
    """A program that turns its argument into a tuple shows it."""
    assert tuple(travel(value)) == tuple(value)


def test_a_returned_argument_is_the_same_object_and_its_change_is_told() -> None:
    argument = [3, 1, 2]
    out = Encoder(no_opaque)
    sent = framing.dumps(out.encode(argument))
    received = Decoder(no_opaque)
    theirs = received.decode(framing.loads(sent))
    theirs.sort()
    reply = Encoder(no_opaque, received.objects.values())
    node, contents = reply.encode([theirs]), reply.contents(theirs)
    back = Decoder(no_opaque, out.objects)
    assert back.decode(node)[0] is argument
    back.refill(argument, contents)
    assert argument == [1, 2, 3]


def test_subclasses_travel_as_their_base_data_whatever_their_methods_say() -> None:
    class Liar(int):
        def __add__(self, other: object) -> Any:
            raise AssertionError

        __pos__ = __index__ = __int__ = __radd__ = __add__  # type: ignore[assignment]

    class Long(list[int]):
        def __iter__(self) -> Any:
            raise AssertionError

        __len__ = __iter__

    encoder = Encoder(no_opaque)
    assert encoder.base_node(int, Liar(7)) == 7
    assert encoder.base_node(list, Long([1, 2])) == ["list", 0, 1, 2]


@pytest.mark.parametrize("depth", [59, 200])
def test_depth_is_capped(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    if depth <= kinds.MAX_DEPTH:
        assert travel(value) == value
    else:
        with pytest.raises(framing.TooLarge):
            travel(value)


def test_size_is_capped_while_encoding() -> None:
    with pytest.raises(framing.TooLarge):
        travel("x" * (framing.MAX_FRAME + 1))
    with pytest.raises(framing.TooLarge):
        travel([["x" * 1000] for _ in range(2000)])


@given(st.binary(max_size=60))
def test_any_bytes_are_json_or_a_wire_error(data: bytes) -> None:
    try:
        framing.loads(data)
    except framing.WireError:
        return


nodes = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(
        st.sampled_from([*decoder._FILLERS, *decoder._BUILDERS, "ref", "handle"]) | inner,
        max_size=5,
    ),
    max_leaves=12,
)


@given(nodes)
def test_any_node_is_a_value_or_a_wire_error(node: Any) -> None:
    def refuse(tag: str, node: Any) -> Any:
        raise framing.WireError("unknown tag")

    try:
        Decoder(refuse).decode(node)
    except framing.WireError:
        return


def test_frames_cross_a_pipe_in_pieces() -> None:
    reader, writer = os.pipe()
    frame = framing.pack(b"Q", b"12345678", b"[1]")
    for position in range(len(frame)):
        os.write(writer, frame[position : position + 1])
    os.close(writer)
    try:
        assert framing.read_frame(reader) == (b"Q", b"12345678", b"[1]")
        with pytest.raises(EOFError):
            framing.read_frame(reader)
    finally:
        os.close(reader)
