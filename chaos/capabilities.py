"""Which faults can be injected where: what a run on a target offers, against what faults need."""

from collections.abc import Collection, Iterable

from chaos.faults import FAULTS, Fault
from fixtures.clocks import lacking as lacking_for_clocks
from fixtures.interface.capability import Capability, why_not
from fixtures.interface.names import ContainerName, innermost, no_such, parse_target
from fixtures.targets import UsageFault
from fixtures.targets.hooks import Hooks
from spec.releases import newest, numbers

OURS, TOXIPROXY = "ours", "toxiproxy"  # The proxies that may stand in front of brokers.

ON_REQUEST = frozenset({Capability.COMPACTED_TOPIC, Capability.EARLIER_RELEASE})
"""What a run has only where somebody names a fault that needs it."""


def usual_proxies(target: str, faults: Iterable[str]) -> str:
    """Return which proxies stand in front of a target's brokers by default.

    Containers have Toxiproxy, as one more of them, unless a fault is about single frames.
    """
    decoding = any(
        Capability.DECODING_PROXY in FAULTS[name].needs for name in faults if name in FAULTS
    )
    plain = isinstance(parse_target(target), ContainerName)
    return TOXIPROXY if plain and not decoding else OURS


def offered(
    target: str,
    *,
    brokers: int = 3,
    proxies: str = OURS,
    hooks: Hooks | None = None,
    on_hosts: bool = False,
) -> frozenset[Capability]:
    """Return what a chaos run on a target offers to faults; raises UsageFault."""
    if proxies not in {OURS, TOXIPROXY}:
        raise UsageFault(f"--proxies {proxies}: give {OURS} or {TOXIPROXY}.")
    name = innermost(target)
    found = {*name.offers, Capability.COMPACTED_TOPIC, Capability.SPARE_PARTITION}
    if brokers >= 3:
        found |= {Capability.REPLICAS, Capability.SPARE_BROKER}
    if proxies == OURS:
        found.add(Capability.DECODING_PROXY)
    if not on_hosts:
        found.add(Capability.LOAD_PROCESS)
    if not lacking_for_clocks():
        found.add(Capability.CLOCK_LIBRARY)
    if name.version and numbers(name.version) < newest().numbers:
        found.add(Capability.EARLIER_RELEASE)
    return frozenset(found | (hooks.offers if hooks else set()))


def playable(names: Collection[str], offers: Collection[Capability]) -> list[Fault]:
    """Return the faults of these names, or all that can be played unasked; raises UsageFault."""
    if not names:
        plain = frozenset(offers) - ON_REQUEST
        return [fault for fault in FAULTS.values() if fault.needs <= plain]
    for name in names:
        if name not in FAULTS:
            raise no_such(name, "fault", FAULTS, "shareproof chaos --list-faults")
        if reason := why_not(FAULTS[name].needs, offers):
            raise UsageFault(f"{name} {reason}.")
    return [FAULTS[name] for name in names]


def needed(faults: Iterable[str]) -> list[Capability]:
    """Return all that the faults of a schedule need, as often as they need it."""
    return [each for name in faults if name in FAULTS for each in FAULTS[name].needs]
