"""One case of a broker's sweep: the scene, the request, and what any reading demands afterwards."""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterable
from typing import Any

from fixtures.clients.admin import GROUP_RESOURCE, Admin, alteration
from fixtures.clients.bounds import HEARTBEAT, LOCK, SESSION, Bounds
from fixtures.clients.cluster import SHARE, Cluster, Topic, attempts
from fixtures.clients.configs import describe_group
from fixtures.clients.member import Member, Response, Session, member_id
from fixtures.wire.codec import Struct, WireError
from fixtures.wire.connection import CallFailed, CallTimeout, Connection
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.frame import Transcript
from fixtures.wire.state_records import share_key
from spec.verdict import EnvironmentFault, OutOfReach, Undecided, Violation
from suites.broker.state import PASSING
from suites.broker.sweep import cases, scenes
from suites.broker.sweep.answers import answered, codes, elements, neighbours, runs_backward
from suites.broker.sweep.cases import BESIDE, IN_FORCE, NOTHING_LEFT, SERVED, WAITING, Case
from suites.broker.sweep.scenes import PARTITIONS, RECORDS, Body, Place, Scene
from suites.broker.sweep.waiting import wait_through
from suites.sweep import Finding, Played

_PROMPT = 10.0  # Seconds for what follows at once: an assignment, a first record.
_ANSWER, _LONGEST = 20.0, 100.0
_FAULT = ErrorCode.UNKNOWN_SERVER_ERROR
_RESET, _INTERVAL = "share.auto.offset.reset", "share.assignment.interval.ms"
_READS = {"DescribeConfigs", "ListGroups", "FindCoordinator"}
_SETTLED, _FREE = {1, 3}, {0}
"""Types after which a record does not come again, and of which the definition leaves that open."""


