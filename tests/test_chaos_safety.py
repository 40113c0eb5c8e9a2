"""What chaos refuses to break, and that what it may break it can heal."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from chaos.faults import FAULTS
from chaos.fitting import fitting, offered
from chaos.run import Chaos, check, usual_load
from chaos.schedule import Schedule, Strike
from fixtures.targets import UsageFault
from fixtures.targets.hooks import HookedBroker, Hooks
from spec.verdict import EnvironmentFault, OutOfReach

SOMEBODYS = "external:localhost:9092"
FULL = Hooks(commands=dict.fromkeys(("kill", "stop", "start", "pause", "resume"), "true"))


def _asked(fault: str, *, allowed: bool = False, hooks: Hooks | None = None) -> Chaos:
    strikes = (Strike(fault=fault, at=1, lasts=1),) if fault else ()
    schedule = Schedule(seed=1, seconds=10, strikes=strikes)
    return Chaos(
        target=SOMEBODYS,
        schedule=schedule,
        load=usual_load(schedule, 100),
        allowed=allowed,
        hooks=hooks,
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("allowed", "hooks"), [(False, None), (True, None), (False, FULL)])
def test_nothing_of_others_is_broken(fault: str, allowed: bool, hooks: Hooks | None) -> None:
    with pytest.raises(UsageFault, match="not ours"):
        check(_asked(fault, allowed=allowed, hooks=hooks))


def test_control_runs_need_no_leave() -> None:
    check(_asked(""))


def test_a_fault_needs_its_hooks() -> None:
    check(_asked("kill-leader", allowed=True, hooks=FULL))
    few = Hooks(commands={"start": "true"})
    with pytest.raises(UsageFault, match="a hook to kill"):
        check(_asked("kill-leader", allowed=True, hooks=few))
    with pytest.raises(UsageFault, match="brokers that we start"):
        check(_asked("cut-client-link", allowed=True, hooks=FULL))
    assert fitting(["elect-leader"], offered(SOMEBODYS, hooks=few)) == [FAULTS["elect-leader"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kill = 'true'", "healed without start"),
        ("start = 'run {nod}'", "start: .node., .host. and .port. are replaced, and nothing else"),
        ("start = 'run {'", "start: .*braces that stay are doubled"),
        ("""start = 'run "'""", "start: no closing quotation"),
        ("pause = 'true'", "healed without resume"),
        ("explode = 'true'", "none of"),
        ("start = 1", "start: a command is needed, in quotes"),
        ("start = ", "hooks"),
    ],
)
def test_bad_hooks_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "hooks.toml"
    file.write_text(text)
    with pytest.raises(UsageFault, match=said):
        Hooks.read(file)


def test_hooks_are_run_as_they_are_given(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = {
        verb: f"sh -c 'echo {verb} {{node}} {{host}}:{{port}} >> {log}'"
        for verb in ("kill", "start")
    }
    broker = HookedBroker(node_id=7, host="far", port=1, hooks=Hooks(commands=commands))
    broker.start()
    broker.kill()
    assert not broker.is_alive
    broker.start()
    assert log.read_text().splitlines() == ["kill 7 far:1", "start 7 far:1"]


def test_a_hook_is_over_when_it_had_its_effect() -> None:
    seen = [True, True, False, False, True]
    broker = HookedBroker(node_id=1, host="h", port=1, hooks=FULL, serves=partial(seen.pop, 0))
    broker.kill()
    assert seen == [False, True]
    broker.start()
    assert seen == []


def test_failing_hooks_are_faults() -> None:
    broker = HookedBroker(node_id=7, host="far", port=1, hooks=Hooks(commands={"kill": "false"}))
    with pytest.raises(EnvironmentFault, match="kill of broker 7"):
        broker.kill()
    with pytest.raises(OutOfReach, match="needs a hook to pause"):
        broker.pause()
