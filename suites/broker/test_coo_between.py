"""Requests between brokers that are refused, cut off or answered with nothing.

A proxy does that to the requests of some groups, and to all of them at once: Kafka sends a request
four more times before it gives up, after 1, 2, 4 and 8 seconds.
"""

from fixtures.proxies.broker_proxies import Direction, FrameRule, state_write_refused
from fixtures.proxies.exchange import Action, Body
from suites.broker.brokers import LASTING, Proxied
from suites.broker.kit import *

GIVEN_UP = 45.0
"""Seconds after which every request that was repeated has failed for good."""
FAILURES = 5  # How often a request fails before Kafka gives it up.


def _trouble(
    apis: Iterable[str], how: Any, about: Callable[[Body], bool], times: int = 1000
) -> FrameRule:
    """Return a rule: a request gets the response that ``how`` makes, or ``how`` is done to it."""
    action, refusal = (how, None) if isinstance(how, Action) else (Action.RESPOND, how)
    rule = FrameRule(
        apis=frozenset(apis), direction=Direction.REQUEST, action=action, refusal=refusal
    )
    rule.about = lambda asked: rule.done < times and about(asked)
    return rule


STATES: Mapping[str, Any] = {
    "refused": state_write_refused(int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)),
    "empty": lambda _: {"results": []},
    "lost": Action.RESET,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """Groups of which each needs one kind of state request."""

    holder: Consumer
    beginner: Consumer
    altered: Queue
    deleted: Queue
    shown: Queue

    def serves(self, request: Body) -> bool:
        queues = (self.altered, self.deleted, self.shown)
        members = (self.holder.member, self.beginner.member)
        return request["group_id"] in {one.group for one in (*queues, *members)}

    async def all(self) -> tuple[str, dict[int, int], set[str], set[str], set[int]]:
        """Return what an acknowledgement, a fetch, and three requests of administrators got."""
        acked, got, altered, deleted, shown = await asyncio.gather(
            self.holder.ack(accept(0, 4), timeout=GIVEN_UP),
            self._fetch(),
            _told(self.altered, "AlterShareGroupOffsets", start=3),
            _told(self.deleted, "DeleteShareGroupOffsets"),
            _told(self.shown, "DescribeShareGroupOffsets"),
        )
        parts = [p for group in shown.groups for t in group.topics for p in t.partitions]
        starts = {part.start_offset for part in parts if not part.error_code}
        changed, gone = ({error_name(c) for c in codes_in(one)} for one in (altered, deleted))
        return raw_result(acked), got, changed, gone, starts

    async def _fetch(self) -> dict[int, int]:
        catch = Catch()
        async for _ in attempts(WITHIN):
            catch.add(await self.beginner.fetch(timeout=GIVEN_UP))
            if catch.has(5):
                break
        return catch.counts


async def _told(queue: Queue, api: str, **how: Any) -> Struct:
    asked, cluster = fields_of(api, queue.group, queue.topic.name, **how), queue.env.cluster
    # On a connection of its own: a broker serves those of one connection one after the other.
    connection = await cluster.dial(await cluster.coordinator(queue.group))
    return await connection.call(api, timeout=GIVEN_UP, **asked)


async def _asked(env: Env) -> _Asked:
    _, holder = await env.with_holder(5, lock_ms=env.bounds.lock(LASTING))
    _, beginner = await env.with_consumer(5)
    used = [await env.queue() for _ in range(3)]
    for queue in used:
        await use(queue)
    return _Asked(holder, beginner, *used)


@check("COO-39", meets=IDLE, solo={}, timeout=240)
async def test_state_requests_that_fail(between: Proxied, judge: Judge) -> None:
    env = between.env
    asked = {name: await _asked(env) for name in STATES}
    rules = [_trouble(STATE_RPCS, STATES[name], one.serves) for name, one in asked.items()]
    with between.disturbed(*rules):
        told = dict(zip(asked, await gather_all(one.all() for one in asked.values()), strict=True))
    for name, (acked, got, altered, deleted, shown) in told.items():
        judge.holds(acked != NONE, f"an ACCEPT was answered NONE, its state write {name}")
        judge.equal({}, got, f"acquired although the state was not read, {name}")
        judge.holds(altered != {NONE}, f"an alteration was answered NONE, {name}")
        judge.holds(deleted != {NONE}, f"a deletion of offsets was answered NONE, {name}")
        # Kafka shows what it cannot read as unset, without an error.
        judge.holds(shown <= {7, UNSET}, f"start offsets {shown} were shown, {name}")
    for name, one in asked.items():
        again = await one.all()
        expected = (NONE, dict.fromkeys(range(5), 1), {NONE}, {NONE}, {7})
        judge.equal(expected, again, f"the same once more, after requests that were {name}")
        _, start, _ = await stored(one.altered)
        judge.equal(3, start, f"start offset stored by the second alteration, {name}")
    judge.saw(disturbed=sum(rule.done for rule in rules))


SHORT = "letters lost twice"
LETTERS: tuple[tuple[str, str, Any, int], ...] = (
    (SHORT, "Produce", Action.RESET, 2),
    ("letters lost", "Produce", Action.RESET, 99),
    ("no response about letters", "Produce", lambda _: {"responses": []}, 99),
    ("topics not made", "CreateTopics", Action.RESET, 99),
    ("topics refused", "CreateTopics", lambda asked: _made(asked, "POLICY_VIOLATION"), 99),
    ("topics to be repeated", "CreateTopics", lambda asked: _made(asked, "NOT_CONTROLLER"), 99),
    ("no response about topics", "CreateTopics", lambda _: {"topics": []}, 99),
)


def _made(asked: Body, error: str) -> Body:
    code = int(ErrorCode[error])
    return {"topics": [{"name": one["name"], "error_code": code} for one in asked["topics"]]}


def _about(topic: Topic, asked: Body) -> bool:
    return any(said in repr(asked) for said in (repr(topic.id), repr(topic.name)))


@check("DLQ-34", "DLQ-35", feature="dead-letters", solo={}, timeout=240)
async def test_letters_that_fail_on_their_way(between: Proxied, judge: Judge) -> None:
    env, size = between.env, 5
    boxes, holders, rules = {}, {}, {}
    for name, api, how, times in LETTERS:
        dead = await dead_topic(env)
        if api == "CreateTopics":
            dead = replace(dead, name=await dead_name(env))
        boxes[name] = await boxed(env, size, dead=dead)
        holders[name] = await boxes[name].queue.holder(size)
        rules[name] = _trouble([api], how, partial(_about, dead), times)
    with between.disturbed(*rules.values()):
        for holder in holders.values():
            await holder.acked(reject(0, size - 1))
        lost = (rules["letters lost"], rules["topics not made"])
        async for _ in attempts(GIVEN_UP, pause=0.1):
            if min(rule.done for rule in lost) >= FAILURES:
                break
        for name, box in boxes.items():
            start = await beyond(judge["DLQ-35"], box.queue, holders[name], size, 3 * WITHIN)
            told = f"the start offset stays at {start} of {size}: {name}"
            judge["DLQ-35"].holds(start >= size, told)
        letters = letter_offsets(await boxes[SHORT].arrived(range(size)))
    judge["DLQ-34"].equal([*range(size)], letters, f"offsets with a letter: {SHORT}")
    if unseen := [name for name, rule in rules.items() if not rule.done]:
        raise Undecided(f"no request was seen that is {unseen}")
