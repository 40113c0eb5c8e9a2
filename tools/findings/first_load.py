"""A share-partition that is loaded while its share coordinator cannot answer: finding 043.

PYTHONPATH=. python docs/findings/scripts/first_load.py 4.1.2 reset

In the scene ``reset`` the answer to the leader's first ReadShareGroupState is lost on its way, in
``killed`` the broker that owes it is dead. Three brokers of the release, with our fronts on the way
between them. Exit code 1 if the member is told UNKNOWN_SERVER_ERROR. Run it from a clone.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

from fixtures.clients.cluster import attempts
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.fronts import Fronts, Weather
from fixtures.proxies.rules import Act, Rule, Way
from fixtures.targets import Target, open_target
from fixtures.targets.maven import kafka_release
from fixtures.wire.errors import error_name
from fixtures.wire.schema import Schemas
from fixtures.wire.security import PLAINTEXT
from suites.broker.failover.stage import Stage
from suites.broker.share import Consumer, world

DIRECT = "DIRECT"
RECORDS = 6
ONCE = 10**9
BEGAN = time.monotonic()


def say(*what: object) -> None:
    """Print a step and when it was."""
    print(f"{time.monotonic() - BEGAN:6.2f} s ", *what, flush=True)


def lose_first_answer(fronts: Fronts, nodes: list[int]) -> Rule:
    """Have the connection of the first ReadShareGroupState reset when its answer comes."""
    apis = frozenset({"ReadShareGroupState"})
    rule = Rule(apis=apis, way=Way.ANSWER, act=Act.RESET, nth=ONCE, seen=ONCE - 1)

    def change(weather: Weather) -> None:
        weather.rules = [rule]

    for node in nodes:
        fronts.change(fronts.door(node, INTERNAL), change)
    return rule


async def fetched(consumer: Consumer) -> set[str]:
    """Fetch until every record came; print every new answer, and return the errors in them."""
    errors: set[str] = set()
    counts: dict[int, int] = {}
    last = ""
    async for _ in attempts(60.0):
        answer = await consumer.fetch(max_wait_ms=500)
        parts = [part for part in answer.parts if part.error]
        errors |= {error_name(code) for code in answer.errors}
        told = "; ".join(f"{error_name(part.error)}: {part.message}" for part in parts)
        if told and told != last:
            say("ShareFetch answered", told)
        last = told
        counts |= {offset: count for part in answer.parts for offset, count in part.counts.items()}
        if len(counts) == RECORDS:
            break
    say("acquired, with these counts,", counts)
    return errors


async def play(target: Target, fronts: Fronts, scene: str) -> bool:
    """Play the scene; tell whether the member was told of a server error."""
    async with world(target.info.at(DIRECT, PLAINTEXT), random.Random(), []) as share:
        stage = Stage(target, share)
        victim = await stage.victim()
        near, far = (node for node in stage.nodes if node != victim)
        queue = await stage.queue(near, far, state=victim, group=far)
        await queue.produce(RECORDS)
        consumer = await queue.consumer()
        say(f"broker {near} leads, broker {victim} keeps the state; nobody has fetched yet")
        if scene == "killed":
            await stage.kill(victim)
            say(f"broker {victim} is killed")
            errors = await fetched(consumer)
        else:
            rule = lose_first_answer(fronts, stage.nodes)
            errors = await fetched(consumer)
            say(f"answers to ReadShareGroupState lost: {rule.done} of {rule.seen - ONCE + 1}")
        await share.disband()
    return "UNKNOWN_SERVER_ERROR" in errors


def main() -> int:
    """Start the brokers and play."""
    version, scene = sys.argv[1:]
    with Fronts(Schemas.from_jar(kafka_release(version).clients_jar)) as fronts:
        target = open_target(
            f"kafka:{version}",
            brokers=3,
            listeners={DIRECT: "PLAINTEXT"},
            fronts=fronts.stand_before,
        )
        try:
            target.start()
            return int(asyncio.run(play(target, fronts, scene)))
        finally:
            target.stop()


if __name__ == "__main__":
    raise SystemExit(main())
