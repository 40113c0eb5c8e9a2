"""A broker that hangs, told from a machine that is slow.

A check that waited in vain proves nothing: a broker under load is late, too. So after such a check
each broker is asked for its versions, and a new topic and a new group on it have to get a record.
If one does not, a control is started: a sound broker of the same release, with the same properties,
on the same machine. Where the control delivers at once, and the broker under test, asked again,
still does not although its process lives, it hangs. That breaks the rule that the check would have
put to the test next (:class:`~spec.verdict.Stalled`). So do a request that nobody gets a response
to, and a broker that ends itself (:mod:`suites.broker.unanswered`).

A broker that gives no response is waited for once. What needs it afterwards is undecided at once,
so a run on such a broker ends about when one on a sound broker does.
"""

import asyncio
import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from fixtures.clients.cluster import Cluster, attempts
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import KafkaName, innermost
from fixtures.machine.loops import run_blocking
from fixtures.targets import TargetOptions, open_target
from fixtures.wire.connection import CallFailed, answers
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import NOT_PLAYED, EnvironmentFault, Stalled, Undecided
from suites.broker.env import BYSTANDING, bystand
from suites.broker.unanswered import SILENCE, find_unanswered, why_ended

IDLE = 20.0  # Seconds in which a new topic and a new group get a record on a busy machine.
PATIENT = 15.0  # Of these for the record, when it is asked again: it is busier than the control.
LOOK = 55.0  # Seconds for all of it: a check that overran is broken into a minute after its limit.
LOOKS = 3  # How often a worker looks at the brokers of one cluster.

_looks: dict[tuple[str, ...], int] = {}
_silent: dict[tuple[str, ...], str] = {}
_homes: dict[tuple[str, ...], dict[str, tuple[int, Path]]] = {}
"""Of the brokers of each cluster of ours, by address: the process, and the folder of its logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A broker that does not serve a new group: where it is, how that shows, its process."""

    address: str
    how: str
    responds: bool
    pid: int


def refuse_if_silent(info: ClusterInfo) -> None:
    """Raise Undecided for a cluster of which a broker was found to give no response."""
    if sentence := _silent.get(info.bootstrap):
        raise Undecided(sentence)
    if isinstance(innermost(info.name), KafkaName) and info.bootstrap not in _homes:
        pids = {address: pid for address in info.bootstrap if (pid := _java_behind(address))}
        homes = {at: (pid, Path(psutil.Process(pid).cwd())) for at, pid in pids.items()}
        _homes[info.bootstrap] = homes


async def find_stuck(info: ClusterInfo, transcripts: Sequence[Transcript]) -> Stalled | None:
    """Return what to raise for a broker of ours that ended itself, hangs, or leaves a request."""
    if ended := await _ended(info):
        return ended
    if await _stuck(info) and (stuck := await _stuck(info, PATIENT)):
        return Stalled(f"the broker hangs: {stuck.how}")
    return await find_unanswered(info, transcripts)


async def find_hang(
    info: ClusterInfo, properties: Mapping[str, str], transcripts: Sequence[Transcript] = ()
) -> Stalled | None:
    """Return what to raise if a broker of ours hangs, with its threads that wait as the witness.

    It is None if all brokers go on, if the control, started with the user's ``properties``, does no
    better, and for brokers that are paused or were killed. ``transcripts`` have the requests of the
    check: that one of them has no response is looked for on brokers of others, too.
    """
    _looks[info.bootstrap] = _looks.get(info.bootstrap, 0) + 1
    if _looks[info.bootstrap] > LOOKS:
        return None
    ours = isinstance(innermost(info.name), KafkaName)
    try:
        async with asyncio.timeout(LOOK):
            if ours and (ended := await _ended(info)):
                return ended
            if await _stuck(info) if ours else not await _serves(info):
                return await _find(info, properties) if ours else None
            return await find_unanswered(info, transcripts)
    except TimeoutError:
        return None


async def _serves(info: ClusterInfo) -> bool:
    try:
        async with Cluster(info) as cluster:
            await cluster.any()
            return all([await bystand(cluster, node) for node in cluster.brokers])
    except (CallFailed, EnvironmentFault, Undecided, TimeoutError):
        return False


async def _ended(info: ClusterInfo) -> Stalled | None:
    for address, (pid, home) in _homes.get(info.bootstrap, {}).items():
        if _java_behind(address):
            continue
        async for _ in attempts(SILENCE):  # it may still be on its way out
            if why := why_ended(pid, home):
                sentence = f"the broker at {address} ended itself: {why}"
                _silent[info.bootstrap] = f"{NOT_PLAYED}{sentence}"
                return Stalled(sentence)
    return None


