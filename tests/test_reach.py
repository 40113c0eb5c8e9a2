"""Clusters that refuse things: what can still be asked is judged, and the rest is out of reach."""

from pathlib import Path

import pytest

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import run_blocking
from fixtures.targets.leftovers import CONFIGURATIONS
from tests import shell
from tests.restricted import PREFIX, restricted
from tests.shell import SHORT_SESSIONS, clean, kill_a_run, left, shareproof

KEPT, OWN_GROUP, RECORDS, LEADER, LIMITS = "ACK-07", "DLQ-01", "OFF-19", "ACQ-01", "LCK-12"
JOINED = "MEM-01"


def judged(
    tmp_path: Path, info: ClusterInfo, rules: str, *words: str
) -> tuple[int, dict[str, tuple[str, str]]]:
    where = ("--target", f"external:{','.join(info.bootstrap)}", "--ledger", "reference")
    options = ("--workers", "0", "--only", rules)
    done, found = shell.judged(tmp_path / "out", *where, *options, *words)
    return done.returncode, found


async def _create(info: ClusterInfo, *names: str) -> None:
    async with Cluster(info) as cluster:
        for name in names:
            await Admin(cluster).create_topic(name=name)


async def _topics(info: ClusterInfo) -> list[str]:
    async with Cluster(info) as cluster:
        metadata = await (await cluster.any()).call("Metadata", topics=None)
        return sorted(topic.name for topic in metadata.topics)


@pytest.mark.parametrize(
    ("refused", "rules", "held", "beyond"),
    [
        ("names", KEPT, set(), {KEPT: "CreateTopics is refused: TOPIC_AUTHORIZATION_FAILED"}),
        ("fixed-limits", f"{KEPT},{OWN_GROUP}", {KEPT},
         {OWN_GROUP: "IncrementalAlterConfigs is refused: POLICY_VIOLATION"}),
        ("group-configs quotas", f"{KEPT},{OWN_GROUP}", {KEPT},
         {OWN_GROUP: "IncrementalAlterConfigs is refused: GROUP_AUTHORIZATION_FAILED"}),
        ("broker-configs admin", f"{KEPT},{LIMITS},{RECORDS}", {KEPT},
         {LIMITS: "DescribeConfigs is refused: CLUSTER_AUTHORIZATION_FAILED",
          RECORDS: "the target does not offer DeleteRecords"}),
        ("byte-rate", f"{KEPT},{JOINED}", {JOINED},
         {KEPT: "the target throttles ShareFetch, by a quota"}),
    ],
)  # fmt: skip
def test_what_is_refused_is_out_of_reach(
    tmp_path: Path, refused: str, rules: str, held: set[str], beyond: dict[str, str]
) -> None:
    # What is throttled waits to the end of its patience, in whatever situation.
    words = ("--fast",) if refused == "byte-rate" else ()
    with restricted(*refused.split()) as info:
        code, found = judged(tmp_path, info, rules, *words)
    assert code == 0, found
    assert {verdict for verdict, _ in found.values()} <= {"pass", "out of reach"}
    assert {rule for rule, (verdict, _) in found.items() if verdict == "pass"} >= held
    for rule, reason in beyond.items():
        assert found[rule][0] == "out of reach"
        assert reason in found[rule][1]


@pytest.mark.parametrize(("refused", "words"), [("names", ("--prefix", PREFIX)), ("quotas", ())])
def test_prefixes_are_kept_and_what_a_quota_refuses_at_first_is_removed(
    tmp_path: Path, refused: str, words: tuple[str, ...]
) -> None:
    with restricted(refused) as info:
        assert judged(tmp_path, info, KEPT, *words)[1][KEPT][0] == "pass"
        assert [name for name in run_blocking(_topics(info)) if "sp-" in name] == []


@pytest.mark.parametrize("words", [("load", "--seconds", "1"), ("chaos", "--no-faults",
    "--no-judge", "--minutes", "0.1")])  # fmt: skip
def test_loads_bear_names_that_have_to_begin_with_a_prefix(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with restricted("prefixes") as info:
        where = ("--target", f"external:{','.join(info.bootstrap)}", "--rate", "20")
        refused = shareproof(*words, *where, "--out", str(tmp_path / "refused"))
        done = shareproof(*words, *where, "--prefix", PREFIX, "--out", str(tmp_path / "done"))

        assert refused.returncode == 3, refused.stdout + refused.stderr
        assert "CreateTopics" in refused.stderr
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        assert [name for name in run_blocking(_topics(info)) if "sp-" in name] == []


def test_topics_may_be_given(tmp_path: Path) -> None:
    names = [f"given-{number}" for number in range(4)]
    with restricted("nothing") as open_to_us:
        run_blocking(_create(open_to_us, *names))
        first = judged(tmp_path, open_to_us, f"{KEPT},{RECORDS}", "--topics", "given-*")
        second = judged(tmp_path, open_to_us, KEPT, "--topics", "given-0,given-1")
        there = run_blocking(_topics(open_to_us))

    assert first[0] == second[0] == 0
    assert first[1][KEPT][0] == "pass"
    assert second[1][KEPT][0] == "out of reach"
    assert "no empty topic with 1 partition is left" in second[1][KEPT][1]
    assert set(names) <= set(there)
    assert [name for name in there if "sp-" in name] == []


@pytest.mark.parametrize("brokers", [1, 40])
def test_one_broker_and_forty(tmp_path: Path, brokers: int) -> None:
    with restricted(brokers=brokers) as info:
        code, found = judged(tmp_path, info, f"{KEPT},{LEADER}")
    assert code == 0, found
    assert found[KEPT][0] == "pass"
    assert found[LEADER][0] == ("out of reach" if brokers == 1 else "pass"), found


def test_what_a_killed_run_leaves_is_removed(tmp_path: Path) -> None:
    with restricted(brokers=3, properties=SHORT_SESSIONS) as info:
        run_blocking(_create(info, "somebodys", "sp-nobodys"))
        named = ("--target", f"external:{','.join(info.bootstrap)}")
        kinds = {"groups", "topics", CONFIGURATIONS}
        deadline = kill_a_run(info, tmp_path, kinds, *named)

        shown = shareproof("clean", *named, "--dry-run")
        there = left(info)
        clean(deadline, *named)

        assert shown.returncode == 0, shown.stderr
        assert "found" in shown.stdout or "left alone" in shown.stdout
        assert there
        assert left(info) == {}
        assert run_blocking(_topics(info)) == ["__share_group_state", "somebodys", "sp-nobodys"]
        assert "removed" not in shareproof("clean", *named).stdout


def test_only_clusters_of_others_are_cleaned() -> None:
    done = shareproof("clean", "--target", "reference")
    assert done.returncode == 2
    assert "its brokers end with the run" in done.stderr
