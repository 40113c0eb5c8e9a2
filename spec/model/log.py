"""What is known of the log under a share-partition: its record batches, as far as known.

Knowing nothing is allowed: then rules that need the borders of batches are not judged.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Protocol


class LogBatch(NamedTuple):
    """A record batch that the log holds; ``hidden`` if no reader of committed records sees it."""

    first: int
    last: int
    size: int
    hidden: bool = False


class Readable(Protocol):
    @property
    def start(self) -> int:
        """The log start offset."""

    def end(self, *, committed: bool = False) -> int:
        """Return the offset behind the last one to be read: high watermark or last stable one."""

    def over(self, first: int, last: int) -> Iterator[LogBatch]:
        """Yield the batches that touch a range of offsets, in order."""


class Log:
    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self.start = 0

    @property
    def known(self) -> bool:
        """Whether any batch is known; if so, all have to be."""
        return bool(self._firsts)

    @property
    def last(self) -> int:
        return self._lasts[-1] if self._lasts else -1

    def append(self, first: int, last: int) -> None:
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

    def end(self, *, committed: bool = False) -> int:  # noqa: ARG002 - it knows no transactions
        return self.last + 1

    def over(self, first: int, last: int) -> Iterator[LogBatch]:
        """Yield the batches that touch a range of offsets, a record counting as one byte."""
        index = max(bisect_right(self._firsts, first) - 1, 0)
        for low, high in zip(self._firsts[index:], self._lasts[index:], strict=True):
            if low > last:
                return
            if high >= first:
                yield LogBatch(low, high, high - low + 1)

    def compact(self, first: int, last: int) -> None:
        kept = [
            (low, high)
            for low, high in zip(self._firsts, self._lasts, strict=True)
            if low < first or high > last or high == self.last
        ]
        self._firsts, self._lasts = [low for low, _ in kept], [high for _, high in kept]