async def _find(info: ClusterInfo, properties: Mapping[str, str]) -> Stalled | None:
    # In a thread that ends what it starts, even if nobody waits for it any more.
    delivered = await asyncio.to_thread(_control, info.version, properties)
    stuck = await _stuck(info, PATIENT) if delivered is not None else None
    if not stuck:
        return None
    sentence = (
        f"the broker at {stuck.address} hangs: {stuck.how}, asked again; its process lives, and a "
        f"sound broker that was started beside it delivered a record after {delivered:.1f} s"
    )
    if not stuck.responds:
        _silent[info.bootstrap] = f"{NOT_PLAYED}{sentence}"
    _looks[info.bootstrap] = LOOKS
    return Stalled(sentence, await _waiting_threads(stuck.pid))


async def _stuck(info: ClusterInfo, within: float = BYSTANDING) -> Stuck | None:
    """Return a broker that does not serve a new group, over connections that are new, too."""
    schemas = Schemas.from_jar(info.schema_jar)
    pids = {address: pid for address in info.bootstrap if (pid := _java_behind(address))}
    # A new group needs its coordinator and the controller, too: whoever is silent is found first.
    for address, pid in pids.items():
        host, _, port = address.rpartition(":")
        if not await answers(
            host, int(port), schemas=schemas, security=info.security, timeout=SILENCE
        ):
            how = f"ApiVersions had no response within {SILENCE:g} s"
            return Stuck(address=address, how=how, responds=False, pid=pid)
    for address, pid in pids.items():
        try:
            async with asyncio.timeout(IDLE), Cluster(info, schemas=schemas) as cluster:
                named = {f"{host}:{port}": node for node, (host, port) in cluster.brokers.items()}
                if address not in named or await bystand(cluster, named[address], within):
                    continue
            how, responds = f"a new topic and a new group get no record in {within:g} s", True
        except Undecided as refused:
            how, responds = f"a new topic and a new group get no record: {refused}", True
        except (CallFailed, EnvironmentFault, TimeoutError) as silence:
            how, responds = f"a new topic and a new group get no response: {silence}", False
        return Stuck(address=address, how=how, responds=responds, pid=pid)
    return None


def _control(version: str, properties: Mapping[str, str]) -> float | None:
    """Return the seconds after which a sound broker delivered; None if it was late, too."""
    name = str(KafkaName(version=version))
    target = open_target(name, TargetOptions(properties=dict(properties)))
    try:
        target.start()
        return run_blocking(_first_delivery(target.info))
    except (CallFailed, EnvironmentFault, Undecided):
        return None
    finally:
        target.stop()


async def _first_delivery(info: ClusterInfo) -> float | None:
    began = time.monotonic()
    async with Cluster(info) as cluster:
        served = await bystand(cluster, min(cluster.brokers))
    taken = time.monotonic() - began
    return taken if served and taken < BYSTANDING else None


def _java_behind(address: str) -> int | None:
    """Return the JVM of ours that listens at an address, if it may run."""
    port = int(address.rpartition(":")[2])
    for process in psutil.process_iter(["name", "status"]):
        if process.info["name"] != "java" or process.info["status"] == psutil.STATUS_STOPPED:
            continue
        try:
            ports = [c.laddr.port for c in process.net_connections("tcp") if c.status == "LISTEN"]
        except psutil.Error:
            continue
        if port in ports:
            return int(process.pid)
    return None


async def _waiting_threads(pid: int) -> tuple[str, ...]:
    """Have a JVM write a dump of its threads; return those that wait inside of share groups."""
    log = Path(psutil.Process(pid).cwd()) / "stdout.log"
    before = log.stat().st_size if log.exists() else 0
    psutil.Process(pid).send_signal(signal.SIGQUIT)
    text = ""
    async for _ in attempts(SILENCE / 2):
        text = log.read_bytes()[before:].decode(errors="replace") if log.exists() else ""
        if "JNI global ref" in text:
            break
    return tuple(filter(None, [threads_that_matter(text)]))


_WORK = re.compile(r"\.server\.share\.|\.coordinator\.")
_REST = "EventAccumulator"  # Where a coordinator's thread waits for something to do.
_MOST = 12


def threads_that_matter(dump: str) -> str:
    """Return those threads of a JVM's dump that can tell why a broker hangs.

    They are in code of share groups or coordinators, BLOCKED, or hold a monitor that another waits
    for. Coordinators at rest are shown where nothing else is, and threads at one place once.
    """
    found: dict[str, list[str]] = {}
    wanted = {*re.findall(r"- waiting to lock <(\w+)>", dump)}
    for one in (part.strip() for part in dump.split("\n\n") if "Thread.State" in part):
        name, _, place = one.partition("\n")
        if _WORK.search(place) or not wanted.isdisjoint(re.findall(r"lock(?:ed)? <(\w+)>", place)):
            found.setdefault(place, []).append(name)
    busy = [place for place in found if _REST not in place] or [*found]
    busy.sort(key=lambda place: "State: BLOCKED" not in place)
    return "\n\n".join("\n".join((*found[place], place)) for place in busy[:_MOST])
