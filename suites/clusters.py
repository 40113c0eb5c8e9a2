"""Clusters of a check's own: of the release under test, and free to be configured and broken."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from fixtures.interface.capability import Capability, why_not
from fixtures.targets import Target, open_target
from fixtures.targets.config import Advertise
from spec.verdict import OutOfReach
from suites.options import RunOptions


def require(options: RunOptions, *needs: Capability) -> None:
    """Look whether the target under test offers what a check needs.

    Raises:
        OutOfReach: it does not; the sentence says what is missing.
    """
    if reason := why_not(needs, options.offers):
        raise OutOfReach(reason)


@contextlib.contextmanager
def own_cluster(
    options: RunOptions,
    *,
    brokers: int = 1,
    properties: Mapping[str, str] | None = None,
    listeners: Mapping[str, str] | None = None,
    jvm: Sequence[str] = (),
    files: bool = False,
    fronts: Advertise | None = None,
) -> Iterator[Target]:
    """Run a cluster of the same release that its user may configure, break and mend.

    Args:
        options: the run's choices, which name the release.
        brokers: 1 or 3.
        properties: broker properties that win over ours.
        listeners: name and security protocol of each further listener.
        jvm: JVM options, such as an agent's.
        files: whether brokers and checks have to see the same files.
        fronts: gives what brokers advertise instead of their own addresses.

    Raises:
        OutOfReach: the target under test is somebody else's cluster, or in containers with files
            of their own.
        EnvironmentFault: it did not start.
    """
    require(options, Capability.OWN_CLUSTER, *([Capability.LOCAL_FILES] if files or jvm else []))
    target = open_target(
        options.target,
        brokers=brokers,
        properties=dict(properties or {}),
        listeners=listeners,
        jvm=jvm,
        fronts=fronts,
    )
    try:
        target.start()
        yield target
    finally:
        target.stop()
