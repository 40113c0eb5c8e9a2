"""Which release's command line tools are run before a cluster, above all one that has none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.clients.tools import CONSOLE_CONSUMER, GROUPS, SHARE_GROUPS, ToolRun, Tools
from fixtures.interface.info import ClusterInfo
from fixtures.machine.maven import Release
from spec.verdict import EnvironmentFault, OutOfReach, Undecided


def registry(published: set[str], asked: list[str]) -> Callable[[str], Release]:
    """Return a registry that has the tools of some releases, and notes what it is asked for."""

    def jars(version: str) -> Release:
        asked.append(version)
        if version not in published:
            raise EnvironmentFault(f"no tools of {version}")
        return Release(version=version, home=Path(), jars=())

    return jars


def cluster(version: str) -> ClusterInfo:
    """Return a cluster that says it is of a release, or of a line of them."""
    return ClusterInfo(
        name=f"kafka:{version}",
        version=version,
        profile="apache-kafka",
        bootstrap=(),
        schema_jar="",
        prefix="sp-",
        properties={},
    )


@pytest.mark.parametrize(
    ("version", "published", "expected"),
    [
        pytest.param("4.3.0", {"4.3.0", "4.3.1"}, ["4.3.0"], id="its own"),
        pytest.param("4.3", {"4.3.0", "4.3.1"}, ["4.3.1"], id="the last of the line it shows"),
        pytest.param("4.2.2", {"4.2.1", "4.2.2"}, ["4.2.1"], id="known to have none"),
        pytest.param("4.4.0", {"4.3.1"}, ["4.3.1"], id="a line that has none"),
        pytest.param("4.2.9", {"4.2.1"}, ["4.2.9", "4.2.1"], id="found to have none"),
    ],
)
def test_tools_that_suit_a_cluster(version: str, published: set[str], expected: list[str]) -> None:
    asked: list[str] = []

    tools = asyncio.run(Tools.of(cluster(version), registry(published, asked)))

    assert asked == expected
    assert tools.version == expected[-1]


@pytest.mark.parametrize(
    ("version", "why"), [("4.2.9", "no tools of 4.2.1"), ("9.0.0", "no tools of 9.0.0"), ("", "''")]
)
def test_no_tools_are_out_of_reach(version: str, why: str) -> None:
    with pytest.raises(OutOfReach, match=why):
        asyncio.run(Tools.of(cluster(version), registry(set(), [])))


@pytest.mark.parametrize(
    ("main", "gives_up"), [(SHARE_GROUPS, True), (GROUPS, True), (CONSOLE_CONSUMER, False)]
)
def test_a_tool_that_gave_up_shows_nothing(
    main: str, gives_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Error: org.apache.kafka.common.errors.TimeoutException: Call(callName=listGroups)"

    async def ended(_self: Tools, command: str, _arguments: tuple[str, ...]) -> ToolRun:
        return ToolRun(command=command, status=1, out=said, err="")

    monkeypatch.setattr(Tools, "_run", ended)
    tools = asyncio.run(Tools.of(cluster("4.3.1"), registry({"4.3.1"}, [])))

    if gives_up:
        with pytest.raises(Undecided, match="gave up waiting for the cluster: TimeoutException"):
            asyncio.run(tools.run(main, "--list"))
    else:
        assert asyncio.run(tools.run(main)).out == said
