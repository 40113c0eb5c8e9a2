"""A program that acknowledges by another member than the one that got the record: FRM-07.

No library lets a program do that, so it speaks to brokers by itself. It never ends.
"""

import asyncio
import os
import random

from fixtures.clients.cluster import Cluster
from fixtures.clients.member import Ack, AckType, Member, member_id
from fixtures.machine.maven import clients_jar
from spec.releases import newest
from tests.release import cluster_info


async def main() -> None:
    servers = tuple(os.environ["SHAREPROOF_BOOTSTRAP"].split(","))
    jar = str(clients_jar(newest().default))
    info = cluster_info("", name="x", ledger="", bootstrap=servers, schema_jar=jar, prefix="x")
    async with Cluster(info) as cluster:
        topic = await cluster.topic(os.environ["SHAREPROOF_TOPIC"])
        ids = [member_id(random.Random()) for _ in range(2)]
        getter, other = (Member(cluster, os.environ["SHAREPROOF_GROUP"], id_) for id_ in ids)
        await getter.join(topic)
        where = topic, 0
        getting = await getter.session(topic.leaders[0])
        acking = await other.session(topic.leaders[0])
        await acking.fetch(where, max_records=1, max_wait_ms=0)
        while True:
            response = await getting.fetch(where, max_wait_ms=500)
            for found in response.only.ranges if response.parts else ():
                ack = Ack(found.first, found.last, (AckType.ACCEPT,))
                await acking.acknowledge({where: [ack]})


if __name__ == "__main__":
    asyncio.run(main())
