"""Clusters of a check's own: of the release under test, and free to be configured and broken."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from fixtures.interface.capability import Capability, why_not
from fixtures.interface.target import DEFAULTS
from fixtures.targets import Target, TargetOptions, open_target
from fixtures.wire.connection import CallFailed
from spec.verdict import EnvironmentFault, OutOfReach, Undecided
from suites.options import RunOptions


def require(options: RunOptions, *needs: Capability) -> None:
    if reason := why_not(needs, options.offers):
        raise OutOfReach(reason)


@contextlib.contextmanager
def own_cluster(
    options: RunOptions, wanted: TargetOptions = DEFAULTS, *, files: bool = False
) -> Iterator[Target]:
    """Run a cluster of the same release that its user may configure, break and mend.

    ``files``: brokers and checks have to see the same files. OutOfReach if the target is somebody
    else's, or in containers with files of their own; Undecided if a broker ended by itself, which
    is why a request got no response.
    """
    shared = [Capability.LOCAL_FILES] if files or wanted.jvm else []
    require(options, Capability.OWN_CLUSTER, *shared)
    own = replace(
        wanted,
        properties={**options.broker_properties, **wanted.properties},
        jvm=(*options.broker_jvm, *wanted.jvm),
    )
    target = open_target(options.target, own)
    try:
        target.start()
        yield target
    except CallFailed as lost:
        try:
            for broker in getattr(target, "brokers", ()):
                if (broker.exit_code or 0) > 0:
                    broker.check_alive()
        except EnvironmentFault as death:
            raise Undecided(f"{lost}: {death}") from lost
        raise
    finally:
        target.stop()
