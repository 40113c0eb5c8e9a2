"""A partition that gets another leader while every broker lives."""

from suites.broker.kit import *

HINTED = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH")
"""Errors that come with the leader's name."""

NO_OFFSETS = (-1, -1)
"""CurrentLeader of a response that names none (ShareFetchResponse LeaderId, LeaderEpoch)."""

RACING = {
    "NONE": "order: the former leader may store it before the new one has read the state",
    "": "order: the connection may end with its broker's leadership, and nothing is told",
    "NOT_LEADER_OR_FOLLOWER": "ShareAcknowledgeResponse ErrorCode: not the partition's leader",
    "UNKNOWN_TOPIC_OR_PARTITION": "ShareAcknowledgeResponse ErrorCode: no replica is there",
}
"""Results of an acknowledgement that races a change of the leader, and what allows each."""

LATE = {name: RACING[name] for name in ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION")}

Move = Callable[[Queue], Awaitable[Queue]]


async def _reassigned(queue: Queue) -> Queue:
    """Give the partition replicas that its leader is not among; return the queue as it is then."""
    cluster = queue.env.cluster
    others = [node for node in sorted(cluster.brokers) if node != queue.topic.leaders[0]]
    response = await (await cluster.any()).call(
        "AlterPartitionReassignments",
        topics=[
            {
                "name": queue.topic.name,
                "partitions": [{"partition_index": 0, "replicas": others[:2]}],
            }
        ],
    )
    if response.error_code or response.responses[0].partitions[0].error_code:
        raise Undecided("the partition could not be reassigned")

    async def ask() -> Topic | None:
        topic = await cluster.topic(queue.topic.name)
        return topic if topic.leaders != queue.topic.leaders else None

    return replace(queue, topic=await eventually("a leader among the new replicas", ask))


MOVES = {"election": moved, "reassignment": _reassigned}


async def _scene(env: Env) -> MixedStates:
    nodes = sorted(env.cluster.brokers)
    if len(nodes) < 3:
        raise OutOfReach("replicas can only be moved where there are three brokers")
    pair = env.rng.sample(nodes, 2)
    lock = env.bounds.lock(15_000)
    return await prepared(await env.queue(assignments=[pair], lock_ms=lock), lock_ms=lock)


@check("COO-21", "COO-22", "COO-23", "COO-24", crossed=AMONG)
@pytest.mark.parametrize("how", sorted(MOVES))
async def test_leader_moves(env: Env, judge: Judge, how: str) -> None:
    scene = await _scene(env)
    after = await MOVES[how](scene.queue)
    # Until the new leader has read the state, the former one may still store what it is told.
    racing = scene.answered([12, 13], await scene.send(accept(12, 13)))
    judge["COO-24"].one_of(RACING, racing, "result of an ACCEPT that races the move")

    roamer = await judge_new_leader(judge, scene)

    judge["COO-24"].one_of(
        LATE,
        result(await scene.holder.ack(accept(14, 15))),
        f"result of an ACCEPT at the former leader {scene.queue.topic.leaders[0]}, "
        f"with broker {after.topic.leaders[0]} leading",
    )
    kept = await roamer.finish()
    judge["COO-24"].equal("NONE", kept, "result of the new holder's ACCEPT afterwards")
    judge["COO-21"].saw(leader_moves=1)


def _hinted(response: Response) -> bool:
    part = response.only
    return error_name(part.error or part.ack_error) in HINTED


def _judge_unhinted(judge: Judge, response: Response, leader: int) -> None:
    """Judge that a response which has no need to name the leader names nobody else."""
    told = error_name(response.only.error or response.only.ack_error)
    node, epoch = response.only.leader
    if node != leader:
        judge.equal(NO_OFFSETS, (node, epoch), f"CurrentLeader with {told}")
    strangers = response.endpoints.keys() - {leader}
    judge.equal(set(), strangers, f"NodeEndpoints with {told}, besides the leader")


@check("COO-25", fast=True, crossed=AMONG)
@pytest.mark.parametrize("how", sorted(MOVES))
async def test_who_leads(env: Env, judge: Judge, how: str) -> None:
    scene = await _scene(env)
    ordinary = await scene.holder.fetch(max_wait_ms=0)
    acked = await scene.holder.session.acknowledge({scene.holder.where: [accept(1)]})
    for response in (ordinary, acked):
        _judge_unhinted(judge, response, scene.queue.topic.leaders[0])

    after = await MOVES[how](scene.queue)
    leader, where = after.topic.leaders[0], (after.topic, 0)
    await known_everywhere(
        after,
        "every broker knowing the leader",
        lambda topic: topic.partitions and topic.partitions[0].leader_id == leader,
    )
    hinted = 0
    for node in sorted(env.cluster.brokers):
        async for _ in attempts():
            session = await (await env.member(after.group)).session(node)
            fetched = await session.fetch(where, epoch=OPEN, max_wait_ms=0)
            # For milliseconds a broker leads by its metadata and does not yet by its replicas.
            if not (_hinted(fetched) and fetched.only.leader[1] == 0):
                break
        responses = [fetched]
        if not fetched.error:
            responses.append(await session.acknowledge({where: [accept(12)]}))
        for response in responses:
            if not _hinted(response):
                _judge_unhinted(judge, response, leader)
                continue
            hinted += 1
            told, epoch = response.only.leader
            judge.equal(leader, told, f"CurrentLeader by broker {node}")
            judge.holds(epoch > 0, f"the epoch of a second leader is {epoch}")
            named = response.endpoints.get(leader)
            judge.equal(env.cluster.brokers[leader], named, f"NodeEndpoint by broker {node}")
    if not hinted:
        raise Undecided("no broker but the leader said NOT_LEADER_OR_FOLLOWER")
    judge.saw(hints=hinted)
