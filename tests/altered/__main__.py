"""``python -m tests.altered DIR``: alter a run's history in every way, and judge it."""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from reports.analysis.files import open_history
from reports.analysis.session import MEDIUM, open_session
from reports.oracle.judging import Verdicts
from spec.history import log_numbers
from tests.altered import deliveries, records, state
from tests.altered.alteration import (
    ALTERATIONS,
    Alteration,
    NoPlace,
    copy_of,
    read_source,
    write_copies,
)
from tools.histories.judges import compare


def main() -> int:
    """Alter and judge; exit code 1 when something else was told than should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="directory of a small run")
    history = open_history(parser.parse_args().run)
    spark = open_session("local[2]", "1g", MEDIUM)
    with tempfile.TemporaryDirectory(prefix="shareproof-altered-") as room:
        altered = alter(history.folder, Path(room) / "history", history.version, both=True)
        found, differing = compare(spark, altered.folder, "altered")
    wrong = list(mistakes(found, altered))
    print(f"{len(altered.made)} alterations, {len(differing)} differences, {len(wrong)} mistakes")
    print(*wrong, *differing[:20], sep="\n  ")
    print("no place for:", *sorted(set(altered.impossible)), sep="\n  ")
    spark.stop()
    return int(bool(wrong or differing))


SUBJECTS = (deliveries, records, state)  # the modules that declare alterations
FIRST, LAST = 0, -1


class Made(NamedTuple):
    """An alteration that was made, and the numbers by which verdicts name its copy."""

    alteration: Alteration
    edge: int
    places: frozenset[int]

    def __str__(self) -> str:
        return f"{self.alteration} ({'first' if self.edge == FIRST else 'last'})"


class Altered(NamedTuple):
    """A history of copies: those that nothing was done to come first, one of each partition."""

    folder: Path
    plain: Sequence[frozenset[int]]
    made: Sequence[Made]
    impossible: Sequence[str]


def alter(history: Path, folder: Path, version: str, *, both: bool = False) -> Altered:
    """Write copies of the first two partitions of a history, each altered in another way.

    Args:
        history: a compacted history.
        folder: where the copies go, as one history.
        version: the release that it is of.
        both: make every alteration at the first and at the last place that suits it; otherwise
            at the first and at the last in turn.
    """
    sources = [read_source(history, partition) for partition in (0, 1)]
    numbers, turns = log_numbers(), cycle((FIRST, LAST))
    plain = [copy_of(rows, number, next(numbers), FIRST) for number, rows in enumerate(sources)]
    copies, made, impossible = list(plain), [], []
    for alteration in ALTERATIONS:
        for edge in (FIRST, LAST) if both else (next(turns),):
            copy = copy_of(sources[alteration.partition], len(copies), next(numbers), edge)
            try:
                alteration.alter(copy)
            except NoPlace:
                impossible.append(str(alteration))
            else:
                copies.append(copy)
                made.append(Made(alteration, edge, copy.places))
    write_copies(folder, copies, version)
    return Altered(folder, [copy.places for copy in plain], made, impossible)


def mistakes(found: Verdicts, altered: Altered) -> Iterator[str]:
    for made in altered.made:
        one = made.alteration
        before = altered.plain[one.partition]
        told = {
            rule
            for rule, places in found.items()
            if _broken(places, made.places) > _broken(places, before)
        }
        wanted = {one.rule} if one.breaks else set()
        if told - one.also != wanted:
            yield f"{made}: {', '.join(sorted(told)) or 'nothing'} was told"


def _broken(places: dict[int, tuple[int, int]], wanted: frozenset[int]) -> int:
    return sum(broken for place, (_, broken) in places.items() if place in wanted)


if __name__ == "__main__":
    raise SystemExit(main())