class Play:
    """A case while it is played, ``field`` being the cluster and the topics that all share.

    Groups of ``kept`` ones are looked at again when the brokers were restarted.
    """

    def __init__(
        self,
        field: tuple[Cluster, tuple[Topic, ...], Bounds],
        case: Case,
        seed: str,
        patience: float,
        *,
        keeps: bool,
    ) -> None:
        (shared, self.topics, self.bounds), self.case, self.keeps = field, case, keeps
        self.prompt, self.answer = _PROMPT * patience, _ANSWER * patience
        rng, self.transcript = random.Random(f"{seed} {case.name}"), Transcript(keep=40)
        self.cluster = Cluster(
            shared.info, schemas=shared.schemas, transcript=self.transcript, rng=rng
        )
        group = self.cluster.fresh_name("g")
        self.scene = Scene(group=group, member=member_id(rng), topics=self.topics)
        self.setting = scenes.REQUESTS[case.api][case.what]["scene"] if case.what else scenes.NEW
        quick = self.setting != scenes.CONSUMER and not case.event
        self.kept = keeps and quick and rng.random() < 0.25
        self.judged = {SERVED: ""}
        self.undecided = self.fault = ""
        self.wanted: dict[str, int] = {}  # Configs that have to be in force.
        self.seconds = self.began = self.ended = 0.0
        self.to_leave: set[tuple[str, str]] = set()

    def broken(self, rule: str, sentence: str) -> None:
        self.judged[rule] = self.judged.get(rule) or sentence

    async def run(self, *, again: bool = False) -> None:
        """Play the case, or look again at what it left when the brokers were restarted."""
        self.began, self.kept = time.time(), self.kept and not again
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
        self.seconds += self.ended - self.began

    def result(self) -> Played:
        name, broken = self.case.name, any(self.judged.values())
        return Played(
            case=name,
            rule=SERVED,
            findings=tuple(
                Finding(rule=rule, broken=why and f"{name}: {why}", responses=1)
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
        await (self.configure(connection) if self.case.config else self.request(connection))
        if self.case.api not in _READS:
            for group, member in self.to_leave:
                with contextlib.suppress(CallFailed, Undecided):
                    await Member(self.cluster, group, member).leave()
            await connection.close()
            self.judged[NOTHING_LEFT] = ""
            await self.after()

    # --- The scene and the request ----------------------------------------------------------------

    async def prepare(self) -> Connection:
        scene, case, node = self.scene, self.case, self.topics[0].leaders[0]
        request = scene.request(case.api, case.what) if case.what else {}
        both = (scene.group, scene.other) if scene.other in str(request) else (scene.group,)
        for group in both if self.setting not in (scenes.NEW, scenes.STATE) else ():
            member = await self.join(group, scene.member)
            scene.epoch = member.epoch
            if self.setting == scenes.EMPTY:
                await member.leave()
        if self.setting == scenes.CONSUMER:
            return await self.consume(node)
        if self.setting == scenes.STATE:
            body = scene.request("InitializeShareGroupState", scenes.NEW)
            await (await self.at_state()).call("InitializeShareGroupState", **body)
        if "GroupState" in case.api:
            return await self.at_state()
        if "Group" in case.api:
            node = await self.cluster.coordinator(scene.group)
        return await self.cluster.dial(node, scene.group)

    async def join(self, group: str, who: str, within: float = 0.0) -> Member:
        self.to_leave.add((group, who))
        member = Member(self.cluster, group, who)
        await member.join(*self.topics, within=within or self.prompt)
        return member

    async def at_state(self) -> Connection:
        key = share_key(self.scene.group, self.topics[0].id, 0)
        return await self.cluster.dial(await self.cluster.coordinator(key, SHARE), self.scene.group)

    async def consume(self, node: int) -> Connection:
        """Open a session that holds all records."""
        session = Session(
            await self.cluster.dial(node, self.scene.group), self.scene.group, self.scene.member
        )
        came: set[Place] = set()
        async for _ in attempts():
            await self.fetched(session, came)
            if came >= self.scene.all:
                self.scene.session = session.epoch
                return session.connection
        raise Undecided(f"only {len(came)} records came before the request")

    async def request(self, connection: Connection) -> None:
        case, scene = self.case, self.scene
        spec = connection.schemas.request(case.api)
        good = cases.complete(spec.body, case.version, scene.request(case.api, case.what))
        body = cases.changed(good, case.path, case.edit)
        ids = (body.get("group_id") or "", body.get("member_id") or "")
        self.to_leave |= {(scene.group, scene.member), ids} - {("", "")}
        response = await self.sent(connection, body)
        if response is None:
            scene.free |= scene.all
            return
        if runs_backward(response.to_dict()):
            self.broken(SERVED, "an acquired range ends before it begins")
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
        timeout = 2.0 if waits else self.answer
        async for left in attempts(self.prompt):
            try:
                response = await connection.call(api, version=version, timeout=timeout, **body)
            except CallTimeout as late:
                if waits:
                    return None
                raise Violation(SERVED, f"no response within {timeout:g} s") from late
            except (CallFailed, WireError) as error:
                raise Violation(SERVED, f"no response, or a wrong one: {error}") from error
            found = set(codes(response.to_dict()))
            if not found & PASSING or left < self.prompt / 2 or self.setting == scenes.CONSUMER:
                break
        if _FAULT in found:
            self.broken(SERVED, "the response has UNKNOWN_SERVER_ERROR")
        return response

    # --- What is due by the answer ----------------------------------------------------------------

    def expect(self, body: Body, response: Struct) -> None:
        found, asked = response.to_dict(), list(elements(body))
        if found.get("error_code") == _FAULT:  # what became of it nobody tells
            self.scene.free |= self.scene.all
        if found.get("error_code") or body.get("group_id") != self.scene.group:
            return
        told = list(answered(found, body))
        for keys, _, value in asked:
            said = {code for answer, code in told if answer == keys}
            name = self.scene.named(keys[0]) if len(keys) == 2 else ""
            if not name or keys[1] not in range(PARTITIONS):
                continue
            if self.setting == scenes.CONSUMER:
                self._acknowledged((name, keys[1]), value, good=said == {0})
                # Which of several was refused, or what became of an unanswered one, nobody tells.
                if not said or (said != {0} and [one[0] for one in asked].count(keys) > 1):
                    self.scene.free |= {(name, keys[1], offset) for offset in range(RECORDS)}
            elif self.case.api == "AlterShareGroupOffsets" and said == {0}:
                self._altered((name, keys[1]), value["start_offset"])

    def _acknowledged(self, where: tuple[str, int], asked: Body, *, good: bool) -> None:
        for batch in asked.get("acknowledgement_batches") or ():
            first, last = batch["first_offset"], batch["last_offset"]
            types = batch["acknowledge_types"]
            whole = 0 <= first <= last and len(types) in (1, last - first + 1)
            for offset in range(max(first, 0), min(last + 1, RECORDS)):
                kind = (types[0] if len(types) == 1 else types[offset - first]) if whole else 0
                if good and kind in _SETTLED:
                    self.scene.gone.add((*where, offset))
                elif good and kind in _FREE:
                    self.scene.free.add((*where, offset))

    def _altered(self, where: tuple[str, int], start: int) -> None:
        if start < 0 or where in self.scene.starts:
            self.scene.free |= {(*where, offset) for offset in range(RECORDS)}
        else:
            self.scene.gone |= {(*where, offset) for offset in range(min(start, RECORDS))}
        self.scene.starts[where] = start

    # --- Configs ----------------------------------------------------------------------------------

    async def configure(self, connection: Connection) -> None:
        """Alter a config, and look whether it and others are in force."""
        config, group, other = self.case.config, self.scene.group, self.scene.other
        assert config is not None
        self.judged |= {IN_FORCE: "", BESIDE: ""}
        before = await describe_group(self.cluster, group)
        kept = {_RESET: "earliest"} if self.case.api == "AlterConfigs" else {}
        resources: Any = [
            alteration(GROUP_RESOURCE, group, {**kept, config.name: self.case.spelling}),
            alteration(GROUP_RESOURCE, other, {LOCK: "30000"}),
        ]
        if kept:  # it replaces all, and knows no operations
            for one in (one for resource in resources for one in resource["configs"]):
                del one["config_operation"]
        response: Any = await self.sent(connection, {"resources": resources})
        code = {one.resource_name: one.error_code for one in response.responses}
        if code.keys() != {group, other} or (code[other] and not code[group]):
            raise Violation(BESIDE, f"two groups were named, and the answers are {code}")
        self.wanted = await self.others_set(config.name)
        shown = (await describe_group(self.cluster, group)).get(config.name, "")
        if code[group]:
            if shown != before.get(config.name, ""):
                self.broken(NOTHING_LEFT, f"{error_name(code[group])}, and shown as {shown!r}")
            return
        bounds = {LOCK: self.bounds.locks, HEARTBEAT: self.bounds.heartbeats}.get(config.name)
        with contextlib.suppress(ValueError):
            if bounds and bounds.low <= int(shown) <= bounds.high:
                self.wanted[config.name] = int(shown)
        if config.name == _RESET:
            self.scene.free |= self.scene.all
        self.kept = self.keeps and config.name != _RESET

    async def others_set(self, name: str) -> dict[str, int]:
        """Set other keys of the group than ``name``, and return those that have to be in force."""
        values = {LOCK: self.bounds.lock(21_000)} if name != LOCK else {}
        if name not in (HEARTBEAT, SESSION):
            values[HEARTBEAT] = self.bounds.heartbeats.at_least(6000)
        told = {key: str(value) for key, value in values.items()}
        code = (await Admin(self.cluster).try_group_config(self.scene.group, told)).error_code
        if code:
            said = f"other keys of the group cannot be set any more: {error_name(code)}"
            raise Violation(IN_FORCE, said)
        return values

    # --- Afterwards -------------------------------------------------------------------------------

    async def after(self) -> None:
        """Look whether the group is as good as any: described, joined, read from, deleted."""
        try:
            await (self.state_after() if "GroupState" in self.case.api else self.group_after())
        except (Undecided, CallFailed) as stuck:
            raise Violation(NOTHING_LEFT, f"afterwards: {stuck}") from None

    async def state_after(self) -> None:
        connection = await self.at_state()
        for api in ("ReadShareGroupState", *([] if self.kept else ["DeleteShareGroupState"])):
            response = await connection.call(api, **self.scene.request(api, scenes.STATE))
            self.no_fault(api, codes(response.to_dict()))

    def no_fault(self, what: str, found: Iterable[int]) -> None:
        if _FAULT in found:
            raise Violation(NOTHING_LEFT, f"{what} afterwards is UNKNOWN_SERVER_ERROR")

    async def group_after(self) -> None:
        group, cluster, name = self.scene.group, self.cluster, getattr(self.case.config, "name", "")
        described = await Admin(cluster).describe_group(group)
        self.no_fault("ShareGroupDescribe", [described.error_code])
        asked = [{"group_id": group, "topics": None}]
        response = await cluster.at_coordinator(group, "DescribeShareGroupOffsets", groups=asked)
        self.no_fault("DescribeShareGroupOffsets", codes(response.to_dict()))
        self.offsets_shown(response)
        within = self.prompt + (16.0 if name == _INTERVAL else 0.0)
        member = await self.join(group, member_id(cluster.rng), within)
        await self.drain(member, anew=name == _RESET and not self.scene.due)
        await member.leave()
        if not self.kept:
            deleted = await cluster.at_coordinator(group, "DeleteGroups", groups_names=[group])
            if code := deleted.results[0].error_code:
                raise Violation(NOTHING_LEFT, f"DeleteGroups afterwards is {error_name(code)}")

    def offsets_shown(self, response: Struct) -> None:
        for topic in response.groups[0].topics:
            for part in topic.partitions:
                wanted = self.scene.starts.get((topic.topic_name, part.partition_index), -1)
                if wanted >= 0 and part.start_offset != wanted:
                    self.broken(SERVED, f"altered to {wanted}, and shown as {part.start_offset}")
                if getattr(part, "lag", 0) < -1:
                    self.broken(SERVED, f"the lag of a partition is {part.lag}")

    async def drain(self, member: Member, *, anew: bool) -> None:
        """Fetch until everything due has come and what has to be in force is.

        With ``anew`` something is due that is produced meanwhile.
        """
        scene, session = self.scene, await member.new_session(self.topics[0].leaders[0])
        came: set[Place] = set()
        lacking = dict(self.wanted)
        async for left in attempts(self.prompt):
            if lacking.get(LOCK) == (await self.fetched(session, came)).lock_ms:
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
            raise Violation(IN_FORCE, f"shown and not in force: {lacking}")
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
            came |= {(self.scene.named(part.topic_id), part.partition, at) for at in part.offsets}
        return response


def _said(places: list[Place]) -> str:
    first = ", ".join(f"offset {offset} of partition {n}" for _, n, offset in places[:3])
    return f"{len(places)} records ({first})"
