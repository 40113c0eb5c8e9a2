"""Values by offset, kept as runs of equal neighbours.

Share groups work in batches, so a thousand offsets mostly share a handful of values. A run costs
the same for one offset as for a thousand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

V = TypeVar("V")
END = 2**63  # One past the highest offset.


class Runs(Generic[V]):
    def __init__(self, first: int, value: V) -> None:
        self._starts = [first]
        self._values = [value]

    @property
    def first(self) -> int:
        return self._starts[0]

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, offset: int) -> V:
        return self._values[self._at(offset)]

    def _at(self, offset: int) -> int:
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            raise IndexError(f"offset {offset} is below {self._starts[0]}")
        return index

    def over(self, first: int, last: int = END - 1) -> Iterator[tuple[int, int, V]]:
        starts, values = self._starts, self._values
        for index in range(max(bisect_right(starts, first) - 1, 0), len(starts)):
            start = starts[index]
            if start > last:
                return
            end = starts[index + 1] - 1 if index + 1 < len(starts) else END - 1
            yield max(start, first), min(end, last), values[index]

    def apply(self, first: int, last: int, change: Callable[[int, int, V], V]) -> None:
        """Replace the value of every run within a range; ``change`` gets its first, last, value.

        Offsets below :attr:`first` are left out.
        """
        starts, values = self._starts, self._values
        first = max(first, starts[0])
        if last < first:
            return
        low, high = self._at(first), self._at(last)
        if low == high and self._replaced(low, first, last, change):
            return
        new_starts: list[int] = []
        new_values: list[V] = []
        if starts[low] < first:
            new_starts.append(starts[low])
            new_values.append(values[low])
        for index in range(low, high + 1):
            start = max(starts[index], first)
            end = starts[index + 1] - 1 if index < high else last
            new_starts.append(start)
            new_values.append(change(start, end, values[index]))
        after = starts[high + 1] if high + 1 < len(starts) else END
        if last + 1 < after:
            new_starts.append(last + 1)
            new_values.append(values[high])
        self._splice(low, high + 1, new_starts, new_values)

    def put(self, first: int, last: int, value: V) -> None:
        self.apply(first, last, lambda _first, _last, _old: value)

    def _replaced(
        self, index: int, first: int, last: int, change: Callable[[int, int, V], V]
    ) -> bool:
        starts, values = self._starts, self._values
        more = index + 1 < len(starts)
        if starts[index] != first or not more or starts[index + 1] != last + 1:
            return False
        value = values[index] = change(first, last, values[index])
        if value == values[index + 1] or (index > 0 and value == values[index - 1]):
            self._splice(index, index + 1, [first], [value])
        return True

    def _splice(self, low: int, high: int, new_starts: list[int], new_values: list[V]) -> None:
        starts, values = self._starts, self._values
        if low > 0:
            low -= 1
            new_starts.insert(0, starts[low])
            new_values.insert(0, values[low])
        if high < len(starts):
            new_starts.append(starts[high])
            new_values.append(values[high])
            high += 1
        kept_starts, kept_values = [new_starts[0]], [new_values[0]]
        for start, value in zip(new_starts[1:], new_values[1:], strict=True):
            if value != kept_values[-1]:
                kept_starts.append(start)
                kept_values.append(value)
        starts[low:high] = kept_starts
        values[low:high] = kept_values

    def copy(self) -> Runs[V]:
        twin: Runs[V] = Runs(0, self._values[0])
        twin._starts[:], twin._values[:] = self._starts, self._values
        return twin

    def trim(self, before: int) -> None:
        if before <= self._starts[0]:
            return
        index = self._at(before)
        self._starts[: index + 1] = [before]
        self._values[: index + 1] = [self._values[index]]
