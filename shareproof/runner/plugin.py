"""The pytest plugin: runs checks against one cluster and turns their outcomes into verdicts.

Works with and without pytest-xdist. The controller owns the target, the seed and the reports;
workers run the checks and send what they observed home inside their test reports. Only tests that
name a rule carry verdicts. All other tests are plain pytest and start no cluster of their
own accord.
"""

import json
import random
import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

import spec.rule
from fixtures.clients.cluster import Cluster
from fixtures.clients.features import ADMINISTRATION, PROBES, no_administration
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import FakeName, innermost
from fixtures.targets import TargetOptions
from fixtures.wire.frame import Transcript
from shareproof.runner import outcome, session
from shareproof.runner.checks import (
    JUDGE,
    TRANSCRIPTS,
    conclude,
    features_of,
    keep,
    lacking,
    rules_of,
)
from shareproof.runner.limits import limit_time, open_stacks, uncollected, watched
from shareproof.runner.options import add_options
from shareproof.runner.recorder import PRESENT
from shareproof.runner.scheduler import wait
from shareproof.runner.session import Controller
from spec.plain import from_plain
from spec.rule import AREAS
from suites import clusters
from suites.canary import is_canary
from suites.judge import REFUSED, Judge, Vacuous
from suites.options import RunOptions, named_ledger

OPTIONS = pytest.StashKey[RunOptions]()
RENDEZVOUS = pytest.StashKey[session.Rendezvous]()
INFO = pytest.StashKey[ClusterInfo]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    home = getattr(config, "workerinput", {}).get("shareproof")
    if home:
        config.stash[OPTIONS] = from_plain(RunOptions, json.loads(home["options"]))
        config.stash[RENDEZVOUS] = session.Rendezvous(Path(home["rendezvous"]))
        if chosen := home["chosen"]:
            config.stash[outcome.CHOSEN] = frozenset(chosen)
        open_stacks(config)
    else:
        controller = Controller(config)
        config.pluginmanager.register(controller, "shareproof-controller")
        config.stash[OPTIONS] = controller.options
        config.stash[RENDEZVOUS] = controller.owner.rendezvous
    options = config.stash[OPTIONS]
    if options.out:
        config.option.allure_report_dir = f"{options.out}/allure-results"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    options = config.stash[OPTIONS]
    if not options.only or not collection_path.match("test_*.py"):
        return None
    named = re.findall(r'"([A-Z]{3}-\d{2,})"', collection_path.read_text(encoding="utf-8"))
    return True if named and not any(map(options.wants, named)) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    options = config.stash[OPTIONS]
    known = spec.rule.load_rules()
    chosen = config.stash.get(outcome.CHOSEN, None)
    kept = [
        item
        for item in items
        if keep(item, options, known) and (not chosen or item.nodeid in chosen)
    ]
    if (len(kept) < len(items) or options.only) and not chosen and all(map(is_canary, kept)):
        kept = []  # a canary alone has nothing to vouch for
    if len(kept) < len(items):
        gone = set(map(id, kept))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in gone])
    items[:] = sorted(kept, key=lambda item: wait(item.nodeid))
    named = innermost(options.target)
    name = options.ledger or (named.fake if isinstance(named, FakeName) else "")
    absences = named_ledger(name).absences(options.version) if name else {}
    # Every check of a ledger may need a look; only fakes have such a ledger unasked, and whoever
    # brings a ledger may.
    broad = {feature: entry for feature, entry in absences.items() if entry.rules}
    for item in items:
        if rules_of(item):
            limit_time(item)
            if (features_of(item) or lacking(item, broad)) and isinstance(item, pytest.Function):
                item.fixturenames.insert(0, "refusal_of_absent_features")
            for rule in rules_of(item):
                area = f"{rule[:3]} {AREAS.get(rule[:3], '')}"
                item.add_marker(pytest.mark.allure_label(area, label_type="feature"))
                item.add_marker(pytest.mark.allure_label(rule, label_type="story"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def run_options(pytestconfig: pytest.Config) -> RunOptions:
    return pytestconfig.stash[OPTIONS]


@pytest.fixture(scope="session")
def cluster_info(pytestconfig: pytest.Config) -> ClusterInfo:
    pytestconfig.stash[INFO] = pytestconfig.stash[RENDEZVOUS].wait()
    return pytestconfig.stash[INFO]


@pytest.fixture
def solo_info(request: pytest.FixtureRequest, run_options: RunOptions) -> Iterator[ClusterInfo]:
    properties = {
        key: str(value)
        for mark in request.node.iter_markers("solo")
        for given in (*mark.args, mark.kwargs)
        for key, value in given.items()
    }
    brokers = int(properties.pop("brokers", "1"))
    wanted = TargetOptions(properties=properties, brokers=brokers, steady=brokers > 3)
    with clusters.own_cluster(run_options, wanted) as target:
        yield target.info


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    judge = Judge(rules_of(request.node))
    request.node.stash[JUDGE] = judge
    return judge


@pytest.fixture
def rng(request: pytest.FixtureRequest, run_options: RunOptions) -> random.Random:
    """Random choices of this check alone: the same for the same seed, in any order of checks.

    The second try has its own: names are drawn too, and it must not meet what the first one left.
    """
    again = " again" if outcome.CHOSEN in request.config.stash else ""
    return random.Random(f"{run_options.seed} {request.node.nodeid}{again}")


@pytest.fixture
def transcripts(request: pytest.FixtureRequest) -> list[Transcript]:
    kept: list[Transcript] = []
    request.node.stash[TRANSCRIPTS] = kept
    return kept


@pytest.fixture
async def refusal_of_absent_features(
    request: pytest.FixtureRequest, cluster_info: ClusterInfo, run_options: RunOptions
) -> None:
    """Skip a check only if the ledger declares its feature absent and the target refuses it."""
    ledger = named_ledger(run_options.ledger or cluster_info.ledger)
    absent = ledger.absences(run_options.expect_version or cluster_info.version)
    for name in lacking(request.node, absent):
        if sentence := await refusal(cluster_info, absent[name].probe):
            request.node.stash[REFUSED] = f"{absent[name].reason}; seen refusing: {sentence}"
            pytest.skip(sentence)
        request.node.user_properties.append((PRESENT, name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with watched(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with watched(item):
        result = yield
    if rules := rules_of(item):
        judge = item.stash.get(JUDGE, None)
        silent = judge.unexercised() if judge else rules
        if silent:
            raise Vacuous(f"never put to the test: {', '.join(silent)}")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    with watched(item):
        return (yield)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item) -> bool | None:
    """Keep pytest-timeout, where it is installed, away from checks: they have limits of ours."""
    return True if rules_of(item) else None


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    with uncollected():
        report = yield
    if rules_of(item):
        config = item.config
        info = config.stash.get(INFO, None)
        conclude(item, call, report, options=config.stash[OPTIONS], info=info)
    return report


async def refusal(info: ClusterInfo, probe: str) -> str | None:
    if probe == ADMINISTRATION:
        return await no_administration(info)
    if probe not in PROBES:
        raise LookupError(f"the ledger names the probe {probe!r}, which does not exist")
    async with Cluster(info) as cluster:
        await cluster.any()
        return await PROBES[probe](cluster)
