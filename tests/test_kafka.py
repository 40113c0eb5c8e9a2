"""Real Kafka as a foreign cluster: hooks, a coordinator that hears last, default quotas."""

import asyncio
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fixtures.interface.target import Target
from fixtures.machine.loops import run_blocking
from fixtures.machine.ports import free_ports
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target, started
from spec.verdict import Undecided
from suites.broker.env import Env, open_env
from suites.broker.hang import find_hang, refuse_if_silent
from suites.broker.unanswered import why_ended
from tests.shell import judged, left, until
from tools.vanilla import hold_everybody_to, hooks

RULES = {"LAG-13": "pass", "PER-42": "pass", "PER-44": "out of reach"}


def test_hooks_open_the_rules_about_failover(tmp_path: Path) -> None:
    with started(open_target(DEFAULT_TARGET, TargetOptions(brokers=3, shipped=True))) as target:
        where = ",".join(target.info.bootstrap)
        with hooks(target) as file:
            words = ("--hooks", str(file), "--workers", "1", "--only", ",".join(RULES))
            done, found = judged(tmp_path, "--target", f"external:{where}", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert {rule: verdict for rule, (verdict, _) in found.items()} == RULES
        assert all(broker.is_alive for broker in target.brokers)


@pytest.fixture(scope="module")
def debugged() -> Iterator[tuple[Target, int]]:
    port = free_ports(1)[0]
    jdwp = f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:{port}"

    def variables(node: int) -> Mapping[str, str]:
        return {"JDK_JAVA_OPTIONS": jdwp} if node == 1 else {}

    options = TargetOptions(brokers=3, steady=True, variables=variables)
    with started(open_target(DEFAULT_TARGET, options)) as target:
        yield target, port


# --- A coordinator that hears of a new topic last ---------------------------------------------

FROZEN = 0.2  # seconds for a request to reach a frozen broker


async def _elsewhere(env: Env, here: int) -> tuple[str, int]:
    while True:
        group = env.cluster.fresh_name("g")
        if (node := await env.cluster.coordinator(group)) != here:
            return group, node


def test_a_new_topic_is_altered_once_its_coordinator_knows_it(debugged: tuple[Target, int]) -> None:
    target, _ = debugged

    async def play() -> list[int]:
        async with open_env(target.info, Random(1), []) as env:
            # Nothing but the alteration may need the frozen broker: creating topics needs the
            # active controller, which Metadata does not name.
            here = env.cluster.controller = await env.cluster.active_controller()
            group, node = await _elsewhere(env, here)
            env.cluster.away.add(node)
            broker = target.brokers[node - 1]
            await env.cluster.to(node)
            broker.pause()
            try:
                topic = await env.admin.create_topic(assignments=[[here]])
                altered = asyncio.create_task(env.admin.alter_offset(group, topic, 0))
                await asyncio.sleep(FROZEN)
            finally:
                broker.resume()
            return [
                part.error_code for topic in (await altered).responses for part in topic.partitions
            ]

    assert run_blocking(play()) == [0]


# --- A broker that hangs ----------------------------------------------------------------------


def test_a_broker_that_hangs_is_told_from_one_that_goes_on(debugged: tuple[Target, int]) -> None:
    target, port = debugged
    assert run_blocking(find_hang(target.info, {})) is None
    refuse_if_silent(target.info)

    with socket.create_connection(("127.0.0.1", port)) as debugger:
        debugger.sendall(b"JDWP-Handshake")
        assert debugger.recv(14, socket.MSG_WAITALL) == b"JDWP-Handshake"
        debugger.sendall(struct.pack(">IIBBB", 11, 1, 0, 1, 8))  # VirtualMachine.Suspend
        hang = run_blocking(find_hang(target.info, {}))
        broker: Any = target.brokers[0]
        process = broker.pid
        debugger.sendall(struct.pack(">IIBBBi", 15, 2, 0, 1, 10, 7))  # VirtualMachine.Exit
        assert until(lambda: "exit code 7" in why_ended(process, broker.home))

    assert hang is not None
    assert f"the broker at {target.info.bootstrap[0]} hangs: ApiVersions had no" in str(hang)
    with pytest.raises(Undecided, match="not played, since the broker at"):
        refuse_if_silent(target.info)


# --- Quotas for everybody ---------------------------------------------------------------------

LITTLE = {
    "consumer_byte_rate": 500.0,
    "producer_byte_rate": 2000.0,
    "controller_mutation_rate": 2.0,
}
"""Bytes and mutations a second that nearly every check exceeds."""

OWN_QUOTAS = "DLV-34"
"""A rule that Kafka 4.4.0 breaks, and whose check sets quotas itself (finding 019)."""


def test_throttled_checks_are_out_of_reach(tmp_path: Path) -> None:
    with started(open_target(DEFAULT_TARGET, TargetOptions(brokers=1, shipped=True))) as kafka:
        external = f"external:{','.join(kafka.info.bootstrap)}"
        where = ("--target", external, "--workers", "4", "--only")
        done, found = judged(tmp_path / "free", *where, OWN_QUOTAS)
        assert (done.returncode, found[OWN_QUOTAS][0]) == (0, "fail"), found
        run_blocking(hold_everybody_to(kafka, LITTLE))
        rules = "ACK-01,ACK-07,DLV-02,GAP-01,MEM-01,LCK-02"
        done, found = judged(tmp_path / "held", *where, rules)
        assert done.returncode == 0, found
        assert {verdict for verdict, _ in found.values()} <= {"pass", "out of reach"}, found
        reasons = {reason for _, reason in found.values()}
        assert any(reason.startswith("the target throttles ") for reason in reasons), found
        assert left(kafka.info) == {}
