"""Random small histories: the judges accuse the illegal ones, and no others."""

import pytest

from spec.history import AckType, Outcome
from tools.campaign.histories import judged, play, summary
from tools.campaign.options import EvidenceStore, Options
from tools.histories.judges import accused, disagreements
from tools.histories.small import (
    NEVER,
    Ack,
    Close,
    Deletion,
    Event,
    Fetch,
    History,
    Load,
    Look,
    Unseen,
)
from tools.histories.truth import is_legal


def fetch(op: int, sent: int, count: int, node: int = 1) -> Fetch:
    times = {"sent": sent * 1000, "received": sent * 1000 + 1000}
    return Fetch(op=op, member=op, node=node, counts=((0, count),), **times)


def ack(op: int, sent: int, kind: AckType, outcome: Outcome = Outcome.OK) -> Ack:
    received = NEVER if outcome is Outcome.UNKNOWN else sent * 1000 + 1000
    return Ack(sent=sent * 1000, received=received, op=op, kinds=((0, kind),), outcome=outcome)


LOAD = Load(sent=20_000, received=25_000, node=1)
ACCEPT, RELEASE = AckType.ACCEPT, AckType.RELEASE


@pytest.mark.parametrize(
    ("legal", "events"),
    [
        (True, [fetch(1, 10, 1), ack(1, 30, RELEASE), fetch(2, 50, 2), ack(2, 60, ACCEPT)]),
        (False, [fetch(1, 10, 1), ack(1, 30, ACCEPT), fetch(2, 50, 2), ack(2, 60, ACCEPT)]),
        # A lock, and a session, end.
        (True, [fetch(1, 10, 1), fetch(2, 1100, 2), ack(2, 1200, ACCEPT)]),
        (False, [fetch(1, 10, 1), fetch(2, 900, 2), ack(2, 950, ACCEPT)]),
        (
            True,
            [
                fetch(1, 10, 1),
                Close(sent=15_000, received=NEVER, member=1, node=1, outcome=Outcome.OK, held=()),
                fetch(2, 900, 2),
                ack(2, 950, ACCEPT),
            ],
        ),
        # A load forgets what was not stored, and nothing that was answered OK.
        (True, [fetch(1, 10, 1), LOAD, fetch(2, 50, 1), ack(2, 60, ACCEPT)]),
        (False, [fetch(1, 10, 1), ack(1, 15, RELEASE), LOAD, fetch(2, 50, 1), ack(2, 60, ACCEPT)]),
        # Without a response an acknowledgement may be applied, later or never.
        (True, [fetch(1, 10, 1), ack(1, 15, ACCEPT, Outcome.UNKNOWN)]),
        (
            True,
            [
                fetch(1, 10, 1),
                ack(1, 15, RELEASE, Outcome.UNKNOWN),
                fetch(2, 50, 2),
                ack(2, 60, ACCEPT),
            ],
        ),
        # Nobody else explains a count, unless a response got lost.
        (False, [fetch(1, 10, 2), ack(1, 15, ACCEPT)]),
        (True, [Unseen(sent=1000, received=2000), fetch(1, 1100, 2), ack(1, 1200, ACCEPT)]),
        # In the end all is finished.
        (False, [fetch(1, 10, 1), ack(1, 15, RELEASE)]),
        (True, [fetch(1, 10, 3), *(Unseen(sent=1, received=2),) * 2]),
    ],
)
def test_truth(legal: bool, events: list[Event]) -> None:
    history = History(records=1, limit=3, lock_ms=1000, drained=True, events=tuple(events))

    assert is_legal(history) == legal


def test_judges_accuse_what_nothing_explains() -> None:
    outcome = summary(judged(range(200)))

    assert outcome.broken == []


def test_a_seed_can_be_played_again() -> None:
    outcome = play(Options(store=EvidenceStore(record=False), seed=7, count=1))

    assert outcome.broken == []
    assert any("unedited: legal, accused by no rule" in line for line in outcome.said)


def test_an_acceptance_before_a_deletion_counts_unless_retention_may_have_come_first() -> None:
    def look(sent: int, log_start: int, spso: int = 0) -> Look:
        times = {"sent": sent * 1000, "received": sent * 1000 + 1000}
        return Look(spso=spso, log_start=log_start, **times)

    again = [fetch(1, 10, 1), ack(1, 30, ACCEPT), fetch(2, 50, 2), ack(2, 60, ACCEPT), look(5, 0)]
    deleted = Deletion(sent=70_000, received=71_000, before=1)
    histories = [
        History(records=6, limit=5, lock_ms=1000, drained=False, events=(*again, *more))
        for more in (
            [deleted, look(80, 1)],
            [deleted, look(80, 2)],
            [look(80, 1)],
            # Where only the log's start was looked at, it is as good as any other look.
            [look(65, 0, -1), look(67, 1, -1), look(80, 1)],
        )
    ]
    assert ["INV-02" in rules for rules in accused(histories)] == [True, False, False, True]
    assert disagreements(histories) == []
