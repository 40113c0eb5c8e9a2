"""All verdicts of the oracle about one history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reports.analysis.files import History
from reports.oracle import lives, offsets, records
from reports.oracle.lives import Moment
from reports.oracle.records import Case
from reports.oracle.tables import Books, grouped, open_books

Verdicts = dict[str, dict[int, tuple[int, int]]]
"""For each rule and share-partition (or request) the cases that tested it, and the broken ones."""


def judge(history: History) -> Verdicts:
    """Judge a history by every rule."""
    tested: Counter[tuple[str, int]] = Counter()
    broken: Counter[tuple[str, int]] = Counter()
    for rule, place, wrong in _cases(open_books(history)):
        tested[rule, place] += 1
        broken[rule, place] += wrong
    found: Verdicts = {}
    for (rule, place), cases in tested.items():
        found.setdefault(rule, {})[place] = (cases, broken[rule, place])
    return found


def _cases(books: Books) -> Iterator[Case]:
    by_queue = _lives(books)
    yield from _of_lives(by_queue)
    yield from records.stored_and_delivered(books)
    yield from records.dead_letters(books, by_queue)
    yield from records.finished(books, by_queue)
    yield from records.stays_finished(books, by_queue)
    yield from records.was_stored(books, by_queue)
    yield from records.below_the_log(books)
    yield from records.alone_at_last(books)
    yield from offsets.shown(books, by_queue)
    yield from offsets.tides(books, by_queue)
    yield from offsets.stored_epochs(books)
    yield from offsets.answered(books)


def _lives(books: Books) -> dict[int, list[list[Moment]]]:
    found: dict[int, list[list[Moment]]] = {}
    for (queue, _), rows in grouped(books.of("deliveries"), "queue", "offset").items():
        life = sorted(rows, key=lambda row: row.acquired)
        share = books.shares[queue]
        told = lives.moments(share, life, close_uncounted=books.release.close_uncounted)
        found.setdefault(queue, []).append(told)
    return found


def _of_lives(by_queue: dict[int, list[list[Moment]]]) -> Iterator[Case]:
    for queue, told in by_queue.items():
        for torn in lives.all_or_none(told):
            yield "INV-08", queue, torn
    for queue, life in ((queue, life) for queue, told in by_queue.items() for life in told):
        for moment in life:
            for name, rule in lives.RULES.items():
                if (broken := rule(moment)) is not None:
                    yield name, queue, broken
            for broken in lives.within_new_limit(moment):
                yield "INV-35", queue, broken
