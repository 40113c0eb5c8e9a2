"""An assignor that is not Kafka's own: a class of ours on the class path of the broker."""

from suites.broker.brokers import plugged
from suites.broker.kit import *

ASSIGNOR = "OneTakesAll"


@pytest.fixture
async def assigning(
    run_options: RunOptions, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Env]:
    """A world on a broker that was told to assign by our class."""
    properties = {"group.share.assignors": ASSIGNOR}
    async with plugged(run_options, ASSIGNOR, properties, rng, transcripts) as env:
        yield env


@check("MEM-22", solo={})
async def test_named_assignor_assigns(assigning: Env, judge: Judge) -> None:
    # Ours gives all to the member whose id comes first, whatever the order in which members
    # joined.
    for _ in range(2):
        queue = await assigning.queue(partitions=3)
        members = await crowd(assigning, queue, 3)
        first, second, *_ = sorted(members, key=lambda member: member.member_id)
        await _judge_assigned(judge, members, {first.member_id: [0, 1, 2]}, "three members")

        await first.leave()
        members.remove(first)
        everything = {second.member_id: [0, 1, 2]}
        await _judge_assigned(judge, members, everything, "the first of them gone")


async def _judge_assigned(
    judge: Judge, members: list[Member], everything: dict[str, list[int]], what: str
) -> None:
    """Demand that assignments come to be those that our class makes."""
    expected = {member.member_id: everything.get(member.member_id, []) for member in members}

    def seen() -> dict[str, list[int]]:
        return {m.member_id: sorted(index for _, index in m.assigned) for m in members}

    await beating(members, lambda: seen() == expected)
    judge.equal(expected, seen(), f"partitions assigned to {what}")
