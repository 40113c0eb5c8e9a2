"""What targets offer, what faults and checks need, and the sentence that says what is missing."""

from __future__ import annotations

import pytest

from chaos.faults import FAULTS
from chaos.fitting import ON_REQUEST, TOXIPROXY, fitting, offered
from fixtures.interface.capability import Capability, unmet, why_not
from fixtures.interface.names import innermost
from fixtures.targets import DEFAULT_TARGET, UsageFault
from fixtures.targets.hooks import Hooks
from spec.verdict import OutOfReach
from suites.clusters import require
from suites.options import RunOptions

CONTAINER, EXTERNAL = "container:apache/kafka:4.4.0", "external:localhost:9092"
HOOKS = Hooks(commands=dict.fromkeys(("kill", "stop", "start", "pause", "resume"), "true"))


def names(target: str, *, brokers: int = 3, hooks: Hooks | None = None) -> set[str]:
    """Return the faults that are drawn on a target unasked."""
    return {each.name for each in fitting((), offered(target, brokers=brokers, hooks=hooks))}


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the machine what moves clocks, whether it has a compiler or not."""
    monkeypatch.setattr("chaos.fitting.lacking_for_clocks", lambda: "")


def test_every_fault_fits_somewhere() -> None:
    offers = frozenset().union(*(offered(t) for t in ("kafka:4.1.2", CONTAINER)))
    for fault in FAULTS.values():
        assert any(fault.needs <= offered(t) for t in ("kafka:4.1.2", CONTAINER)), fault.name
        assert fault.needs <= offers


def test_what_is_drawn_unasked() -> None:
    here, inside = names(DEFAULT_TARGET), names(CONTAINER)
    asked_for = {each.name for each in FAULTS.values() if each.needs & ON_REQUEST}
    assert asked_for == {"compact", "rolling-upgrade"}
    assert not (here | inside) & asked_for
    assert set(FAULTS) == here | inside | asked_for
    guest = names(EXTERNAL, hooks=HOOKS)
    assert {"kill-leader", "elect-leader", "pause-consumers", "delete-records"} <= guest
    assert not {"cut-client-link", "fill-leader", "disconnect-leader", "shift-leader"} & guest
    assert not any(FAULTS[name].exclusive for name in names(DEFAULT_TARGET, brokers=1))


@pytest.mark.parametrize(
    ("fault", "target", "brokers", "proxies", "said"),
    [
        ("kill-leader", DEFAULT_TARGET, 1, "ours", "needs three brokers"),
        ("kill-leader", EXTERNAL, 3, "ours", "needs a hook to kill"),
        ("kill-leader", "reference", 3, "ours", "needs a hook to kill"),
        ("lose-requests", CONTAINER, 3, TOXIPROXY, "give --proxies ours"),
        ("lose-requests", EXTERNAL, 3, "ours", "needs brokers that we start"),
        ("fill-leader", CONTAINER, 3, "ours", "give --target kafka:VERSION"),
        ("shift-leader", CONTAINER, 3, "ours", "give --target kafka:VERSION"),
        ("rolling-upgrade", DEFAULT_TARGET, 3, "ours", "an earlier release"),
        ("make-tea", DEFAULT_TARGET, 3, "ours", "is no fault"),
    ],
)
def test_the_reason_is_said(fault: str, target: str, brokers: int, proxies: str, said: str) -> None:
    with pytest.raises(UsageFault, match=f"{fault}.*{said}"):
        fitting([fault], offered(target, brokers=brokers, proxies=proxies))


@pytest.mark.parametrize(
    ("target", "lacking"),
    [
        (DEFAULT_TARGET, set()),
        (f"altered:honest@{DEFAULT_TARGET}", set()),
        (CONTAINER, {Capability.LOCAL_FILES, Capability.LOCAL_PROCESS}),
        ("reference", {Capability.JVM, Capability.PROXIED, Capability.LOCAL_PROCESS}),
        ("kfake", {Capability.JVM, Capability.PROXIED, Capability.LOCAL_PROCESS}),
    ],
)
def test_what_checks_may_ask_for(target: str, lacking: set[Capability]) -> None:
    for need in (
        Capability.OWN_CLUSTER,
        Capability.LOCAL_FILES,
        Capability.JVM,
        Capability.PROXIED,
        Capability.LOCAL_PROCESS,
    ):
        if need in lacking:
            with pytest.raises(OutOfReach, match=r"^needs "):
                require(RunOptions(target=target), need)
        else:
            require(RunOptions(target=target), need)
        with pytest.raises(OutOfReach, match=r"^needs a cluster of its own"):
            require(RunOptions(target=EXTERNAL), need, Capability.OWN_CLUSTER)


def test_one_comparison() -> None:
    assert why_not({Capability.JVM}, {Capability.JVM}) == ""
    needs = {Capability.KILL, Capability.OWN_CLUSTER}
    assert why_not(needs, innermost(EXTERNAL).offers) == f"needs {Capability.OWN_CLUSTER}"
    assert unmet(["a|b", "c", "d|e"], {"b", "c"}) == ["d|e"]
