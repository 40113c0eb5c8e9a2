"""Fixtures for the tests of your own application: ``pytest -p shareproof.testing``.

``share_cluster``   a cluster, and queues in it: topics that a share group reads
``hostile_broker``  the same on our reference broker, with scripts that change what it responds
``chaos``           leaders that move, brokers that freeze, responses that get lost

Nothing is registered unless asked for by ``-p``, or by ``pytest_plugins`` in your conftest.py. See
docs/tutorials/test-your-application.md.
"""

from collections.abc import Iterator

import pytest

from fixtures.interface.info import ClusterInfo
from fixtures.targets import DEFAULT_TARGET, TargetOptions, UsageFault, open_target
from fixtures.targets.arguments import resolve_target
from shareproof import ROOT
from spec.verdict import EnvironmentFault, OutOfReach
from suites.app.share_cluster import Chaos, ShareCluster

# What we import at the top level, and a project must not have there.
_PACKAGES = ("chaos", "fixtures", "reports", "spec", "suites")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shareproof")
    group.addoption(
        "--share-target",
        default=DEFAULT_TARGET,
        metavar="TARGET",
        help="what share_cluster is: kafka:VERSION, container:IMAGE, external:HOST:PORT or "
        f"reference, which needs a second to start (default: {DEFAULT_TARGET})",
    )


def pytest_configure(config: pytest.Config) -> None:
    root = config.rootpath
    if root == ROOT or ROOT.is_relative_to(root):
        return
    if taken := [name for name in _PACKAGES if (root / name / "__init__.py").exists()]:
        names = ", ".join(taken)
        raise pytest.UsageError(f"shareproof.testing imports packages called {names}, as you do.")


def _running(target: str) -> Iterator[ClusterInfo]:
    brokers = 1 if target.startswith("external") else 3
    try:
        made = open_target(resolve_target(target), TargetOptions(brokers=brokers))
        made.start()
    except (UsageFault, EnvironmentFault, OutOfReach) as fault:
        pytest.fail(str(fault), pytrace=False)
    try:
        yield made.info
    finally:
        made.stop()


@pytest.fixture(scope="session")
def share_target(pytestconfig: pytest.Config) -> Iterator[ClusterInfo]:
    """The cluster of ``--share-target``, started once."""
    yield from _running(pytestconfig.getoption("--share-target"))


@pytest.fixture(scope="session")
def hostile_target() -> Iterator[ClusterInfo]:
    """A reference broker of three nodes, started once."""
    yield from _running("reference")


@pytest.fixture
def share_cluster(share_target: ClusterInfo) -> Iterator[ShareCluster]:
    """A cluster in which each test has topics and groups of its own."""
    with ShareCluster(share_target) as cluster:
        yield cluster


@pytest.fixture
def hostile_broker(hostile_target: ClusterInfo) -> Iterator[ShareCluster]:
    """A cluster that responds what a script says; see docs/hostile-broker.md."""
    with ShareCluster(hostile_target) as cluster:
        yield cluster


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> Chaos:
    """What breaks around the clients of the test's cluster."""
    hostile = "hostile_broker" in request.fixturenames
    return Chaos(request.getfixturevalue("hostile_broker" if hostile else "share_cluster"))
