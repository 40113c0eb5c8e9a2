"""Which faults fit which cluster: how many brokers there are, what they run in, who is in front."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.faults import KINDS, Kind
from chaos.hooks import Hooks
from fixtures.clocks.clocks import lacking as lacking_for_clocks
from fixtures.targets import UsageFault
from fixtures.targets.names import ContainerName, innermost, parse_target

OURS, TOXIPROXY = "ours", "toxiproxy"
"""What may stand in front of brokers."""


def is_contained(target: str) -> bool:
    """Tell whether the brokers of a target run in containers."""
    return isinstance(innermost(target), ContainerName)


def usual_proxies(target: str, faults: Iterable[str]) -> str:
    """Return what stands in front of a target's brokers when nobody says.

    Containers have Toxiproxy, as one more of them, unless a fault is about single frames.
    """
    frames = any(KINDS[name].frames for name in faults if name in KINDS)
    plain = isinstance(parse_target(target), ContainerName)
    return TOXIPROXY if plain and not frames else OURS


def suits(kind: Kind, *, contained: bool) -> bool:
    """Tell whether a kind of fault can befall brokers in containers, or processes of ours."""
    return not (kind.ours or kind.clocks) if contained else not kind.contained


def fitting(
    names: tuple[str, ...], *, brokers: int, proxies: str = OURS, contained: bool = False
) -> list[Kind]:
    """Return the kinds of fault of these names, all that fit the cluster if there are none.

    Raises:
        UsageFault: a name is unknown, or the cluster or its proxies are not up to it.
    """
    if proxies not in {OURS, TOXIPROXY}:
        raise UsageFault(f"--proxies {proxies}: give {OURS} or {TOXIPROXY}.")
    frames = proxies == OURS
    if not names:
        able = (kind for kind in KINDS.values() if frames or not kind.frames)
        fit = (k for k in able if k.brokers <= brokers and k.unasked and not k.keyed)
        found = [kind for kind in fit if not (kind.clocks and lacking_for_clocks())]
        return [kind for kind in found if suits(kind, contained=contained)]
    for name in names:
        if name not in KINDS:
            raise UsageFault(f"{name!r} is no fault; there are {', '.join(KINDS)}.")
        kind = KINDS[name]
        if kind.brokers > brokers:
            raise UsageFault(f"{name} takes {kind.brokers} brokers, not {brokers}.")
        if kind.frames and not frames:
            raise UsageFault(f"{name} is about single frames, of which {proxies} knows nothing.")
        if not suits(kind, contained=contained):
            wanted = "container:IMAGE" if kind.contained else "kafka:VERSION"
            raise UsageFault(f"{name} takes other brokers: give --target {wanted}.")
        if kind.clocks and (lacks := lacking_for_clocks()):
            raise UsageFault(f"{name} needs {lacks}.")
    return [KINDS[name] for name in names]


def lacking(kind: Kind, hooks: Hooks) -> str:
    """Return what a kind of fault lacks on brokers that are not ours, or nothing."""
    if kind.doors or kind.frames or kind.ours or kind.clocks:
        return "brokers that we start"
    missing = [verb for verb in kind.hooks if verb not in hooks.commands]
    return f"a hook to {missing[0]}" if missing else ""
