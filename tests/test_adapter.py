"""The adapter protocol and its driver: what an adapter gets wrong is its error, never a pass."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.adapter import (
    Adapter,
    AdapterDied,
    AdapterFault,
    AdapterHang,
    Refused,
    Unsupported,
)
from fixtures.clients.handle import Handle
from spec.adapter import SCHEMA, Capability, flaw
from spec.verdict import EnvironmentFault
from suites.client.conftest import Adapters

HELLO = """
import json, sys
def say(message): print(json.dumps(message), flush=True)
def ok(request, **result): say({"id": request["id"], "ok": True, "us": 1, "result": result})
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        ok(request, protocol=1, name="fake", version="1", capabilities=["wakeup"])
        continue
"""


async def started(body: str) -> Adapter:
    """Return a running adapter that says hello and then does what ``body`` says."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    adapter = Adapter([sys.executable, "-c", HELLO + lines])
    await adapter.start()
    return adapter


async def fault_of(body: str, **fields: Any) -> AdapterFault:
    """Return the fault that a call ends with."""
    adapter = await started(body)
    try:
        with pytest.raises(AdapterFault) as caught:
            await adapter.call("wakeup", consumer="c", **{"within": 5.0, **fields})
        return caught.value
    finally:
        await adapter.stop()


async def test_hello_says_who_it_is() -> None:
    adapter = await started("ok(request)")
    try:
        assert (adapter.hello.name, adapter.hello.version) == ("fake", "1")
        assert adapter.has(Capability.WAKEUP)
        assert not adapter.has("renew")
        await Handle(adapter, "c").wakeup()
    finally:
        await adapter.stop()


async def test_a_library_s_refusal_is_an_answer() -> None:
    body = """
error = {"name": "illegal-state", "raw": "IllegalStateException", "message": "no"}
say({"id": request["id"], "ok": False, "us": 1, "error": error})
"""
    adapter = await started(body)
    try:
        with pytest.raises(Refused, match="illegal-state") as caught:
            await adapter.call("wakeup", consumer="c")
        assert caught.value.raw == "IllegalStateException"
        assert adapter.running
    finally:
        await adapter.stop()


async def test_what_is_not_declared_may_be_unsupported() -> None:
    adapter = await started(
        'say({"id": request["id"], "ok": False, "us": 0, "unsupported": "renew"})'
    )
    try:
        with pytest.raises(Unsupported, match="renew"):
            await adapter.call("commit_async", consumer="c")
    finally:
        await adapter.stop()


async def test_declared_and_unsupported_is_a_fault() -> None:
    fault = await fault_of(
        'say({"id": request["id"], "ok": False, "us": 0, "unsupported": "wakeup"})'
    )

    assert "declared wakeup" in str(fault)


async def test_a_crash_is_a_fault_with_its_last_words() -> None:
    fault = await fault_of('print("out of luck", file=sys.stderr, flush=True); sys.exit(3)')

    assert isinstance(fault, AdapterDied)
    assert "ended with 3" in str(fault)
    assert "out of luck" in str(fault)


async def test_a_hang_is_a_fault() -> None:
    fault = await fault_of("pass", within=0.3)

    assert isinstance(fault, AdapterHang)
    assert "no reply to wakeup within 0.3 s" in str(fault)


async def test_a_late_reply_is_no_second_fault() -> None:
    body = """
if request["consumer"] == "slow":
    slow = request
    continue
if "slow" in globals():
    ok(slow)
    del slow
ok(request)
"""
    adapter = await started(body)
    try:
        with pytest.raises(AdapterHang):
            await adapter.call("wakeup", consumer="slow", within=0.3)
        await adapter.call("wakeup", consumer="c")
        assert adapter.running
    finally:
        await adapter.stop()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('print("hello", flush=True)', "no JSON"),
        ('say({"id": request["id"], "ok": True, "us": 1})', "does not know"),
        ('say({"event": "strange"})', "does not know"),
        ('say({"id": 99, "ok": True, "us": 1, "result": {}})', "nobody waits for"),
        ("ok(request, surprise=1)", "does not fit"),
    ],
)
async def test_garbage_is_a_fault(body: str, sentence: str) -> None:
    assert sentence in str(await fault_of(body))


async def test_a_second_reply_is_a_fault() -> None:
    adapter = await started("ok(request); ok(request)")
    try:
        await adapter.call("wakeup", consumer="c")
        assert await _breaks(adapter)
    finally:
        await adapter.stop()


async def _breaks(adapter: Adapter) -> bool:
    """Tell whether one of the next calls ends with a fault: a reply comes when it comes."""
    try:
        for _ in range(3):
            await adapter.call("wakeup", consumer="c", within=5.0)
    except AdapterFault:
        return True
    return False


async def test_another_protocol_is_refused() -> None:
    source = HELLO.replace("protocol=1", "protocol=2")
    adapter = Adapter([sys.executable, "-c", source])
    try:
        with pytest.raises(AdapterFault, match="protocol"):
            await adapter.start()
    finally:
        await adapter.stop()


async def test_a_command_that_does_not_exist_is_named() -> None:
    with pytest.raises(EnvironmentFault, match="no-such-adapter"):
        await Adapter(["/no-such-adapter"]).start()


async def test_no_client_is_judged_whose_start_was_cut_short(tmp_path: Path) -> None:
    mark = tmp_path / "second"
    script = f"import pathlib, sys\nmark = pathlib.Path({str(mark)!r})\n"
    script += "if not mark.exists():\n    mark.touch()\n    sys.stdin.read()\n" + HELLO
    adapters = Adapters((sys.executable, "-c", script))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(adapters.running(), 5)
    assert mark.exists()
    assert (await adapters.running()).hello.name == "fake"
    await adapters.stop()


async def test_crashing_on_request_is_no_fault() -> None:
    adapter = await started('import os; os._exit(17) if request["op"] == "crash" else ok(request)')
    await adapter.crash()

    assert not adapter.running
    await adapter.stop()


def test_every_request_and_result_has_a_schema() -> None:
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    ops = {name.partition(".")[2] for name in definitions if name.startswith("request.")}
    listed = {one["$ref"].rpartition(".")[2] for one in definitions["request"]["oneOf"]}

    assert ops == listed
    assert {op for op in ops if f"result.{op}" not in definitions} == {"crash"}
    assert set(definitions["capability"]["enum"]) == set(Capability)


@pytest.mark.parametrize(
    ("name", "message", "good"),
    [
        ("request.poll", {"id": 1, "op": "poll", "consumer": "c", "timeout_ms": 5}, True),
        ("request.poll", {"id": 1, "op": "poll", "consumer": "c"}, False),
        ("message", {"id": 1, "ok": True, "us": 3, "result": {}}, True),
        ("message", {"id": 1, "ok": True, "us": -3, "result": {}}, False),
        ("error", {"name": "INVALID_RECORD_STATE", "raw": "x"}, True),
        ("error", {"name": "InvalidRecordState", "raw": "x"}, False),
        ("bytes", "aGVsbG8=", True),
        ("bytes", "hello?", False),
        ("bytes", {"length": 5, "crc32": 907060870}, True),
    ],
)
def test_schemas_tell_good_from_bad(name: str, message: Any, good: bool) -> None:
    assert (flaw(name, message) is None) is good
