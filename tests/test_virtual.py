"""The virtual world: time that passes when nobody acts, and a network in memory."""

import asyncio
import time

import pytest

from fixtures import virtual
from spec.verdict import OutOfReach


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
    writer.close()


async def opened() -> tuple[asyncio.Server, asyncio.StreamReader, asyncio.StreamWriter]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    return server, *await asyncio.open_connection(*server.sockets[0].getsockname())


def test_waiting_costs_nothing() -> None:
    async def year() -> tuple[float, float]:
        monotonic, wall = time.monotonic(), time.time()
        await asyncio.sleep(365 * 86400)
        return time.monotonic() - monotonic, time.time() - wall

    began = time.monotonic()
    passed = virtual.run(year())

    assert passed == pytest.approx((365 * 86400,) * 2, abs=1)
    assert time.monotonic() - began < 60


def test_timers_come_in_their_order_and_clocks_are_given_back() -> None:
    async def race() -> list[int]:
        came: list[int] = []

        async def one(seconds: int) -> None:
            await asyncio.sleep(seconds)
            came.append(seconds)

        await asyncio.gather(*(one(seconds) for seconds in (30, 10, 20)))
        return came

    async def fail() -> None:
        raise ZeroDivisionError

    honest = time.monotonic, time.time
    assert virtual.run(race()) == [10, 20, 30]
    with pytest.raises(ZeroDivisionError):
        virtual.run(fail())
    assert (time.monotonic, time.time) == honest


def test_nothing_left_to_happen() -> None:
    """A wait for what cannot come is said at once, and so is a program without an end.

    A program that asks again and again comes to its deadline: asking takes time, too.
    """

    async def ask() -> float:
        while (now := time.monotonic()) < 1:  # noqa: ASYNC110 - it never pauses
            await asyncio.sleep(0)
        return now

    async def forever() -> None:
        while True:  # noqa: ASYNC110 - it is meant to be endless
            await asyncio.sleep(0)

    async def never() -> None:
        await asyncio.Event().wait()

    assert virtual.run(ask()) == pytest.approx(1, abs=0.1)
    with pytest.raises(virtual.Stalled, match="nothing can happen"):
        virtual.run(never())
    with pytest.raises(virtual.Stalled, match="no end"):
        virtual.run(forever())


def test_bytes_arrive_in_order() -> None:
    async def talk() -> tuple[bytes, bytes]:
        _, reader, writer = await opened()
        for number in range(100):
            writer.write(f"{number}\n".encode())
        writer.write_eof()
        came = await reader.readexactly(6), (await reader.read())[-3:]
        writer.close()
        return came

    assert virtual.run(talk()) == (b"0\n1\n2\n", b"99\n")


def test_ends_of_connections() -> None:
    async def end() -> tuple[bytes, str, str]:
        server, reader, writer = await opened()
        writer.close()
        await writer.wait_closed()
        here, there = asyncio.Event(), asyncio.Queue[str]()

        async def hold(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            here.set()
            try:
                there.put_nowait(repr(await reader.read()))
            except ConnectionResetError as error:
                there.put_nowait(type(error).__name__)

        second = await asyncio.start_server(hold, "127.0.0.1", 0)
        address = second.sockets[0].getsockname()
        _, aborted = await asyncio.open_connection(*address)
        await here.wait()
        aborted.transport.abort()
        reset = await there.get()
        second.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        server.close()
        return await reader.read(), reset, str(address[0])

    assert virtual.run(end()) == (b"", "ConnectionResetError", "127.0.0.1")


def test_writing_to_nobody_is_a_reset() -> None:
    async def write() -> None:
        async def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        server = await asyncio.start_server(leave, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x")
        await reader.read()

    with pytest.raises(ConnectionResetError):
        virtual.run(write())


def test_other_processes_stay_outside() -> None:
    async def leave() -> int:
        one = await asyncio.to_thread(lambda: 1)
        await asyncio.create_subprocess_exec("true")
        return one

    with pytest.raises(OutOfReach, match="network in memory"):
        virtual.run(leave())
