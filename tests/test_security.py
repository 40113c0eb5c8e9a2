"""Logging in: held against the exchanges that the RFCs print, and against a server of our own."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.cluster import Cluster
from fixtures.clients.users import let_in
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import Address
from fixtures.proxies.proxy import FrameProxy
from fixtures.targets.certificates import make_certificates
from fixtures.wire.connection import AuthenticationFailed, Connection, ConnectionLost
from fixtures.wire.security import DialogueFailed, Security, dialogue
from spec.verdict import EnvironmentFault
from tests.release import schemas
from tests.test_connection import LONG, TestBroker

HOST = "127.0.0.1"

ME: dict[str, Any] = {"protocol": "SASL_PLAINTEXT", "user": "user", "password": "pencil"}
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _said(talk: Generator[bytes, bytes, None], *answers: bytes) -> list[bytes]:
    said = [next(talk)]
    for answer in answers:
        try:
            said.append(talk.send(answer))
        except StopIteration:
            return said
    return said


def test_scram_as_in_rfc_7677() -> None:
    talk = dialogue(Security(mechanism="SCRAM-SHA-256", **ME), NONCE)
    assert _said(talk, SERVER_FIRST, SERVER_FINAL) == [
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
        _said(talk, *answers)


def test_plain_as_in_rfc_4616() -> None:
    plain = Security(mechanism="PLAIN", **ME)
    assert _said(dialogue(plain), b"") == [b"\0user\0pencil"]
    assert "pencil" not in repr(plain)
    for wrong in ("TLS", "SASL_SSL"):
        with pytest.raises(ValueError, match="is no"):
            Security(protocol=wrong)


def test_the_login_travels_with_the_cluster() -> None:
    info = ClusterInfo(
        name="kafka:4.4.0",
        version="4.4.0",
        profile="apache-kafka",
        bootstrap=("127.0.0.1:1",),
        schema_jar="clients.jar",
        prefix="sp-",
        security=Security(mechanism="PLAIN", **ME),
        listeners={"TLS": ("127.0.0.1:2",)},
    )

    assert ClusterInfo.from_json(info.to_json()) == info
    assert info.at("TLS", Security(protocol="SSL")).bootstrap == ("127.0.0.1:2",)


@asynccontextmanager
async def _broker(context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[TestBroker, int]]:
    broker = TestBroker(versions={}, silent=False)
    server = await asyncio.start_server(broker.serve, HOST, 0, ssl=context)
    async with server:
        yield broker, server.sockets[0].getsockname()[1]


def _open(port: int, **security: Any) -> asyncio.Task[Connection]:
    login = Security(**security)
    return asyncio.create_task(Connection.open(HOST, port, schemas=schemas(), security=login))


async def test_tls_with_a_certificate_that_the_authority_vouches_for(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.keystore)
    async with _broker(context) as (_, port):
        async with await _open(port, protocol="SSL", ca=str(made.ca)) as connection:
            assert connection.versions == {}
        with pytest.raises(ConnectionLost, match="certificate"):
            await _open(port, protocol="SSL")


@pytest.mark.parametrize("by_proxy", [False, True])
async def test_login_word_by_word(by_proxy: bool) -> None:
    async with _broker() as (broker, port):
        if by_proxy:  # it logs in for its clients
            proxy = FrameProxy(schemas(), Security(mechanism="PLAIN", **ME))
            front = await proxy.listen(1, Address(host=HOST, port=port))
            opening = _open(front.address.port)
        else:
            opening = _open(port, mechanism="PLAIN", **ME)
        asked = await broker.next()
        assert (asked.api, asked.body.mechanism) == ("SaslHandshake", "PLAIN")
        broker.answer(asked, mechanisms=["PLAIN"])
        asked = await broker.next()
        assert (asked.api, asked.body.auth_bytes) == ("SaslAuthenticate", b"\0user\0pencil")
        broker.answer(asked, auth_bytes=b"")

        async with await asyncio.wait_for(opening, LONG):
            assert broker.asked.empty()
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
    info = ClusterInfo(
        name="c",
        version="4.4.0",
        profile="",
        bootstrap=(f"{HOST}:1",),
        schema_jar="",
        prefix="c",
        security=Security(mechanism="SCRAM-SHA-256", **ME),
    )
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
