"""A share-partition that is loaded while its share coordinator cannot answer: finding 043.

In the scenario ``reset`` the response to the leader's first ReadShareGroupState is lost on its way,
in ``killed`` the broker that owes it is dead. Three brokers of the release, with proxies between
them. Exit code 1 if the member is told UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from fixtures.clients.cluster import attempts
from fixtures.proxies.broker_proxies import FrameProxies
from fixtures.proxies.conditions import INTERNAL
from fixtures.proxies.exchange import Action
from fixtures.proxies.rules import Direction, FrameRule
from fixtures.wire.errors import error_name
from suites.broker.failover.cluster import FailoverCluster
from suites.broker.share import Consumer
from tools.findings.program import Run, say

RECORDS = 6
ONCE = 10**9


def lose_first_answer(proxies: FrameProxies, nodes: list[int]) -> FrameRule:
    """Have the connection of the first ReadShareGroupState reset when its response comes."""
    apis = frozenset({"ReadShareGroupState"})
    rule = FrameRule(
        apis=apis, direction=Direction.RESPONSE, action=Action.RESET, nth=ONCE, seen=ONCE - 1
    )
    for node in nodes:
        proxies.set_rules(proxies.listener(node, INTERNAL), rule)
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


async def play(run: Run) -> bool:
    """Play the scenario; tell whether the member was told of a server error."""
    async with run.world() as share:
        stage = FailoverCluster(share, run.target.brokers)
        victim = await stage.victim()
        near, far = (node for node in stage.nodes if node != victim)
        queue = await stage.queue(near, far, state=victim, group=far)
        await queue.produce(RECORDS)
        consumer = await queue.consumer()
        say(f"broker {near} leads, broker {victim} keeps the state; nobody has fetched yet")
        if run.scenario == "killed":
            await stage.kill(victim)
            say(f"broker {victim} is killed")
            errors = await fetched(consumer)
        else:
            rule = lose_first_answer(run.frame_proxies, stage.nodes)
            errors = await fetched(consumer)
            say(f"answers to ReadShareGroupState lost: {rule.done} of {rule.seen - ONCE + 1}")
        await share.disband()
    return "UNKNOWN_SERVER_ERROR" in errors
