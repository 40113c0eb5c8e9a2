"""Single-edit corruptions of valid histories: each is one lie that a broken broker might tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from random import Random
from typing import Any

from spec.model.history import Acknowledged, Fetched, StartSeen, StateSeen, Step
from spec.model.operations import Error, Range
from tests.generated import MEMBERS, ranges_of

Edit = Callable[[list[Step], Random], list[Step] | None]
Change = Callable[[Any, Random], tuple[Step, ...]]
"""Takes one step, and returns what is told in its place."""

EDITS: list[Edit] = []
"""Every corruption there is. What one edit makes may be legal by chance: rates, not certainties."""


def edit(wanted: Callable[[Step], object]) -> Callable[[Change], Edit]:
    """Make a change an edit of a history: of one of the steps that are wanted, if there are any."""

    def made(change: Change) -> Edit:
        @wraps(change)
        def edited(steps: list[Step], random: Random) -> list[Step] | None:
            found = [index for index, step in enumerate(steps) if wanted(step)]
            if not found:
                return None
            at = random.choice(found)
            return [*steps[:at], *change(steps[at], random), *steps[at + 1 :]]

        EDITS.append(edited)
        return edited

    return made


def _another(member: str, random: Random) -> str:
    return random.choice([name for name in MEMBERS if name != member])


def _counted(step: Fetched, random: Random, by: int) -> tuple[Step, ...]:
    ranges = list(ranges_of(step))
    which = random.randrange(len(ranges))
    ranges[which] = ranges[which]._replace(deliveries=ranges[which].deliveries + by)
    return (replace(step, ranges=tuple(ranges)),)


@edit(ranges_of)
def count_raised(step: Fetched, random: Random) -> tuple[Step, ...]:
    """A delivery count is one too high."""
    return _counted(step, random, 1)


@edit(ranges_of)
def count_lowered(step: Fetched, random: Random) -> tuple[Step, ...]:
    """A delivery count is one too low."""
    return _counted(step, random, -1)


@edit(ranges_of)
def given_twice(step: Fetched, random: Random) -> tuple[Step, ...]:
    """Records come to a second member right after the first."""
    other, moment = _another(step.member, random), step.received + 0.01
    again = tuple(one._replace(deliveries=one.deliveries + 1) for one in ranges_of(step))
    twin = replace(step, sent=moment, received=moment, member=other, ranges=again, max_records=None)
    return step, twin


def _accepted(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.NONE


def _refused(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.INVALID_RECORD_STATE


@edit(_accepted)
def wrong_holder(step: Acknowledged, random: Random) -> tuple[Step, ...]:
    """An acknowledgement is told to come from another member."""
    return (replace(step, member=_another(step.member, random)),)


@edit(_accepted)
def refused_wrongly(step: Acknowledged, _: Random) -> tuple[Step, ...]:
    """A good acknowledgement is refused."""
    return (replace(step, error=Error.INVALID_RECORD_STATE),)


@edit(_refused)
def accepted_wrongly(step: Acknowledged, _: Random) -> tuple[Step, ...]:
    """An acknowledgement that must be refused is accepted."""
    return (replace(step, error=Error.NONE),)


def _final(step: Step) -> list[int]:
    """Return the offsets that an accepted acknowledgement settled for good."""
    if not isinstance(step, Acknowledged) or not _accepted(step):
        return []
    (batch,) = step.batches
    kinds = batch.types * (batch.last - batch.first + 1) if len(batch.types) == 1 else batch.types
    return [batch.first + place for place, kind in enumerate(kinds) if kind in {0, 1, 3}]


@edit(_final)
def redelivered(step: Acknowledged, random: Random) -> tuple[Step, ...]:
    """A record that was settled for good comes again."""
    offset, moment = random.choice(_final(step)), step.received + 0.01
    ranges = (Range(offset, offset, 2),)
    ghost = Fetched(sent=moment, received=moment, member=random.choice(MEMBERS), ranges=ranges)
    return step, ghost


@edit(lambda step: isinstance(step, StartSeen))
def start_ahead(step: StartSeen, _: Random) -> tuple[Step, ...]:
    """A start offset is shown that is a little too high."""
    return (replace(step, offset=step.offset + 5),)


def _stored(step: Step) -> bool:
    return isinstance(step, StateSeen) and bool(step.batches)


@edit(_stored)
def state_lost(step: StateSeen, random: Random) -> tuple[Step, ...]:
    """The durable state lacks one batch."""
    which = random.randrange(len(step.batches))
    kept = step.batches[:which] + step.batches[which + 1 :]
    return (replace(step, batches=kept),)


@edit(_stored)
def state_changed(step: StateSeen, random: Random) -> tuple[Step, ...]:
    """The durable state of one batch is another terminal one."""
    which = random.randrange(len(step.batches))
    one = step.batches[which]
    other = one._replace(state=4 if one.state == 2 else 2)
    kept = (*step.batches[:which], other, *step.batches[which + 1 :])
    return (replace(step, batches=kept),)


def corruptions(
    steps: list[Step], random: Random, edits: Sequence[Edit] = EDITS
) -> Iterator[tuple[str, list[Step]]]:
    """Yield each corruption that a history gives room for, with its name."""
    for edit in edits:
        bad = edit(steps, random)
        if bad is not None:
            yield edit.__name__, bad
