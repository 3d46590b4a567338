"""Which samples of which tasks a file holds: one bit each, so that half a million fit anywhere."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple


class Place(NamedTuple):
    """One sample of the task at ``task`` in the version's order."""

    task: int
    sample: int


class Places:
    """A set of places. Tasks are numbered from 0 to ``tasks`` - 1."""

    def __init__(self, tasks: int) -> None:
        self._bits = [bytearray() for _ in range(tasks)]
        self._counts = [0] * tasks
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[Place]:
        """By sample, then by task: the first results then say something about all tasks."""
        longest = max(map(len, self._bits), default=0)
        for index in range(8 * longest):
            byte, mask = index >> 3, 1 << (index & 7)
            for task, bits in enumerate(self._bits):
                if byte < len(bits) and bits[byte] & mask:
                    yield Place(task, index)

    def add(self, task: int, index: int) -> bool:
        """False where the place is taken already."""
        bits, byte, mask = self._bits[task], index >> 3, 1 << (index & 7)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        elif bits[byte] & mask:
            return False
        bits[byte] |= mask
        self._counts[task] += 1
        self._total += 1
        return True

    def count(self, task: int) -> int:
        return self._counts[task]

    def counts(self) -> list[int]:
        """Samples of each task."""
        return list(self._counts)


class PlaceKeys:
    """A primary key for each of some places, given in the order of `Places`."""

    def __init__(self, tasks: int) -> None:
        self._indexes = [array("H") for _ in range(tasks)]
        self._keys = [array("q") for _ in range(tasks)]

    def add(self, place: Place, key: int) -> None:
        self._indexes[place.task].append(place.sample)
        self._keys[place.task].append(key)

    def __getitem__(self, place: Place) -> int:
        indexes = self._indexes[place.task]
        at = bisect_left(indexes, place.sample)
        if at == len(indexes) or indexes[at] != place.sample:
            raise KeyError(place)
        return self._keys[place.task][at]
