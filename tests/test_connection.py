"""The connection, against a broker of our own that answers when and what a test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from fixtures.clients.cluster import Cluster
from fixtures.clients.users import let_in
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import Address
from fixtures.proxies.proxy import FrameProxy
from fixtures.wire import connection as connection_module
from fixtures.wire.codec import Struct, WireError
from fixtures.wire.connection import AuthenticationFailed, CallTimeout, Connection, ConnectionLost
from fixtures.wire.frame import decode_request, encode_response
from fixtures.wire.security import DialogueFailed, Security, dialogue
from spec.verdict import EnvironmentFault
from tests.release import cluster_info, schemas

HOST = "127.0.0.1"
SOON = 0.05  # seconds for what must not happen, such as a response that nobody sends
LONG = 10.0  # seconds for what must happen, and does at once
HEARTBEAT: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    api: str
    version: int
    number: int
    body: Struct


class TestBroker:
    __test__ = False

    def __init__(self, *, versions: dict[str, tuple[int, int]], silent: bool) -> None:
        self.versions = versions
        self.silent = silent
        self.requests: asyncio.Queue[Request | None] = asyncio.Queue()
        self.writer: asyncio.StreamWriter | None = None
        self.end: str | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                self._take(frame)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            self.end = type(error).__name__
            self.requests.put_nowait(None)
        finally:
            writer.close()

    def _take(self, frame: bytes) -> None:
        api, version, header, body = decode_request(schemas(), frame)
        request = Request(api=api, version=version, number=header.correlation_id, body=body)
        if api != "ApiVersions":
            self.requests.put_nowait(request)
        elif not self.silent:
            keys = {name: schemas().request(name).api_key for name in self.versions}
            ranges = [
                {"api_key": keys[name], "min_version": low, "max_version": high}
                for name, (low, high) in self.versions.items()
            ]
            self.answer(request, api_keys=ranges)

    async def next(self) -> Request:
        request = await asyncio.wait_for(self.requests.get(), LONG)
        assert request is not None
        return request

    async def gone(self) -> None:
        assert await asyncio.wait_for(self.requests.get(), LONG) is None

    def answer(self, request: Request, **body: Any) -> None:
        frame = encode_response(
            schemas(), request.api, request.version, correlation_id=request.number, body=body
        )
        self.send(len(frame).to_bytes(4, "big") + frame)

    def send(self, data: bytes) -> None:
        assert self.writer is not None
        self.writer.write(data)

    def hang_up(self) -> None:
        assert self.writer is not None
        self.writer.close()


@asynccontextmanager
async def listening(
    *, versions: dict[str, tuple[int, int]] | None = None, silent: bool = False
) -> AsyncIterator[tuple[TestBroker, int]]:
    known = {"ShareGroupHeartbeat": (1, 1)}
    broker = TestBroker(versions=known if versions is None else versions, silent=silent)
    server = await asyncio.start_server(broker.serve, HOST, 0)
    async with server:
        yield broker, server.sockets[0].getsockname()[1]


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[TestBroker, Connection]]:
    async with (
        listening(**options) as (broker, port),
        await Connection.open(HOST, port, schemas=schemas(), timeout=LONG) as connection,
    ):
        yield broker, connection


def heartbeat(connection: Connection, **options: Any) -> asyncio.Task[Struct]:
    call = connection.call("ShareGroupHeartbeat", **{"timeout": LONG, **HEARTBEAT, **options})
    return asyncio.create_task(call)


async def test_the_highest_version_that_both_know_is_spoken() -> None:
    ranges = {"ShareGroupHeartbeat": (0, 99), "Metadata": (0, 9)}
    async with connected(versions=ranges) as (_, connection):
        assert connection.versions == ranges
        assert connection.newest("Metadata") == 9
        assert connection.newest("ShareGroupHeartbeat") == 1
        assert connection.newest("ShareFetch") == schemas().request("ShareFetch").valid.high


async def test_answers_out_of_order_reach_their_callers() -> None:
    async with connected() as (broker, connection):
        calls = [heartbeat(connection, member_id=str(number)) for number in range(5)]
        requests = [await broker.next() for _ in calls]
        for each in reversed(requests):
            broker.answer(each, member_epoch=int(each.body.member_id))
        answers = [await call for call in calls]
    assert [each.body.member_id for each in requests] == ["0", "1", "2", "3", "4"]
    assert [answer.member_epoch for answer in answers] == [0, 1, 2, 3, 4]


async def test_a_late_answer_disturbs_nobody_and_is_on_the_record() -> None:
    async with connected() as (broker, connection):
        with pytest.raises(CallTimeout, match=r"no ShareGroupHeartbeat response within 0\.05 s"):
            await heartbeat(connection, timeout=SOON)
        call = heartbeat(connection)
        broker.answer(await broker.next(), member_epoch=1, error_code=25)
        request = await broker.next()
        broker.send(b"\x00\x00\x00\x06\x00\x00\x03\xa4??")  # in response to no request
        broker.answer(request, member_epoch=2)

        assert (await call).member_epoch == 2
    sent = [frame.sent for frame in connection.transcript.frames][2:]
    assert sent == [True, True, False, False, False]
    text = str(connection.transcript)
    assert "? v0 #932" in text
    assert "ShareGroupHeartbeat v1 #2\n      group_id: g" in text
    assert "error_code: 25 UNKNOWN_MEMBER_ID" in text


async def test_a_broker_that_stops_reading_is_a_timeout_too() -> None:
    async with connected() as (broker, connection):
        assert broker.writer is not None
        broker.writer.transport.pause_reading()  # type: ignore[attr-defined]
        with pytest.raises(CallTimeout):
            await heartbeat(connection, timeout=SOON, subscribed_topic_names=["t" * 30000] * 1000)


async def test_a_broker_that_hangs_up_fails_all_calls_under_way() -> None:
    async with connected() as (broker, connection):
        assert not await connection.wait_closed(SOON)
        calls = [heartbeat(connection), heartbeat(connection)]
        await broker.next()
        broker.hang_up()
        for call in calls:
            with pytest.raises(ConnectionLost, match="closed"):
                await call
        assert await connection.wait_closed(LONG)
        with pytest.raises(ConnectionLost):
            await heartbeat(connection)


@pytest.mark.parametrize("size", [-1, 0, 3, connection_module.MAX_FRAME + 1])
async def test_an_impossible_length_ends_the_connection(size: int) -> None:
    async with connected() as (broker, connection):
        call = heartbeat(connection)
        await broker.next()
        broker.send(size.to_bytes(4, "big", signed=True))
        with pytest.raises(ConnectionLost, match=f"a frame of {size} bytes"):
            await call


async def test_an_answer_that_is_garbage_is_the_caller_s_to_judge() -> None:
    async with connected() as (broker, connection):
        call = heartbeat(connection)
        got = await broker.next()
        broker.send(b"\x00\x00\x00\x09" + got.number.to_bytes(4, "big") + b"\x00\xff\xff\xff\xff")
        with pytest.raises(WireError):
            await call
        call = heartbeat(connection)
        broker.answer(await broker.next(), member_epoch=3)

        assert (await call).member_epoch == 3
    assert "undecodable" in str(connection.transcript)


async def test_raw_bytes_are_sent_as_they_are() -> None:
    async with connected() as (broker, connection):
        call = heartbeat(connection)
        request = await broker.next()
        copy = connection.transcript.frames[-1].payload
        await connection.send_raw(copy)
        again = await broker.next()
        await connection.send_bytes(len(copy).to_bytes(4, "big") + copy)
        once_more = await broker.next()
        broker.answer(request)
        await call

    assert request == again == once_more


async def test_closing_says_goodbye_and_aborting_does_not() -> None:
    ends = []
    for abort in (False, True):
        async with connected() as (broker, connection):
            if abort:
                connection.abort()
            else:
                await connection.close()
            await broker.gone()
            ends.append(broker.end)

    assert ends == ["IncompleteReadError", "ConnectionResetError"]


async def test_nobody_listening_is_a_lost_connection_and_silence_a_timeout() -> None:
    async with listening(silent=True) as (broker, port):
        with pytest.raises(CallTimeout, match="no ApiVersions response"):
            await Connection.open(HOST, port, schemas=schemas(), timeout=SOON)
        await broker.gone()
    with pytest.raises(ConnectionLost, match=f"no connection to 127.0.0.1:{port}"):
        await Connection.open(HOST, port, schemas=schemas())


async def test_a_cluster_opens_what_it_finds_and_nothing_behind_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    info = cluster_info()
    cluster = Cluster(info, schemas=schemas())
    async with listening() as (broker, port):
        cluster.brokers = {1: (HOST, port)}
        late, _ = await asyncio.gather(cluster.dial(1), cluster.close(), return_exceptions=True)
        await broker.gone()
    assert isinstance(late, ConnectionLost)

    cluster = Cluster(info, schemas=schemas())
    async with listening() as (_, port):

        async def connect() -> None:  # a broker that was fenced at first
            cluster.brokers = {1: (HOST, port)}

        monkeypatch.setattr(cluster, "connect", connect)
        async with await cluster.dial(1) as connection:
            assert connection.usable
        with pytest.raises(ConnectionLost, match="names no broker 2"):
            await cluster.dial(2)


# --- Logging in --------------------------------------------------------------------------------

ME: dict[str, Any] = {"protocol": "SASL_PLAINTEXT", "user": "user", "password": "pencil"}
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _messages(talk: Generator[bytes, bytes, None], *answers: bytes) -> list[bytes]:
    sent = [next(talk)]
    for answer in answers:
        try:
            sent.append(talk.send(answer))
        except StopIteration:
            return sent
    return sent


def test_scram_as_in_rfc_7677() -> None:
    talk = dialogue(Security(mechanism="SCRAM-SHA-256", **ME), NONCE)
    assert _messages(talk, SERVER_FIRST, SERVER_FINAL) == [
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((SERVER_FIRST, b"v=" + SERVER_FINAL[:1:-1]), id="wrong signature"),
        pytest.param((b"r=somebody,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",), id="foreign nonce"),
        pytest.param((b"\xff\xfe",), id="not even text"),
    ],
)
def test_a_server_that_does_not_know_the_password(answers: tuple[bytes, ...]) -> None:
    talk = dialogue(Security(mechanism="SCRAM-SHA-256", **ME), NONCE)
    with pytest.raises(DialogueFailed):
        _messages(talk, *answers)


def test_plain_as_in_rfc_4616() -> None:
    plain = Security(mechanism="PLAIN", **ME)
    assert _messages(dialogue(plain), b"") == [b"\0user\0pencil"]
    assert "pencil" not in repr(plain)
    for wrong in ("TLS", "SASL_SSL"):
        with pytest.raises(ValueError, match="is no"):
            Security(protocol=wrong)


def test_the_login_travels_with_the_cluster() -> None:
    login = Security(mechanism="PLAIN", **ME)
    info = cluster_info(security=login, listeners={"TLS": ("127.0.0.1:2",)})

    assert ClusterInfo.from_json(info.to_json()) == info
    assert info.at("TLS", Security(protocol="SSL")).bootstrap == ("127.0.0.1:2",)


def _open(port: int, **security: Any) -> asyncio.Task[Connection]:
    login = Security(**security)
    return asyncio.create_task(Connection.open(HOST, port, schemas=schemas(), security=login))


_broker = partial(listening, versions={})


@pytest.mark.parametrize("by_proxy", [False, True])
async def test_login_word_by_word(by_proxy: bool) -> None:
    async with _broker() as (broker, port):
        if by_proxy:  # it logs in for its clients
            proxy = FrameProxy(schemas(), Security(mechanism="PLAIN", **ME))
            front = await proxy.listen(1, Address(host=HOST, port=port))
            opening = _open(front.address.port)
        else:
            opening = _open(port, mechanism="PLAIN", **ME)
        request = await broker.next()
        assert (request.api, request.body.mechanism) == ("SaslHandshake", "PLAIN")
        broker.answer(request, mechanisms=["PLAIN"])
        request = await broker.next()
        assert (request.api, request.body.auth_bytes) == ("SaslAuthenticate", b"\0user\0pencil")
        broker.answer(request, auth_bytes=b"")

        async with await asyncio.wait_for(opening, LONG):
            assert broker.requests.empty()
        if by_proxy:
            await proxy.stop()


@pytest.mark.parametrize("handshaken", [False, True])
async def test_login_refused(handshaken: bool) -> None:
    async with _broker() as (broker, port):
        opening = _open(port, mechanism="PLAIN", **ME)
        if handshaken:
            broker.answer(await broker.next(), mechanisms=["PLAIN"])
            broker.answer(await broker.next(), error_code=58, error_message="go away")
        else:
            broker.answer(await broker.next(), error_code=33)

        reason = "SASL_AUTHENTICATION_FAILED.*go away" if handshaken else "UNSUPPORTED_SASL"
        with pytest.raises(AuthenticationFailed, match=reason):
            await asyncio.wait_for(opening, LONG)


async def test_a_new_user_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    async def connect(cluster: Cluster) -> None:
        nonlocal tried
        tried += 1
        if tried < 3:
            raise EnvironmentFault(f"no bootstrap server answers {cluster.info.security.user}")

    monkeypatch.setattr(Cluster, "connect", connect)
    login = Security(mechanism="SCRAM-SHA-256", **ME)
    info = cluster_info(bootstrap=(f"{HOST}:1",), security=login)
    await let_in(info, schemas())

    assert tried == 3


async def test_a_proxy_that_is_not_let_in_resets_its_client() -> None:
    async with _broker() as (broker, port):
        proxy = FrameProxy(schemas(), Security(mechanism="PLAIN", **ME))
        front = await proxy.listen(1, Address(host=HOST, port=port))
        opening = _open(front.address.port)
        broker.answer(await broker.next(), error_code=33)
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(opening, LONG)
        await proxy.stop()
