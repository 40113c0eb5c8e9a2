"""What is known of the log under a share-partition: its record batches, as far as told.

Knowing nothing is allowed: then rules that need the borders of batches are not judged.
"""

from __future__ import annotations

from bisect import bisect_right


class Log:
    """The record batches of one partition, in the order they were produced."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    @property
    def known(self) -> bool:
        """Whether the log was told of. If so, it must be told of whole."""
        return bool(self._firsts)

    @property
    def last(self) -> int:
        """The highest offset that was ever written, -1 if there is none."""
        return self._lasts[-1] if self._lasts else -1

    def append(self, first: int, last: int) -> None:
        """Add a record batch behind the others."""
        if first > last or first <= self.last:
            raise ValueError(f"batch {first}-{last} does not come after offset {self.last}")
        self._firsts.append(first)
        self._lasts.append(last)

    def batch_of(self, offset: int) -> tuple[int, int]:
        """Return the first and last offset of the batch that holds an offset.

        An offset outside every batch is a batch of its own.
        """
        index = bisect_right(self._firsts, offset) - 1
        if index < 0 or self._lasts[index] < offset:
            return offset, offset
        return self._firsts[index], self._lasts[index]
