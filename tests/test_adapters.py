"""Adapters: their protocol and driver, those that are shipped, and settings of clients."""

import asyncio
import json
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fixtures.adapters.model.settings import NAMED, STRANGE
from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import (
    Adapter,
    AdapterDied,
    AdapterFault,
    AdapterHang,
    Refused,
    Unsupported,
)
from fixtures.clients.handle import Handle
from fixtures.interface.names import UsageFault
from fixtures.machine.builds import built, run
from fixtures.machine.cache import CACHE_VARIABLE
from spec.adapter import SCHEMA, Capability, flaw
from spec.settings import Setting, settings_of
from spec.verdict import EnvironmentFault
from suites.client.harness import AdapterProcess
from suites.client.settings import (
    EFFECTS,
    FOREIGN,
    REFUSED,
    TAKES_EFFECT,
    Outcome,
    Trial,
    broken,
    trials,
)
from suites.sweep import chosen

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


@asynccontextmanager
async def started(body: str) -> AsyncIterator[Adapter]:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    adapter = Adapter([sys.executable, "-c", HELLO + lines])
    await adapter.start()
    try:
        yield adapter
    finally:
        await adapter.stop()


async def fault_of(body: str, **fields: Any) -> AdapterFault:
    async with started(body) as adapter:
        with pytest.raises(AdapterFault) as caught:
            await adapter.call("wakeup", consumer="c", **{"within": 5.0, **fields})
        return caught.value


UNSUPPORTED = 'say({"id": request["id"], "ok": False, "us": 0, "unsupported": "wakeup"})'


async def test_hello_says_who_it_is_and_refusals_are_answers() -> None:
    body = """
error = {"name": "illegal-state", "raw": "IllegalStateException", "message": "no"}
if request["consumer"] == "refused":
    say({"id": request["id"], "ok": False, "us": 1, "error": error})
elif request["op"] == "wakeup":
    ok(request)
else:
    UNSUPPORTED
"""
    async with started(
        body.replace("UNSUPPORTED", UNSUPPORTED.replace("wakeup", "renew"))
    ) as adapter:
        assert (adapter.hello.name, adapter.hello.version) == ("fake", "1")
        assert adapter.has(Capability.WAKEUP)
        assert not adapter.has("renew")
        await Handle(adapter, "c").wakeup()
        with pytest.raises(Refused, match="illegal-state") as caught:
            await adapter.call("wakeup", consumer="refused")
        assert caught.value.raw == "IllegalStateException"
        with pytest.raises(Unsupported, match="renew"):
            await adapter.call("commit_async", consumer="c")
        assert adapter.running


@pytest.mark.parametrize(
    ("body", "kind", "sentences"),
    [
        (UNSUPPORTED, AdapterFault, ["declared wakeup"]),
        (
            'print("out of luck", file=sys.stderr, flush=True); sys.exit(3)',
            AdapterDied,
            ["ended with 3", "out of luck"],
        ),
        ("pass", AdapterHang, ["no reply to wakeup within 0.3 s"]),
        ('print("hello", flush=True)', AdapterFault, ["no JSON"]),
        ('say({"id": request["id"], "ok": True, "us": 1})', AdapterFault, ["does not know"]),
        ('say({"event": "strange"})', AdapterFault, ["does not know"]),
        ('say({"id": 99, "ok": True, "us": 1, "result": {}})', AdapterFault, ["nobody waits for"]),
        ("ok(request, surprise=1)", AdapterFault, ["does not fit"]),
    ],
)
async def test_what_an_adapter_gets_wrong_is_its_fault(
    body: str, kind: type[AdapterFault], sentences: list[str]
) -> None:
    fault = await fault_of(body, within=0.3 if body == "pass" else 5.0)
    assert isinstance(fault, kind)
    assert [sentence for sentence in sentences if sentence not in str(fault)] == []


async def test_a_late_reply_is_no_second_fault_but_a_second_reply_is() -> None:
    body = """
if request["consumer"] == "slow":
    slow = request
    continue
if "slow" in globals():
    ok(slow)
    del slow
ok(request)
if request["consumer"] == "twice":
    ok(request)
"""
    async with started(body) as adapter:
        with pytest.raises(AdapterHang):
            await adapter.call("wakeup", consumer="slow", within=0.3)
        await adapter.call("wakeup", consumer="c")
        assert adapter.running
        with pytest.raises(AdapterFault):
            await _calls(adapter, "twice", "c", "c", "c")  # a second reply comes when it comes


async def _calls(adapter: Adapter, *consumers: str) -> None:
    for consumer in consumers:
        await adapter.call("wakeup", consumer=consumer, within=5.0)


async def test_starts_that_fail_and_a_crash_on_request() -> None:
    adapter = Adapter([sys.executable, "-c", HELLO.replace("protocol=1", "protocol=2")])
    with pytest.raises(AdapterFault, match="protocol"):
        await adapter.start()
    await adapter.stop()
    with pytest.raises(EnvironmentFault, match="no-such-adapter"):
        await Adapter(["/no-such-adapter"]).start()
    crash = 'import os; os._exit(17) if request["op"] == "crash" else ok(request)'
    async with started(crash) as adapter:
        await adapter.crash()
        assert not adapter.running


async def test_no_client_is_judged_whose_start_was_cut_short(tmp_path: Path) -> None:
    mark = tmp_path / "second"
    script = f"import pathlib, sys\nmark = pathlib.Path({str(mark)!r})\n"
    script += "if not mark.exists():\n    mark.touch()\n    sys.stdin.read()\n" + HELLO
    adapters = AdapterProcess((sys.executable, "-c", script))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(adapters.running(), 5)
    assert mark.exists()
    assert (await adapters.running()).hello.name == "fake"
    await adapters.stop()


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


