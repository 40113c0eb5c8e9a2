"""Requests in which every list has three elements or more, and one of them is bad.

A defect that acts from the second topic, partition or group on is not met by a request about one.
:data:`LISTS` has every list of the share APIs' requests and responses. ``tests/test_campaign.py``
holds it against the message definitions, and plays the checks to see that they met what they
claim.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest

from fixtures.clients.cluster import WITHIN, Topic, attempts
from fixtures.clients.member import Member, Response, Session, Where
from suites.broker.env import Catch, Consumer, Env, Queue, T, stopped
from suites.broker.settings import LOCK, RESET
from suites.broker.state import STATE_RPCS

MANY = 3  # How many elements each list has at least; the bad one comes on top.
POSITIONS = ("first", "middle", "last")
AT = pytest.mark.parametrize("position", POSITIONS)
"""Where the bad element stands among the good ones."""

_ACK, _SES, _PER, _ADM, _MEM = (
    f"suites/broker/test_{area}_many.py::" for area in ("ack", "ses", "per", "adm", "mem")
)
LISTS = MappingProxyType(
    {
        path: check
        for check, paths in {
            f"{_MEM}test_one_unknown_topic": """
                ShareGroupHeartbeatRequest.subscribed_topic_names
                ShareGroupHeartbeatResponse.assignment.topic_partitions
                ShareGroupHeartbeatResponse.assignment.topic_partitions.partitions""",
            f"{_ADM}test_one_unknown_group": """
                ShareGroupDescribeRequest.group_ids
                ShareGroupDescribeResponse.groups
                ShareGroupDescribeResponse.groups.members
                ShareGroupDescribeResponse.groups.members.subscribed_topic_names
                ShareGroupDescribeResponse.groups.members.assignment.topic_partitions
                ShareGroupDescribeResponse.groups.members.assignment.topic_partitions.partitions""",
            f"{_ACK}test_one_bad_partition": """
                ShareFetchRequest.topics ShareFetchRequest.topics.partitions
                ShareFetchRequest.topics.partitions.acknowledgement_batches
                ShareFetchResponse.responses ShareFetchResponse.responses.partitions
                ShareFetchResponse.responses.partitions.acquired_records
                ShareAcknowledgeRequest.topics ShareAcknowledgeRequest.topics.partitions
                ShareAcknowledgeRequest.topics.partitions.acknowledgement_batches
                ShareAcknowledgeResponse.responses ShareAcknowledgeResponse.responses.partitions""",
            f"{_ACK}test_one_bad_type": """
                ShareFetchRequest.topics.partitions.acknowledgement_batches.acknowledge_types
                ShareAcknowledgeRequest.topics.partitions.acknowledgement_batches.acknowledge_types
            """,
            f"{_SES}test_forgetting_many": """
                ShareFetchRequest.forgotten_topics_data
                ShareFetchRequest.forgotten_topics_data.partitions""",
            "suites/broker/test_coo_hints.py::test_three_leaders": """
                ShareFetchResponse.node_endpoints ShareAcknowledgeResponse.node_endpoints""",
            f"{_PER}test_one_bad_partition": " ".join(
                f"{api}Request.topics {api}Request.topics.partitions "
                f"{api}Response.results {api}Response.results.partitions"
                for api in STATE_RPCS
            )
            + """
                WriteShareGroupStateRequest.topics.partitions.state_batches
                ReadShareGroupStateResponse.results.partitions.state_batches""",
            f"{_ADM}test_offsets_of_many": """
                DescribeShareGroupOffsetsRequest.groups
                DescribeShareGroupOffsetsRequest.groups.topics
                DescribeShareGroupOffsetsRequest.groups.topics.partitions
                DescribeShareGroupOffsetsResponse.groups
                DescribeShareGroupOffsetsResponse.groups.topics
                DescribeShareGroupOffsetsResponse.groups.topics.partitions""",
            f"{_ADM}test_altering_many": """
                AlterShareGroupOffsetsRequest.topics AlterShareGroupOffsetsRequest.topics.partitions
                AlterShareGroupOffsetsResponse.responses
                AlterShareGroupOffsetsResponse.responses.partitions""",
            f"{_ADM}test_deleting_many": """
                DeleteShareGroupOffsetsRequest.topics DeleteShareGroupOffsetsResponse.responses""",
        }.items()
        for path in paths.split()
    }
)
"""The check that meets a list with :data:`MANY` elements and more, by message and path."""


def among(good: Sequence[T], bad: T, position: str) -> list[T]:
    at = {"first": 0, "middle": len(good) // 2, "last": len(good)}[position]
    return [*good[:at], bad, *good[at:]]


@dataclass(frozen=True, slots=True)
class Grid:
    env: Env
    topics: tuple[Topic, ...]
    member: Member
    session: Session

    @property
    def group(self) -> str:
        return self.member.group

    @property
    def places(self) -> list[Where]:
        return [(topic, index) for topic in self.topics for index in topic.partitions]

    def queue(self, topic: Topic) -> Queue:
        return Queue(env=self.env, topic=topic, group=self.group)

    async def produce(self, records: int, *, batches: int = 1) -> None:
        admin = self.env.admin
        await asyncio.gather(
            *(admin.produce(topic, records, index, batches=batches) for topic, index in self.places)
        )

    async def acquire(
        self, session: Session, each: int, *, until: int = 0, within: float = WITHIN
    ) -> list[Response]:
        """Fetch until so many records of every partition, and one offset of each, are acquired."""
        held = {(topic.id, index): Catch() for topic, index in self.places}
        responses: list[Response] = []
        caught: list[dict[int, int]] = []
        async for _ in attempts(within):
            named = self.places if session.epoch == 0 else ()
            responses.append(Consumer.sound(await session.fetch(*named, max_records=2000)))
            for part in responses[-1].parts:
                held.setdefault((part.topic_id, part.partition), Catch()).counts.update(part.counts)
            caught = [catch.counts for catch in held.values()]
            if all(len(counts) >= each and (not until or until in counts) for counts in caught):
                return responses
        sentence = f"not {each} records of each partition were acquired, but {caught}"
        raise await stopped(self.env.cluster, self.topics[0].leaders[0], sentence, session.fetch)


async def grid(env: Env, group: str | None = None, *, partitions: int = MANY) -> Grid:
    """Return new topics with as many partitions each, and a member that has been assigned all."""
    node = env.rng.choice(sorted(env.cluster.brokers))
    name = group or env.cluster.fresh_name("g")
    await env.admin.group_config(name, {RESET: "earliest", LOCK: str(env.bounds.longest_lock)})
    at = [[node]] * partitions
    topics = await asyncio.gather(*(env.admin.create_topic(assignments=at) for _ in range(MANY)))
    member = await env.member(name, *topics)
    return Grid(env, tuple(topics), member, await member.session(node))


def nowhere(env: Env, topic: Topic) -> Topic:
    return replace(
        topic, name=env.cluster.fresh_name("t"), id=uuid.UUID(bytes=env.rng.randbytes(16))
    )
