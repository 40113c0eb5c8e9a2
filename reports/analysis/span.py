"""When a run was, on its own clock."""

from collections.abc import Iterator

import pyarrow.compute as pc
import pyarrow.parquet as pq

from reports.analysis.files import History


def span(history: History) -> tuple[int, int]:
    """Return when a run began, and when the last that was done in it was over.

    Both are nanoseconds of the run's clock, and 0 where nothing happened at all. Deliveries are
    not read for that: the files say at their ends between which times they are.
    """
    times = [time for pair in _spans(history) for time in pair]
    return min(times, default=0), max(times, default=0)


def _spans(history: History) -> Iterator[tuple[int, int]]:
    for file in history.readable("phases"):
        with (history.folder / file.path).open("rb") as source:
            table = pq.read_table(source, columns=["since", "until"])
        if table.num_rows:
            yield pc.min(table["since"]).as_py(), pc.max(table["until"]).as_py()
    for file in history.readable("deliveries"):
        with (history.folder / file.path).open("rb") as source:
            footer = pq.read_metadata(source)
        column = footer.schema.names.index("acquired")
        for number in range(footer.num_row_groups):
            seen = footer.row_group(number).column(column).statistics
            if seen is not None and seen.has_min_max:
                yield seen.min, seen.max
