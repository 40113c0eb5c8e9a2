"""Targets in containers: what can be told without an engine, and that nothing outlives a run."""

import pytest

from chaos.capabilities import OURS, TOXIPROXY, usual_proxies
from chaos.run import ChaosTest, check
from chaos.schedule import Schedule
from fixtures.interface.names import Address, ContainerName, parse_target
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.targets.config import cluster_properties
from fixtures.targets.container import target
from fixtures.workload.plan import Load
from suites.chaos.scenarios import SCENARIOS, chosen
from tools import contained

CONTAINER = "container:apache/kafka:4.4.0"

# --- names and variables -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "image", "version"),
    [
        (CONTAINER, "apache/kafka:4.4.0", "4.4.0"),
        ("container:", "apache/kafka:4.4.0", "4.4.0"),
        ("container:localhost:5000/ours:4.2.1-b3", "localhost:5000/ours:4.2.1-b3", "4.2.1"),
    ],
)
def test_a_tag_tells_the_release(name: str, image: str, version: str) -> None:
    assert parse_target(name) == ContainerName(image=image, version=version)


def test_images_without_a_release_and_files_of_this_machine_are_refused() -> None:
    for name in ("container:apache/kafka", "container:apache/kafka:latest"):
        with pytest.raises(UsageFault, match="give a tag with the release"):
            parse_target(name)
    jvm = TargetOptions(jvm=("-javaagent:x.jar",))
    for options in (jvm, TargetOptions(listeners={"SECURE": "SASL_SSL"})):
        with pytest.raises(UsageFault, match="no files of this machine"):
            open_target(CONTAINER, options)


@pytest.mark.parametrize(
    "key", [*cluster_properties("4.4.0", TargetOptions(brokers=3)), "a.b-c_d.e"]
)
def test_variables_become_properties_again(key: str) -> None:
    name = target.variable(key).removeprefix("KAFKA_").lower()
    assert name.replace("_", ".").replace("...", "-").replace("..", "_") == key


def test_brokers_find_each_other_by_name() -> None:
    variables = target.environment(
        2,
        3,
        listeners=target.ports(("DIRECT",)),
        advertised={"CLIENT": Address(host="127.0.0.1", port=12345)},
        properties={"min.insync.replicas": "2"},
        cluster_id="id",
    )

    voters = variables["KAFKA_CONTROLLER_QUORUM_VOTERS"]
    assert voters == "1@broker-1:9093,2@broker-2:9093,3@broker-3:9093"
    assert variables["KAFKA_NODE_ID"] == "2"
    assert variables["KAFKA_ADVERTISED_LISTENERS"] == "CLIENT://127.0.0.1:12345"
    assert "DIRECT://:9095" in variables["KAFKA_LISTENERS"]
    assert variables["KAFKA_MIN_INSYNC_REPLICAS"] == "2"


# --- what fits containers ----------------------------------------------------------------------


def test_which_proxies_stand_before_containers() -> None:
    assert usual_proxies(CONTAINER, ("kill-leader",)) == TOXIPROXY
    assert usual_proxies(CONTAINER, ("kill-leader", "lose-responses")) == OURS
    assert usual_proxies("kafka:4.4.0", ("kill-leader",)) == OURS
    asked = ChaosTest(
        target=f"altered:honest@{CONTAINER}",
        schedule=Schedule(seed=1, seconds=5),
        load=Load(seconds=5),
        proxies=TOXIPROXY,
    )
    with pytest.raises(UsageFault, match="give --proxies ours"):
        check(asked)


def test_all_scenarios_are_those_that_fit() -> None:
    inside = {one.name for one in chosen(["all"], CONTAINER)}
    outside = {one.name for one in chosen(["all"])}
    assert {name for name in SCENARIOS if "unplugged" in name} == inside - outside
    assert {"leader-out-of-space", "clocks-of-brokers"} <= outside - inside
    assert inside | outside == {name for name, one in SCENARIOS.items() if not one.release}


def test_no_engine_is_said_and_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contained, "answers", lambda: "")
    assert contained.main([]) == 0
    said = capsys.readouterr().out
    assert said.startswith("NOT RUN, and therefore not passed")
    assert "Missing: a container engine" in said