# --- Shipped adapters -------------------------------------------------------------------------

RECORDED = Path(__file__).parent / "adapters"
"""What each adapter wrote on a walk through the protocol (``shareproof walk``)."""


@pytest.mark.parametrize("client", sorted(path.stem for path in RECORDED.glob("*.jsonl")))
def test_recorded_lines_fit_the_schema(client: str) -> None:
    lines = (RECORDED / f"{client}.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line) for line in lines]
    assert [wrong for message in messages if (wrong := flaw("message", message))] == []
    assert flaw("result.hello", messages[0]["result"]) is None
    assert any("records" in message.get("result", {}) for message in messages)
    assert any(message.get("event") == "callback" for message in messages)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("kafkajs", "there are confluent, franz-go"),
        ("java:newest", "try java:4.4.0"),
        ("java:4.0.1", "needs version 4.1 or later"),
        ("confluent:2.15.0", "needs version 2.16 or later"),
        ("krafka:0.27.0", "for 0.28.1 only"),
    ],
)
def test_bad_names_are_usage_faults_with_advice(name: str, advice: str) -> None:
    with pytest.raises(UsageFault, match=advice):
        command_of(name)


@pytest.mark.parametrize(("client", "named"), [("franz-go", "Go 1.26"), ("krafka", "Rust 1.95")])
def test_missing_toolchain_is_said(
    client: str, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=f"built by {named} or later; install that"):
        command_of(client)


def test_failed_build_leaves_nothing_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    def broken(into: Path) -> None:
        (into / "half").touch()
        run("a client", ["sh", "-c", "echo no compiler >&2; exit 1"])

    with pytest.raises(EnvironmentFault, match="a client cannot be built: no compiler"):
        built("client 1", "", broken)
    home = built("client 1", "", lambda into: (into / "whole").touch())

    assert [path.name for path in home.iterdir()] == ["whole"]


def test_the_model_starts_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    started = subprocess.run(
        command_of("model"), input="", capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (started.returncode, started.stderr) == (0, "")


# --- Settings of clients ----------------------------------------------------------------------

TABLES = sorted(
    one.name.removesuffix(".toml")
    for one in resources.files("spec.settings").iterdir()
    if one.name.endswith(".toml")
)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_whole(name: str) -> None:
    found = settings_of(name)
    assert found is not None
    mine = trials(found)
    assert len({trial.name for trial in mine}) == len(mine) > 5
    assert all(chosen(mine, [trial.name.replace("[", "[[]")], "=") for trial in mine)
    for setting in found.settings:
        assert setting.shows in EFFECTS or "." in setting.shows or not setting.values
        assert not set(setting.values) & set(setting.refused)
    assert found.documentation
    text = (resources.files("spec.settings") / f"{name}.toml").read_text(encoding="utf-8")
    tables = {"setting", "refused", "foreign", "untested"}
    assert {*tables, "documentation", "like"} >= tomllib.loads(text).keys()


def test_the_models_table_has_all_of_its_settings() -> None:
    found = settings_of("model")
    assert found is not None
    named = {one.name for one in found.settings} | found.untested.keys()
    assert NAMED.keys() | STRANGE <= named


def test_a_version_leaves_out_what_came_later() -> None:
    older, newer = settings_of("kafka-clients", "4.1.2"), settings_of("kafka-clients", "4.4.0")
    assert older
    assert newer
    assert {s.name for s in newer.settings} - {s.name for s in older.settings} == {
        "share.acquire.mode"
    }
    assert settings_of("nobody") is None


SETTING = Setting(name="fetch.max.wait.ms", shows="ShareFetch.max_wait_ms")


@pytest.mark.parametrize(
    ("trial", "outcome", "reason"),
    [
        ({"wanted": 7}, {"works": True}, ""),
        ({"wanted": 7}, {"shown": "it was 500"}, "no effect; it was 500"),
        ({"wanted": 7}, {"refusals": ("config: fetch.max.wait.ms",)}, "although it is documented"),
        ({"wanted": 7, "may_refuse": True}, {"refusals": ("config: Fetch max wait ms",)}, ""),
        ({"wanted": 7, "may_refuse": True}, {"shown": "it was 500"}, "no effect"),
        ({}, {"refusals": ("config: fetchMaxWaitMs is no number",)}, ""),
        ({}, {"refusals": ("other: bad",)}, "does not name the setting"),
        ({}, {"shown": "it was 500"}, "not refused; it was 500"),
        ({}, {"works": True, "shown": "it was 7"}, "not refused; it was 7"),
    ],
)
def test_the_judge_of_a_trial(
    trial: dict[str, object], outcome: dict[str, object], reason: str
) -> None:
    rule = TAKES_EFFECT if "wanted" in trial else REFUSED
    found = broken(
        Trial(setting=SETTING, value="7", rule=rule, **trial),  # type: ignore[arg-type]
        Outcome(**outcome),  # type: ignore[arg-type]
    )
    assert reason in found
    assert bool(found) == bool(reason)


def test_foreign_settings_have_their_own_rule() -> None:
    found = settings_of("model")
    assert found is not None
    foreign = [trial for trial in trials(found) if trial.rule == FOREIGN]
    assert {trial.setting.name for trial in foreign} == STRANGE
