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
from typing import TypeVar

import pytest

from fixtures.clients.cluster import WITHIN, Topic, attempts
from fixtures.clients.member import Member, Response, Session, Where
from suites.broker.share import Catch, Consumer, Queue, Share, stopped

T = TypeVar("T")

MANY = 3
"""How many elements each list has at least; the bad one comes on top."""

POSITIONS = ("first", "middle", "last")
AT = pytest.mark.parametrize("position", POSITIONS)
"""Where the bad element stands among the good ones."""

_ACK, _SES, _PER, _ADM, _MEM = (
    f"suites/broker/test_{area}_many.py::" for area in ("ack", "ses", "per", "adm", "mem")
)
_ACKED = f"{_ACK}test_one_bad_partition"
_STATE = f"{_PER}test_one_bad_partition"
_LED = "suites/broker/test_coo_hints.py::test_three_leaders"

LISTS = MappingProxyType(
    {
        "ShareGroupHeartbeatRequest.subscribed_topic_names": f"{_MEM}test_one_unknown_topic",
        "ShareGroupHeartbeatResponse.assignment.topic_partitions": f"{_MEM}test_one_unknown_topic",
        "ShareGroupHeartbeatResponse.assignment.topic_partitions.partitions": (
            f"{_MEM}test_one_unknown_topic"
        ),
        "ShareGroupDescribeRequest.group_ids": f"{_ADM}test_one_unknown_group",
        "ShareGroupDescribeResponse.groups": f"{_ADM}test_one_unknown_group",
        "ShareGroupDescribeResponse.groups.members": f"{_ADM}test_one_unknown_group",
        "ShareGroupDescribeResponse.groups.members.subscribed_topic_names": (
            f"{_ADM}test_one_unknown_group"
        ),
        "ShareGroupDescribeResponse.groups.members.assignment.topic_partitions": (
            f"{_ADM}test_one_unknown_group"
        ),
        "ShareGroupDescribeResponse.groups.members.assignment.topic_partitions.partitions": (
            f"{_ADM}test_one_unknown_group"
        ),
        "ShareFetchRequest.topics": _ACKED,
        "ShareFetchRequest.topics.partitions": _ACKED,
        "ShareFetchRequest.topics.partitions.acknowledgement_batches": _ACKED,
        "ShareFetchRequest.topics.partitions.acknowledgement_batches.acknowledge_types": (
            f"{_ACK}test_one_bad_type"
        ),
        "ShareFetchRequest.forgotten_topics_data": f"{_SES}test_forgetting_many",
        "ShareFetchRequest.forgotten_topics_data.partitions": f"{_SES}test_forgetting_many",
        "ShareFetchResponse.responses": _ACKED,
        "ShareFetchResponse.responses.partitions": _ACKED,
        "ShareFetchResponse.responses.partitions.acquired_records": _ACKED,
        "ShareFetchResponse.node_endpoints": _LED,
        "ShareAcknowledgeRequest.topics": _ACKED,
        "ShareAcknowledgeRequest.topics.partitions": _ACKED,
        "ShareAcknowledgeRequest.topics.partitions.acknowledgement_batches": _ACKED,
        "ShareAcknowledgeRequest.topics.partitions.acknowledgement_batches.acknowledge_types": (
            f"{_ACK}test_one_bad_type"
        ),
        "ShareAcknowledgeResponse.responses": _ACKED,
        "ShareAcknowledgeResponse.responses.partitions": _ACKED,
        "ShareAcknowledgeResponse.node_endpoints": _LED,
        **{
            f"{api}{way}": _STATE
            for api in (
                "InitializeShareGroupState",
                "ReadShareGroupState",
                "WriteShareGroupState",
                "DeleteShareGroupState",
                "ReadShareGroupStateSummary",
            )
            for way in (
                "Request.topics",
                "Request.topics.partitions",
                "Response.results",
                "Response.results.partitions",
            )
        },
        "WriteShareGroupStateRequest.topics.partitions.state_batches": _STATE,
        "ReadShareGroupStateResponse.results.partitions.state_batches": _STATE,
        "DescribeShareGroupOffsetsRequest.groups": f"{_ADM}test_offsets_of_many",
        "DescribeShareGroupOffsetsRequest.groups.topics": f"{_ADM}test_offsets_of_many",
        "DescribeShareGroupOffsetsRequest.groups.topics.partitions": f"{_ADM}test_offsets_of_many",
        "DescribeShareGroupOffsetsResponse.groups": f"{_ADM}test_offsets_of_many",
        "DescribeShareGroupOffsetsResponse.groups.topics": f"{_ADM}test_offsets_of_many",
        "DescribeShareGroupOffsetsResponse.groups.topics.partitions": f"{_ADM}test_offsets_of_many",
        "AlterShareGroupOffsetsRequest.topics": f"{_ADM}test_altering_many",
        "AlterShareGroupOffsetsRequest.topics.partitions": f"{_ADM}test_altering_many",
        "AlterShareGroupOffsetsResponse.responses": f"{_ADM}test_altering_many",
        "AlterShareGroupOffsetsResponse.responses.partitions": f"{_ADM}test_altering_many",
        "DeleteShareGroupOffsetsRequest.topics": f"{_ADM}test_deleting_many",
        "DeleteShareGroupOffsetsResponse.responses": f"{_ADM}test_deleting_many",
    }
)
"""The check that meets a list with :data:`MANY` elements and more, by message and path."""


def among(good: Sequence[T], bad: T, position: str) -> list[T]:
    """Return good elements with a bad one before them, among them or behind them."""
    at = {"first": 0, "middle": len(good) // 2, "last": len(good)}[position]
    return [*good[:at], bad, *good[at:]]


@dataclass(frozen=True, slots=True)
class Grid:
    """Three topics with three partitions each, all led by one broker, and a member of a group."""

    share: Share
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
        return Queue(share=self.share, topic=topic, group=self.group)

    async def produce(self, records: int, *, batches: int = 1) -> None:
        admin = self.share.admin
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
                held[part.topic_id, part.partition].counts.update(part.counts)
            caught = [catch.counts for catch in held.values()]
            if all(len(counts) >= each and (not until or until in counts) for counts in caught):
                return responses
        sentence = f"not {each} records of each partition were acquired, but {caught}"
        node = self.topics[0].leaders[0]
        raise await stopped(self.share.cluster, node, sentence, session.fetch)


async def grid(share: Share, group: str | None = None, *, partitions: int = MANY) -> Grid:
    """Return new topics with as many partitions each, and a member that has been assigned all."""
    node = share.rng.choice(sorted(share.cluster.brokers))
    name = group or share.cluster.fresh_name("g")
    await share.admin.group_config(name, {"share.auto.offset.reset": "earliest"})
    placed = [[node]] * partitions
    topics = await asyncio.gather(
        *(share.admin.create_topic(assignments=placed) for _ in range(MANY))
    )
    member = await share.member(name, *topics)
    return Grid(share, tuple(topics), member, await member.session(node))


def nowhere(share: Share, topic: Topic) -> Topic:
    """Return a topic that does not exist, led where another one is."""
    return replace(
        topic, name=share.cluster.fresh_name("t"), id=uuid.UUID(bytes=share.rng.randbytes(16))
    )
