"""Real Kafka with an authorizer: users who may do little, a second principal, and cleaning up."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fixtures.clients.acls import THE_CLUSTER, Acls, Entry, Operation, Resource
from fixtures.clients.cluster import Cluster
from fixtures.clients.users import BYTE_RATE, create_user, set_quotas
from fixtures.interface.target import TargetOptions
from fixtures.machine.loops import run_blocking
from fixtures.targets.leftovers import CONFIGURATIONS, KINDS
from fixtures.wire.security import Security
from tests.authorizer import PASSWORD, PREFIX, SECOND, Refusing, refusing
from tests.shell import SHORT_SESSIONS, clean, judged, kill_a_run, left, shareproof

RULES = "ACK-07,DLQ-01,OFF-19,CFG-27"
KILLED = "sp-0badc0de-"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusing]:
    options = TargetOptions(properties=SHORT_SESSIONS)
    with refusing(tmp_path_factory.mktemp("refusing"), options) as running:
        yield running


def _as(cluster: Refusing, user: str) -> tuple[str, ...]:
    return ("--target", "external", "--command-config", str(cluster.files[user]))


WORDS = {
    "team": ("--prefix", PREFIX),
    "application": ("--prefix", PREFIX, "--topics", f"{PREFIX}given-*"),
}
LEFT = {"no-admin": {"topics"}, "application": {"groups"}}
"""What users leave behind who may not delete it."""


@pytest.mark.parametrize(
    ("user", "held"),
    [
        ("everything", {"ACK-07", "DLQ-01", "OFF-19", "CFG-27"}),
        ("no-group-configs", {"ACK-07"}),
        ("no-describe-configs", {"ACK-07", "OFF-19"}),
        ("no-admin", {"ACK-07"}),
        ("no-topics", set()),
        ("team", {"ACK-07", "OFF-19"}),
        ("application", {"ACK-07"}),
        ("nobody", set()),
    ],
)
def test_users_who_may_do_little(
    cluster: Refusing, tmp_path: Path, user: str, held: set[str]
) -> None:
    cluster.create_topics(f"{PREFIX}given-{user}-", 4)
    words = WORDS.get(user, ())
    words = (*_as(cluster, user), "--only", RULES, "--workers", "0", *words)
    done, found = judged(tmp_path / "out", *words)
    there = left(cluster.target.info, LEFT.get(user, set()))

    assert done.returncode == 0, done.stdout + done.stderr
    assert {verdict for verdict, _ in found.values()} <= {"pass", "out of reach"}, done.stdout
    assert {rule for rule, (verdict, _) in found.items() if verdict == "pass"} >= held, done.stdout
    assert PASSWORD not in done.stdout + done.stderr
    assert there.keys() <= LEFT.get(user, set()), there
    if there:
        assert shareproof("clean", *_as(cluster, "everything")).returncode == 0
        assert left(cluster.target.info, set()) == {}


@pytest.mark.parametrize(
    ("second", "rules", "beyond", "why"),
    [
        (SECOND, "SEC-01,SEC-06,SEC-16,SEC-27", {"SEC-27"}, ""),
        ("nobody", "SEC-01,SEC-06,SEC-16,SEC-27", {"SEC-06", "SEC-27"}, ""),
        ("everything", "SEC-01", {"SEC-01"}, "may do what nobody allowed it"),
    ],
)
def test_a_second_principal(
    cluster: Refusing, tmp_path: Path, *, second: str, rules: str, beyond: set[str], why: str
) -> None:
    where = f"external:{','.join(cluster.target.info.bootstrap)}"
    config = ("--second-config", str(cluster.files[second]), "--workers", "0")
    done, found = judged(tmp_path / "out", "--target", where, *config, "--only", rules)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {rule: "out of reach" if rule in beyond else "pass" for rule in rules.split(",")}
    assert {rule: verdict for rule, (verdict, _) in found.items()} == expected, done.stdout
    assert why in done.stdout
    assert left(cluster.target.info, set()) == {}


async def _make_all_kinds(cluster: Refusing) -> None:
    info, name = cluster.target.info, f"{KILLED}u-1"
    entrance = info.at("USERS", Security(protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256"))
    async with Cluster(info, rng=Random(0)) as client:
        await create_user(client, name, "SCRAM-SHA-256", entrance=entrance)
        await set_quotas(client, name, {BYTE_RATE: 1000.0})
        await Acls(client).create(
            Entry(
                user=name, operation=Operation.DESCRIBE, resource=Resource.CLUSTER, name=THE_CLUSTER
            )
        )


def test_a_killed_run_is_cleaned_up(cluster: Refusing, tmp_path: Path) -> None:
    config, info = _as(cluster, "everything"), cluster.target.info
    run_blocking(_make_all_kinds(cluster))
    deadline = kill_a_run(info, tmp_path / "out", set(KINDS), *config)
    shown = shareproof("clean", *config, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert f"{THE_CLUSTER} of User:{KILLED}u-1" in shown.stdout
    clean(deadline, *config)
    assert left(info, set()) == {}
    assert "nothing is left behind" in shareproof("clean", *config).stdout


def test_who_owns_a_prefix_cleans_up_a_killed_run(cluster: Refusing, tmp_path: Path) -> None:
    config, kinds = _as(cluster, "team"), {"groups", "topics", CONFIGURATIONS}
    info = cluster.target.info
    clean(kill_a_run(info, tmp_path / "out", kinds, *config, "--prefix", PREFIX), *config)
    assert left(info, set()) == {}
