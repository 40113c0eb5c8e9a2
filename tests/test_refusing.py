"""Real Kafka with an authorizer: users who may do little, a second principal, and cleaning up."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fixtures.clients.acls import THE_CLUSTER, Acls, Entry, Operation, Resource
from fixtures.clients.cluster import Cluster, attempts
from fixtures.clients.users import BYTE_RATE, create_user, set_quotas
from fixtures.targets.blocking import run_blocking
from fixtures.targets.leftovers import ANY_RUN, CONFIGURATIONS, KINDS, Found, find
from fixtures.wire.security import Security
from tests.fake import ROOT
from tests.refusing import PASSWORD, PREFIX, SECOND, Refusing, refusing
from tests.shell import shareproof

RULES = "ACK-07,DLQ-01,OFF-19,CFG-27"
KILLED = "sp-0badc0de-"
SHOWN = 10.0  # seconds within which a broker shows what was removed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusing]:
    with refusing(tmp_path_factory.mktemp("refusing")) as running:
        yield running


def _run(out: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    done = shareproof("broker", *words, "--seed", "1", "--workers", "0", "--out", str(out))
    assert (out / "results.json").exists(), done.stdout + done.stderr
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return done, {rule["id"]: rule["verdict"] for rule in document["requirements"]}


def _as(cluster: Refusing, user: str) -> tuple[str, ...]:
    return ("--target", "external", "--command-config", str(cluster.files[user]))


async def _find(cluster: Refusing) -> Found:
    async with Cluster(cluster.target.info, rng=Random(0)) as seen:
        return (await find(seen, ANY_RUN))[0]


def _left(cluster: Refusing, may: set[str] | None = None) -> Found:
    """Return what runs left behind, in the eyes of one who sees everything.

    A broker shows a moment later what the controller has removed: so it is asked again for some
    seconds when there is more than there ``may`` be.
    """

    async def look() -> Found:
        async for _ in attempts(SHOWN):
            left = await _find(cluster)
            if may is None or left.keys() <= may:
                break
        return left

    return run_blocking(look())


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
    done, found = _run(tmp_path / "out", *_as(cluster, user), "--only", RULES, *words)
    left = _left(cluster, LEFT.get(user, set()))

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(found.values()) <= {"pass", "out of reach"}, done.stdout
    assert {rule for rule, verdict in found.items() if verdict == "pass"} >= held, done.stdout
    assert PASSWORD not in done.stdout + done.stderr
    assert left.keys() <= LEFT.get(user, set()), left
    if left:
        assert shareproof("clean", *_as(cluster, "everything")).returncode == 0
        assert _left(cluster, set()) == {}


@pytest.mark.parametrize(
    ("second", "beyond"), [(SECOND, {"SEC-27"}), ("nobody", {"SEC-06", "SEC-27"})]
)
def test_a_second_principal(
    cluster: Refusing, tmp_path: Path, second: str, beyond: set[str]
) -> None:
    where = f"external:{','.join(cluster.target.info.bootstrap)}"
    config = ("--second-config", str(cluster.files[second]))
    rules = "SEC-01,SEC-06,SEC-16,SEC-27"
    done, found = _run(tmp_path / "out", "--target", where, *config, "--only", rules)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {rule: "out of reach" if rule in beyond else "pass" for rule in rules.split(",")}
    assert found == expected, done.stdout
    assert _left(cluster, set()) == {}


def test_a_second_principal_that_may_do_everything(cluster: Refusing, tmp_path: Path) -> None:
    where = f"external:{','.join(cluster.target.info.bootstrap)}"
    config = ("--second-config", str(cluster.files["everything"]))
    done, found = _run(tmp_path / "out", "--target", where, *config, "--only", "SEC-01")
    assert (done.returncode, found) == (0, {"SEC-01": "out of reach"}), done.stdout
    assert "may do what nobody allowed it" in done.stdout


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


def _kill_a_run(cluster: Refusing, out: Path, kinds: set[str], *words: str) -> float:
    """Kill a run as soon as it has made all of some kinds; return until when to look further."""
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "shareproof", "broker", *words, "--workers", "0", "--fast"),
            *("--out", str(out)),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not kinds <= (left := _left(cluster)).keys():
        assert running.poll() is None, f"the run ended by itself, and left {left}"
        assert time.monotonic() < deadline, f"the run made {left} only"
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    return deadline + 60


def _clean(deadline: float, *config: str) -> None:
    while (done := shareproof("clean", *config)).returncode or "left alone" in done.stdout:
        assert time.monotonic() < deadline, done.stdout + done.stderr


def test_a_killed_run_is_cleaned_up(cluster: Refusing, tmp_path: Path) -> None:
    config = _as(cluster, "everything")
    run_blocking(_make_all_kinds(cluster))
    deadline = _kill_a_run(cluster, tmp_path / "out", set(KINDS), *config)
    shown = shareproof("clean", *config, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert f"{THE_CLUSTER} of User:{KILLED}u-1" in shown.stdout
    _clean(deadline, *config)
    assert _left(cluster, set()) == {}
    assert "nothing is left behind" in shareproof("clean", *config).stdout


def test_who_owns_a_prefix_cleans_up_a_killed_run(cluster: Refusing, tmp_path: Path) -> None:
    config, kinds = _as(cluster, "team"), {"groups", "topics", CONFIGURATIONS}
    deadline = _kill_a_run(cluster, tmp_path / "out", kinds, *config, "--prefix", PREFIX)
    _clean(deadline, *config)
    assert _left(cluster, set()) == {}
