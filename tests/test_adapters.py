"""The shipped adapters: their names, what they need, and what they were heard to say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from fixtures.adapters.building import built, run
from fixtures.adapters.shipped import command_of
from fixtures.interface.names import UsageFault
from fixtures.machine.cache import CACHE_VARIABLE
from spec.adapter import flaw
from spec.verdict import EnvironmentFault

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
