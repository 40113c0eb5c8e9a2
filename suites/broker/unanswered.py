"""A request that has no response, and a broker that ends itself, where nothing else is wrong.

A check that waited in vain for a response proves nothing: responses get lost, and a machine may be
busy. Where the brokers serve new groups in time, its request is sent again over connections of its
own, twice. If it has no response then, either, no client can get one.

A broker whose process ends with an exit code of its own has fallen over what it was asked, unless
its log blames memory, a disk, a port or a limit of the machine. Signals are somebody else's.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fixtures.interface.info import ClusterInfo
from fixtures.targets.broker import explain_death
from fixtures.wire.codec import WireError, parts_of
from fixtures.wire.connection import CallFailed, CallTimeout, Connection
from fixtures.wire.frame import Frame, Transcript, decode_request
from fixtures.wire.schema import SchemaError
from spec.verdict import Stalled

SILENCE = 10.0  # Seconds in which a broker that serves others responds to what need not wait.
AGAIN = 2

Body = Mapping[str, Any]

_WAITING = frozenset({"JoinGroup", "SyncGroup"})  # They wait for other members.
_HELD_BACK = 1000  # Milliseconds that a request may ask to wait, when it is sent again.
_TAIL = 20_000
_MACHINE = re.compile(
    r"OutOfMemory|insufficient memory|allocate memory|No space left|Too many open files|log dir"
    r"|Address already in use"
)


def to_repeat(transcripts: Iterable[Transcript], now: float) -> list[tuple[Frame, Body]]:
    """Return requests that waited in vain, one for each API and broker, as they are sent again.

    In place of one of a share session it is the fetch that opened it: it may come at any time.
    """
    found: dict[tuple[str, str], tuple[Frame, Body]] = {}
    opened: dict[tuple[str, object], tuple[Frame, Body]] = {}
    for one in transcripts:
        came = {(frame.connection, frame.correlation_id) for frame in one.frames if not frame.sent}
        for frame in (frame for frame in one.frames if frame.sent):
            body = _body(frame)
            again, who = (frame, body), (frame.peer, body.get("member_id"))
            if body.get("share_session_epoch") == 0:
                opened[who] = again
            waited = one.closed.get(frame.connection, now) - frame.at
            vain = waited >= SILENCE and (frame.connection, frame.correlation_id) not in came
            if "share_session_epoch" in body:
                vain, again = vain and who in opened, opened.get(who, again)
            if vain and frame.api not in _WAITING and body.get("acks") != 0:
                found[frame.peer, frame.api] = again
    return [(frame, _at_once(body)) for frame, body in found.values()]


def _body(frame: Frame) -> Body:
    try:
        return parts_of(decode_request(frame.schemas, frame.payload)[3])[0]
    except (WireError, SchemaError):
        return {"acks": 0}  # whoever sends what cannot be read is owed no response


def _at_once(body: Body) -> Body:
    waits = {name: body[name] for name in ("max_wait_ms", "timeout_ms") if name in body}
    return {**body, **{name: min(asked, _HELD_BACK) for name, asked in waits.items()}}


async def find_unanswered(info: ClusterInfo, transcripts: Sequence[Transcript]) -> Stalled | None:
    """Return what to raise if a request of a check has no response, however often it is sent."""
    for frame, body in to_repeat(transcripts, asyncio.get_running_loop().time()):
        silences = [await _silence(info, frame, body) for _ in range(AGAIN)]
        if all(silences):
            return Stalled(
                f"{silences[-1]}, nor had the same request before; new groups are served"
            )
    return None


async def _silence(info: ClusterInfo, frame: Frame, body: Body) -> str:
    host, _, port = frame.peer.rpartition(":")
    try:
        async with await Connection.open(
            host, int(port), schemas=frame.schemas, security=info.security
        ) as connection:
            await connection.exchange(frame.api, frame.version, body, SILENCE)
    except CallTimeout as silence:
        return str(silence)
    except CallFailed:
        pass
    return ""


def why_ended(pid: int, home: Path) -> str:
    """Return why a broker's process ended itself; nothing if it did not, or had no choice."""
    try:
        state, *_, status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    code, signal = divmod(int(status), 256)
    # From 128 on a JVM says that a signal ended it.
    if state != "Z" or signal or not 0 < code < 128:
        return ""
    logs = "".join(file.read_text(errors="replace")[-_TAIL:] for file in home.glob("*.log"))
    return "" if _MACHINE.search(logs) else f"exit code {code}, {explain_death(home)}"
