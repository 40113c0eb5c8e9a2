"""The simple assignor: who reads which partition (KIP-932 §The SimpleAssignor).

What is promised is little: every partition of a topic has a reader among those who subscribe to it,
and every subscriber has a partition. Dealing partitions and members out in turn, until both have
been through, does that with loads that differ by one at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spec.model.sessions import Place


def assign(
    wishes: Mapping[str, Sequence[str]], topics: Mapping[str, Sequence[Place]]
) -> dict[str, frozenset[Place]]:
    """Return each member's partitions.

    Args:
        wishes: the topic names that each member subscribes to.
        topics: the partitions of each topic that exists.
    """
    assigned: dict[str, set[Place]] = {member: set() for member in wishes}
    for name, places in topics.items():
        readers = sorted(member for member, names in wishes.items() if name in names)
        if not readers:
            continue
        for turn in range(max(len(readers), len(places)) if places else 0):
            assigned[readers[turn % len(readers)]].add(places[turn % len(places)])
    return {member: frozenset(places) for member, places in assigned.items()}
