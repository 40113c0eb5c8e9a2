"""Single-edit corruptions of valid histories: each is one lie that a broken broker might tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from spec.model.history import Acknowledged, Fetched, StartSeen, StateSeen, Step
from spec.model.operations import Error, Range
from tests.generated import MEMBERS, ranges_of

Edit = Callable[[list[Step], Random], list[Step] | None]


def _pick(steps: Sequence[Step], random: Random, wanted: Callable[[Step], bool]) -> int | None:
    found = [index for index, step in enumerate(steps) if wanted(step)]
    return random.choice(found) if found else None


def _swap(steps: list[Step], index: int, *new: Step) -> list[Step]:
    return [*steps[:index], *new, *steps[index + 1 :]]


def _edit_range(
    steps: list[Step], random: Random, edit: Callable[[Range], Range]
) -> list[Step] | None:
    index = _pick(steps, random, lambda step: bool(ranges_of(step)))
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, Fetched)
    ranges = list(ranges_of(step))
    which = random.randrange(len(ranges))
    ranges[which] = edit(ranges[which])
    return _swap(steps, index, replace(step, ranges=tuple(ranges)))


def count_raised(steps: list[Step], random: Random) -> list[Step] | None:
    """A delivery count is one too high."""
    return _edit_range(steps, random, lambda one: one._replace(deliveries=one.deliveries + 1))


def count_lowered(steps: list[Step], random: Random) -> list[Step] | None:
    """A delivery count is one too low."""
    return _edit_range(steps, random, lambda one: one._replace(deliveries=one.deliveries - 1))


def given_twice(steps: list[Step], random: Random) -> list[Step] | None:
    """Records come to a second member right after the first."""
    index = _pick(steps, random, lambda step: bool(ranges_of(step)))
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, Fetched)
    other = random.choice([name for name in MEMBERS if name != step.member])
    moment = step.received + 0.01
    again = tuple(one._replace(deliveries=one.deliveries + 1) for one in ranges_of(step))
    twin = replace(step, sent=moment, received=moment, member=other, ranges=again, max_records=None)
    return _swap(steps, index, step, twin)


def wrong_holder(steps: list[Step], random: Random) -> list[Step] | None:
    """An acknowledgement is told to come from another member."""
    index = _pick(steps, random, _accepted)
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, Acknowledged)
    other = random.choice([name for name in MEMBERS if name != step.member])
    return _swap(steps, index, replace(step, member=other))


def refused_wrongly(steps: list[Step], random: Random) -> list[Step] | None:
    """A good acknowledgement is refused."""
    return _answer(steps, random, _accepted, Error.INVALID_RECORD_STATE)


def accepted_wrongly(steps: list[Step], random: Random) -> list[Step] | None:
    """An acknowledgement that must be refused is accepted."""
    return _answer(steps, random, _refused, Error.NONE)


def _answer(
    steps: list[Step], random: Random, wanted: Callable[[Step], bool], error: Error
) -> list[Step] | None:
    index = _pick(steps, random, wanted)
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, Acknowledged)
    return _swap(steps, index, replace(step, error=error))


def _accepted(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.NONE


def _refused(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.INVALID_RECORD_STATE


def redelivered(steps: list[Step], random: Random) -> list[Step] | None:
    """A record that was settled for good comes again."""
    index = _pick(steps, random, lambda step: _accepted(step) and bool(_final(step)))
    if index is None:
        return None
    step = steps[index]
    offset = random.choice(_final(step))
    moment = step.received + 0.01
    ranges = (Range(offset, offset, 2),)
    ghost = Fetched(sent=moment, received=moment, member=random.choice(MEMBERS), ranges=ranges)
    return _swap(steps, index, step, ghost)


def _final(step: Step) -> list[int]:
    assert isinstance(step, Acknowledged)
    (batch,) = step.batches
    kinds = batch.types * (batch.last - batch.first + 1) if len(batch.types) == 1 else batch.types
    return [batch.first + place for place, kind in enumerate(kinds) if kind in {0, 1, 3}]


def start_ahead(steps: list[Step], random: Random) -> list[Step] | None:
    """A start offset is shown that is a little too high."""
    index = _pick(steps, random, lambda step: isinstance(step, StartSeen))
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, StartSeen)
    return _swap(steps, index, replace(step, offset=step.offset + 5))


def state_lost(steps: list[Step], random: Random) -> list[Step] | None:
    """The durable state lacks one batch."""
    index = _pick(steps, random, lambda step: isinstance(step, StateSeen) and bool(step.batches))
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, StateSeen)
    which = random.randrange(len(step.batches))
    kept = step.batches[:which] + step.batches[which + 1 :]
    return _swap(steps, index, replace(step, batches=kept))


def state_changed(steps: list[Step], random: Random) -> list[Step] | None:
    """The durable state of one batch is another terminal one."""
    index = _pick(steps, random, lambda step: isinstance(step, StateSeen) and bool(step.batches))
    if index is None:
        return None
    step = steps[index]
    assert isinstance(step, StateSeen)
    which = random.randrange(len(step.batches))
    one = step.batches[which]
    other = one._replace(state=4 if one.state == 2 else 2)
    kept = (*step.batches[:which], other, *step.batches[which + 1 :])
    return _swap(steps, index, replace(step, batches=kept))


EDITS: tuple[Edit, ...] = (
    count_raised,
    count_lowered,
    given_twice,
    wrong_holder,
    refused_wrongly,
    accepted_wrongly,
    redelivered,
    start_ahead,
    state_lost,
    state_changed,
)
"""Every corruption there is. What one edit makes may be legal by chance: rates, not certainties."""


def corruptions(
    steps: list[Step], random: Random, edits: Sequence[Edit] = EDITS
) -> Iterator[tuple[str, list[Step]]]:
    """Yield each corruption that a history gives room for, with its name."""
    for edit in edits:
        bad = edit(steps, random)
        if bad is not None:
            yield edit.__name__, bad
