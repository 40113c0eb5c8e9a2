"""The Java compiler of the golden tests, fetched once like the jars of a release."""

from __future__ import annotations

from pathlib import Path

from fixtures.targets.cache import cache_root, locked
from fixtures.targets.maven import is_complete, store

_VERSION = "3.41.0"
"""The last one but two that runs on Java 17."""


def compiler_jar() -> Path:
    """Return Eclipse's compiler as a jar that runs by itself.

    Raises:
        EnvironmentFault: it has to be fetched, and cannot be.
    """
    home = cache_root() / f"ecj-{_VERSION}"
    if not is_complete(home):
        with locked("maven"):
            store(home, [_fetched()])
    return home / "jars" / f"ecj-{_VERSION}.jar"


def _fetched() -> Path:
    # jgo takes a quarter of a second to import, which a start from the cache need not pay.
    from fixtures.targets import registry  # noqa: PLC0415

    return registry.artifact(f"org.eclipse.jdt:ecj:{_VERSION}")
