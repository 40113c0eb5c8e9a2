"""One case of a broker's sweep: the scene, the request, and what any reading demands afterwards."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fixtures.clients.admin import GROUP_RESOURCE, Admin, alteration
from fixtures.clients.bounds import HEARTBEAT, LOCK, SESSION, Bounds, bounds_of
from fixtures.clients.cluster import SHARE, Cluster, Topic, attempts
from fixtures.clients.configs import describe_group
from fixtures.clients.member import Member, Response, Session, member_id
from fixtures.wire.codec import Struct, WireError
from fixtures.wire.connection import CallFailed, CallTimeout, Connection
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.frame import Transcript
from fixtures.wire.state_records import share_key
from spec.verdict import EnvironmentFault, OutOfReach, Undecided, Violation
from suites.broker.sweep.answers import answered, codes, elements, neighbours
from suites.broker.sweep.cases import (
    BESIDE,
    IN_FORCE,
    NOTHING_LEFT,
    SERVED,
    WAITING,
    Case,
    changed,
    complete,
)
from suites.broker.sweep.scenes import (
    CONSUMER,
    EMPTY,
    MEMBER,
    NEW,
    PARTITIONS,
    RECORDS,
    REQUESTS,
    STATE,
    Body,
    Place,
    Scene,
)
from suites.broker.sweep.waiting import wait_through
from suites.sweep import Finding, Played

_PROMPT = 10.0
"""Seconds for what follows at once: an assignment, a first record, a config in force."""
_ANSWER, _LONGEST = 20.0, 100.0
_FAULT = ErrorCode.UNKNOWN_SERVER_ERROR
_PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
_RESET, _INTERVAL = "share.auto.offset.reset", "share.assignment.interval.ms"
_READS = {"DescribeConfigs", "ListGroups", "FindCoordinator"}
_SETTLED, _FREE = {1, 3}, {0}
"""Types after which a record does not come again, and of which the definition leaves that open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where cases are played: a cluster, its two topics, and what groups may be given there."""

    cluster: Cluster
    topics: tuple[Topic, ...]
    bounds: Bounds


async def field_on(cluster: Cluster) -> Field:
    """Make the topics of the cases, all on one broker, and fill them."""
    admin, node = Admin(cluster), min(cluster.brokers)
    topics = [await admin.create_topic(assignments=[[node]] * PARTITIONS) for _ in range(2)]
    for topic in topics:
        for partition in topic.partitions:
            await admin.produce(topic, RECORDS, partition, batches=3)
    return Field(cluster=cluster, topics=tuple(topics), bounds=await bounds_of(cluster))


class Play:
    """A case while it is played; ``kept`` ones are looked at again when the brokers restarted."""

    def __init__(
        self, field: Field, case: Case, seed: str, patience: float = 1.0, *, keeps: bool = False
    ) -> None:
        self.prompt, self.answer = _PROMPT * patience, _ANSWER * patience
        self.case, self.topics, self.bounds = case, field.topics, field.bounds
        rng = random.Random(f"{seed} {case.name}")
        self.transcript = Transcript(keep=40)
        self.cluster = Cluster(
            field.cluster.info, schemas=field.cluster.schemas, transcript=self.transcript, rng=rng
        )
        self.scene = Scene(
            group=self.cluster.fresh_name("g"), member=member_id(rng), topics=field.topics
        )
        self.setting = REQUESTS[case.api][case.what]["scene"] if case.what else NEW
        self.kept = keeps and self.setting != CONSUMER and not case.event and rng.random() < 0.25
        self.keeps = keeps
        self.judged = {SERVED: ""}
        self.undecided = self.fault = ""
        self.wanted: dict[str, int] = {}  # Configs that have to be in force.
        self.seconds = self.began = self.ended = 0.0
        self.to_leave: set[tuple[str, str]] = set()

    def broken(self, rule: str, sentence: str) -> None:
        if not self.judged.get(rule):
            self.judged[rule] = sentence

    async def run(self, *, again: bool = False) -> None:
        """Play the case, or look again at what it left when the brokers were restarted."""
        self.began, began = time.time(), time.monotonic()
        self.kept = self.kept and not again
        try:
            async with asyncio.timeout(_LONGEST), self.cluster:
                await (self.after() if again else self.play())
        except Violation as broken:
            self.broken(broken.rule, broken.sentence)
        except OutOfReach:
            self.judged.clear()
        except (Undecided, CallFailed, TimeoutError) as why:
            self.undecided = str(why) or "not over in time"
        except EnvironmentFault as fault:
            self.fault = str(fault)
        except Exception as error:  # ours to repair, and no reason to lose all other cases
            self.fault = f"harness: {type(error).__name__}: {error}"
        self.ended = time.time()
        self.seconds += time.monotonic() - began

    def result(self) -> Played:
        broken = any(self.judged.values())
        return Played(
            case=self.case.name,
            rule=SERVED,
            findings=tuple(
                Finding(rule=rule, broken=why and f"{self.case.name}: {why}", responses=1)
                for rule, why in self.judged.items()
            ),
            seconds=self.seconds,
            frames=str(self.transcript) if broken else "",
            undecided="" if broken else self.undecided,
            fault="" if broken else self.fault,
        )

    async def play(self) -> None:
        if self.case.event:
            self.judged[WAITING] = ""
            await wait_through(self.cluster, self.scene.group, self.case)
            return
        connection = await self.prepare()
        if self.case.config:
            await self.configure()
        else:
            await self.request(connection)
        if self.case.api in _READS:
            return
        for group, member in self.to_leave:
            with contextlib.suppress(CallFailed, Undecided):
                await Member(self.cluster, group, member).leave()
        await connection.close()
        self.judged[NOTHING_LEFT] = ""
        await self.after()

    # --- The scene and the request ----------------------------------------------------------------

    async def prepare(self) -> Connection:
        scene, node = self.scene, self.topics[0].leaders[0]
        several = bool(self.case.what) and scene.other in str(
            scene.request(self.case.api, self.case.what)
        )
        groups = (scene.group, scene.other) if several else (scene.group,)
        for group in groups if self.setting in (MEMBER, EMPTY, CONSUMER) else ():
            member = await self.join(group, scene.member)
            scene.epoch = member.epoch
            if self.setting == EMPTY:
                await member.leave()
        if self.setting == CONSUMER:
            return await self.consume(node)
        if self.setting == STATE:
            body = scene.request("InitializeShareGroupState", NEW)
            await (await self.at_state()).call("InitializeShareGroupState", **body)
        if self.setting == STATE or "GroupState" in self.case.api:
            return await self.at_state()
        if "Group" in self.case.api:
            node = await self.cluster.coordinator(scene.group)
        return await self.cluster.dial(node, scene.group)

    async def join(self, group: str, who: str, within: float = 0.0) -> Member:
        self.to_leave.add((group, who))
        member = Member(self.cluster, group, who)
        await member.join(*self.topics, within=within or self.prompt)
        return member

    async def at_state(self) -> Connection:
        node = await self.cluster.coordinator(
            share_key(self.scene.group, self.topics[0].id, 0), SHARE
        )
        return await self.cluster.dial(node, self.scene.group)

    async def consume(self, node: int) -> Connection:
        """Open a session that holds all records."""
        connection = await self.cluster.dial(node, self.scene.group)
        session = Session(connection, self.scene.group, self.scene.member)
        held, named = 0, [(topic, n) for topic in self.topics for n in topic.partitions]
        async for _ in attempts():
            held += len((await session.fetch(*named, max_wait_ms=100)).offsets)
            named = []
            if held >= len(self.scene.all):
                self.scene.session = session.epoch
                return connection
        raise Undecided(f"only {held} records came before the request")

    async def request(self, connection: Connection) -> None:
        case = self.case
        spec = connection.schemas.request(case.api)
        good = complete(spec.body, case.version, self.scene.request(case.api, case.what))
        body = changed(good, case.path, case.edit)
        ids = [body.get("group_id") or "", body.get("member_id") or ""]
        self.to_leave |= {(self.scene.group, self.scene.member), (ids[0], ids[1])} - {("", "")}
        response = await self.sent(connection, body)
        if response is None:
            self.scene.free |= self.scene.all
            return
        if list(elements(body)):
            self.judged[BESIDE] = neighbours(case, good, body, response)
        self.expect(body, response)

    async def sent(self, connection: Connection, body: Body) -> Struct | None:
        """Send the request; None if it may wait for longer than anybody waits here."""
        api, version = self.case.api, self.case.version
        low, high = connection.versions.get(api, (0, -1))
        if not low <= version <= high:
            raise OutOfReach(f"the target does not offer version {version} of {api}")
        waits = body.get("max_wait_ms", 0) > self.answer * 500
        async for left in attempts(self.prompt):
            try:
                response = await connection.call(
                    api, version=version, timeout=2.0 if waits else self.answer, **body
                )
            except CallTimeout:
                if waits:
                    return None
                raise Violation(SERVED, f"no response within {self.answer:g} s") from None
            except CallFailed as lost:
                raise Violation(
                    SERVED, f"no response, the connection was closed ({lost})"
                ) from None
            except WireError as error:
                raise Violation(SERVED, f"the response cannot be decoded: {error}") from None
            found = set(codes(response.to_dict()))
            if not found & _PASSING or left < self.prompt / 2 or self.setting == CONSUMER:
                break
        if _FAULT in found:
            self.broken(SERVED, "the response has UNKNOWN_SERVER_ERROR")
        return response

    # --- What is due by the answer ----------------------------------------------------------------

    def expect(self, body: Body, response: Struct) -> None:
        found = response.to_dict()
        if found.get("error_code") or body.get("group_id") != self.scene.group:
            return
        named = Counter(keys for keys, _, _ in elements(body))
        told: dict[Any, set[int]] = {}
        for keys, code in answered(found, body):
            told.setdefault(keys, set()).add(code)
        for keys, _, value in elements(body):
            good = told.get(keys) == {0}
            name = self.scene.named(keys[0]) if len(keys) == 2 else ""
            if not name or keys[1] not in range(PARTITIONS):
                continue
            if self.setting == CONSUMER:
                for batch in value.get("acknowledgement_batches") or ():
                    self._acknowledged(name, keys[1], batch, good=good)
                # Which of several was refused, or what became of an unanswered one, nobody tells.
                if keys not in told or (named[keys] > 1 and not good):
                    self.scene.free |= {(name, keys[1], offset) for offset in range(RECORDS)}
            elif self.case.api == "AlterShareGroupOffsets" and good:
                self._altered(name, keys[1], value["start_offset"])

    def _acknowledged(self, topic: str, partition: int, batch: Body, *, good: bool) -> None:
        first, last, types = batch["first_offset"], batch["last_offset"], batch["acknowledge_types"]
        whole = 0 <= first <= last and len(types) in (1, last - first + 1)
        for offset in range(max(first, 0), min(last + 1, RECORDS)):
            kind = (types[0] if len(types) == 1 else types[offset - first]) if whole else 0
            if good and kind in _SETTLED:
                self.scene.gone.add((topic, partition, offset))
            elif good and kind in _FREE:
                self.scene.free.add((topic, partition, offset))

    def _altered(self, topic: str, partition: int, start: int) -> None:
        below = {(topic, partition, n) for n in range(RECORDS) if n < start}
        if start < 0 or (topic, partition) in self.scene.starts:
            self.scene.free |= {(topic, partition, n) for n in range(RECORDS)}
        else:
            self.scene.gone |= below
        self.scene.starts[topic, partition] = start

    # --- Configs ----------------------------------------------------------------------------------

    async def configure(self) -> None:
        """Alter a config, and look whether it and others are in force."""
        config, value, group = self.case.config, self.case.spelling, self.scene.group
        assert config is not None
        self.judged[IN_FORCE] = ""
        before = await describe_group(self.cluster, group)
        kept = {_RESET: "earliest"} if self.case.api == "AlterConfigs" else {}
        resources = [
            alteration(GROUP_RESOURCE, group, {**kept, config.name: value}),
            alteration(GROUP_RESOURCE, self.scene.other, {LOCK: "30000"}),
        ]
        if self.case.api == "AlterConfigs":
            for one in (one for resource in resources for one in resource["configs"]):  # type: ignore[attr-defined]
                del one["config_operation"]
        body = {"resources": resources, "validate_only": False}
        connection = await self.cluster.dial(min(self.cluster.brokers), group)
        response = await self.sent(connection, body)
        assert response is not None
        code = {one.resource_name: one.error_code for one in response.responses}
        if code.keys() != {group, self.scene.other}:
            raise Violation(BESIDE, f"two groups were named, and {len(code)} are answered")
        self.judged[BESIDE] = ""
        if code[self.scene.other] and not code[group]:
            self.broken(BESIDE, f"{error_name(code[self.scene.other])} for the group beside it")
        other = await self.others_set()
        shown = (await describe_group(self.cluster, group)).get(config.name)
        if code[group] and shown != before.get(config.name):
            self.broken(NOTHING_LEFT, f"{error_name(code[group])}, and shown as {shown!r}")
        self.wanted = other
        if not code[group] and config.name in (LOCK, HEARTBEAT):
            with contextlib.suppress(ValueError):
                named = self.bounds.locks if config.name == LOCK else self.bounds.heartbeats
                if named.low <= int(shown or "") <= named.high:
                    self.wanted |= {config.name: int(shown or "")}
        if not code[group] and config.name == _RESET:
            self.scene.free |= self.scene.all
        self.kept = self.keeps and (self.kept or not code[group]) and config.name != _RESET

    async def others_set(self) -> dict[str, int]:
        """Set other keys of the group, and return those that have to be in force then."""
        assert self.case.config is not None
        name, lock = self.case.config.name, self.bounds.lock(21_000)
        values = {LOCK: lock} if name != LOCK else {}
        if name not in (HEARTBEAT, SESSION):
            values[HEARTBEAT] = self.bounds.heartbeats.at_least(6000)
        answer = await Admin(self.cluster).try_group_config(
            self.scene.group, {key: str(value) for key, value in values.items()}
        )
        if answer.error_code:
            why = error_name(answer.error_code)
            raise Violation(IN_FORCE, f"other keys of the group cannot be set any more: {why}")
        return values

    # --- Afterwards -------------------------------------------------------------------------------

    async def after(self) -> None:
        """Look whether the group is as good as any: described, joined, read from, deleted."""
        try:
            if "GroupState" in self.case.api:
                await self.state_after()
            else:
                await self.group_after()
        except (Undecided, CallFailed) as stuck:
            raise Violation(NOTHING_LEFT, f"afterwards: {stuck}") from None

    async def state_after(self) -> None:
        connection = await self.at_state()
        for api in ("ReadShareGroupState", *([] if self.kept else ["DeleteShareGroupState"])):
            response = await connection.call(api, **self.scene.request(api, STATE))
            self.no_fault(api, codes(response.to_dict()))

    def no_fault(self, what: str, found: Iterable[int]) -> None:
        if _FAULT in set(found):
            raise Violation(NOTHING_LEFT, f"{what} afterwards is UNKNOWN_SERVER_ERROR")

    async def group_after(self) -> None:
        scene, admin, cluster = self.scene, Admin(self.cluster), self.cluster
        described = await admin.describe_group(scene.group)
        self.no_fault("ShareGroupDescribe", [described.error_code])
        response = await cluster.at_coordinator(
            scene.group,
            "DescribeShareGroupOffsets",
            groups=[{"group_id": scene.group, "topics": None}],
        )
        self.no_fault("DescribeShareGroupOffsets", codes(response.to_dict()))
        self.offsets_shown(response)
        slow = 16.0 if self.case.config and self.case.config.name == _INTERVAL else 0.0
        member = await self.join(scene.group, member_id(cluster.rng), self.prompt + slow)
        await self.drain(member)
        await member.leave()
        if self.kept:
            return
        names = [scene.group]
        deleted = await cluster.at_coordinator(scene.group, "DeleteGroups", groups_names=names)
        if code := deleted.results[0].error_code:
            raise Violation(NOTHING_LEFT, f"DeleteGroups afterwards is {error_name(code)}")

    def offsets_shown(self, response: Struct) -> None:
        for topic in response.groups[0].topics:
            for part in topic.partitions:
                where = f"{topic.topic_name}-{part.partition_index}"
                wanted = self.scene.starts.get((topic.topic_name, part.partition_index))
                if wanted is not None and wanted >= 0 and part.start_offset != wanted:
                    said = f"altered to {wanted}, and shown as {part.start_offset}"
                    self.broken(SERVED, said)
                if getattr(part, "lag", 0) < -1:
                    self.broken(SERVED, f"{where} has a lag of {part.lag}")

    async def drain(self, member: Member) -> None:
        """Fetch until everything due has come and what has to be in force is."""
        scene, session = self.scene, await member.new_session(self.topics[0].leaders[0])
        came: set[Place] = set()
        lacking = dict(self.wanted)
        anew = self.case.config is not None and self.case.config.name == _RESET and not scene.due
        async for left in attempts(self.prompt):
            response = await self.fetched(session, came)
            if lacking.get(LOCK) == response.lock_ms:
                del lacking[LOCK]
            if lacking.get(HEARTBEAT) == (await member.heartbeat()).heartbeat_interval_ms:
                del lacking[HEARTBEAT]
            fresh = any(offset >= RECORDS for _, _, offset in came)
            if scene.due <= came and not lacking and fresh >= anew:
                break
            if anew and left > self.prompt / 2:
                await Admin(self.cluster).produce(self.topics[0], 1)
        await self.fetched(session, came)
        await session.connection.close()
        if lacking:
            raise Violation(IN_FORCE, f"shown and not in force after {self.prompt:g} s: {lacking}")
        if again := sorted(scene.gone & came):
            raise Violation(SERVED, f"answered NONE, and came again: {_said(again)}")
        if missing := sorted(scene.due - came):
            raise Violation(NOTHING_LEFT, f"never came in {self.prompt:g} s: {_said(missing)}")
        if anew and not fresh:
            raise Violation(IN_FORCE, "records produced afterwards never come")

    async def fetched(self, session: Session, came: set[Place]) -> Response:
        named = [(topic, n) for topic in self.topics for n in topic.partitions]
        response = await session.fetch(*(() if session.epoch else named), max_wait_ms=50)
        self.no_fault("a fetch", response.errors)
        for part in response.parts:
            topic = self.scene.named(part.topic_id)
            came |= {(topic, part.partition, offset) for offset in part.offsets}
        return response


def _said(places: list[Place]) -> str:
    first = ", ".join(f"offset {offset} of partition {n}" for _, n, offset in places[:3])
    return f"{len(places)} records ({first})"
