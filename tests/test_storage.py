"""Runs in HDFS and in an object store: written second by second, cut, refused, read and judged."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("upath", reason="the extra 'remote' is not installed")

from fixtures.history.compaction import compact
from fixtures.history.mirror import Mirror, brought, kept_at
from fixtures.interface.names import UsageFault
from fixtures.machine.storage import fetch, is_remote, place, send, settings
from reports.analysis.files import open_history
from spec.verdict import EnvironmentFault
from tests.servers import BUCKET, KEY, SECRET, SPARK, Server, hdfs, s3, standalone, yarn
from tests.shell import shareproof
from tests.small_histories import read_cases, write_history

ROOT = Path(__file__).parents[1]
SECOND = 1_000_000_000
FEW = ("--only", "INV-02,INV-05,INV-38")
"""Rules about deliveries, records and lags; every rule is asked in tests/test_analysis.py."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server.uri


NO_PYTHON = str(ROOT / "no-python")


KEYS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with s3(tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture(scope="module")
def executors(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    variables = {**KEYS, "AWS_ENDPOINT_URL": server.uri}
    variables |= {"PYSPARK_PYTHON": NO_PYTHON, "PYTHONPATH": str(ROOT)}
    with standalone(tmp_path_factory.mktemp("spark"), [variables, variables]) as master:
        yield master


@pytest.fixture
def bucket(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server.uri}.items():
        monkeypatch.setenv(name, value)
    # File systems of a process are kept by their options, which the environment is none of.
    pytest.importorskip("s3fs").S3FileSystem.clear_instance_cache()
    return server


def _history(folder: Path, *planted: str) -> Path:
    cases = [case for case in read_cases() if case.version == "4.4.0"]
    right = [case for case in cases if not case.breaks][:4]
    write_history(folder / "history", [*right, *(one for one in cases if str(one) in planted)])
    return folder


def _analysed(run: str, out: Path, *more: str) -> tuple[dict[str, str], str]:
    done = shareproof("analyse", run, "--json", "--brief", "--out", str(out), *FEW, *more)
    document: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    rules = document.get("rules", [])
    return {rule["id"]: rule["verdict"] for rule in rules}, done.stderr


def test_a_run_that_was_killed_is_judged_where_it_is(tmp_path: Path, cluster: str) -> None:
    run = _history(tmp_path / "run")
    away = place(f"{cluster}/killed")
    mirror = Mirror(run, away, print)
    journal = run / "history" / "journal" / "0000" / "acquired.arrows"
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) // 2])
    mirror._send_what_grew()
    journal.write_bytes(whole)
    mirror._send_what_grew()
    parts = sorted(file.name for file in away.rglob("acquired.arrows.*"))
    assert parts == ["acquired.arrows.000000", "acquired.arrows.000001"]
    assert str(away) == f"{cluster}/killed"

    verdicts, output = _analysed(f"{cluster}/killed", tmp_path / "there")

    assert "compacting what its run left behind" in output
    assert verdicts["INV-02"] == "pass", output
    assert "fail" not in verdicts.values()
    assert not list(away.rglob("acquired.arrows.*"))


def test_yarn_reads_hdfs(tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _history(tmp_path / "run", "INV-02: An accepted record comes again.")
    compact(run / "history")
    send(run, place(f"{cluster}/planted"), last=("manifest.json",))
    settings = {
        "spark.yarn.jars": f"local:{SPARK}/jars/*",
        "spark.yarn.am.memory": "384m",
        "spark.executor.instances": "1",
        "spark.driver.host": "127.0.0.1",
    }
    conf = [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    with yarn(tmp_path / "yarn") as configured:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(configured))
        monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        verdicts, output = _analysed(
            f"{cluster}/planted",
            tmp_path / "there",
            *("--master", "yarn", "--memory", "512m", *conf),
        )
    assert [rule for rule, verdict in verdicts.items() if verdict == "fail"] == ["INV-02"], output


def test_a_run_that_ended_is_whole(tmp_path: Path, cluster: str) -> None:
    away = place(f"{cluster}/ended")
    with kept_at(away, print) as local:
        _history(local)
        compact(local / "history")
        (local / "chaos.json").write_text("{}", encoding="utf-8")
        expected = {
            file.relative_to(local).as_posix(): file.read_bytes()
            for file in local.rglob("*")
            if file.is_file()
        }
    assert not local.exists()
    fetch(away, tmp_path / "back")
    found = {
        file.relative_to(tmp_path / "back").as_posix(): file.read_bytes()
        for file in (tmp_path / "back").rglob("*")
        if file.is_file()
    }
    assert found == expected
    assert open_history(away).spoiled == ()


def test_a_spoiled_file_is_named(tmp_path: Path, cluster: str) -> None:
    run = _history(tmp_path / "run")
    compact(run / "history")
    away = place(f"{cluster}/spoiled")
    send(run, away, last=("manifest.json",))
    file = next(iter((run / "history" / "produced").glob("*.parquet")))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    (away / file.relative_to(run).as_posix()).write_bytes(bytes(data))

    (sentence,) = open_history(away).spoiled
    assert sentence.startswith(str(away))
    assert "its checksum is another" in sentence


@pytest.mark.usefixtures("bucket")
def test_a_bucket(tmp_path: Path) -> None:
    run = _history(tmp_path / "run")
    away = place(f"s3a://{BUCKET}/nights/1")
    with kept_at(away, print) as local:
        shutil.copytree(run, local, dirs_exist_ok=True)
        compact(local / "history")
    verdicts, output = _analysed(str(away), tmp_path / "there")
    assert verdicts["INV-02"] == "pass", output
    assert SECRET not in json.dumps(settings([away])) + output
    with brought(away / "history") as history:
        assert (history / "manifest.json").is_file()


@pytest.mark.usefixtures("bucket")
def test_a_cluster_reads_a_bucket(tmp_path: Path, executors: str) -> None:
    run = _history(tmp_path / "run", "INV-02: An accepted record comes again.")
    away = place(f"s3a://{BUCKET}/nights/2")
    with kept_at(away, print) as local:
        shutil.copytree(run, local, dirs_exist_ok=True)
        compact(local / "history")
    verdicts, output = _analysed(
        str(away),
        tmp_path / "there",
        *("--master", executors, "--memory", "512m"),
        *("--conf", f"spark.pyspark.python={NO_PYTHON}", "--conf", "spark.cores.max=1"),
    )
    assert [rule for rule, verdict in verdicts.items() if verdict == "fail"] == ["INV-02"], output


@pytest.mark.usefixtures("bucket")
def test_hosts_write_to_a_bucket(executors: str) -> None:
    away = place(f"s3a://{BUCKET}/nights/3")
    loaded = shareproof(
        *("load", "--target", "reference", "--brokers", "1", "--out", str(away)),
        *("--seconds", "4", "--rate", "100", "--workers-on", executors),
        *("--conf", f"spark.pyspark.python={sys.executable}"),
    )
    assert loaded.returncode == 0, loaded.stderr
    names = {file.parent.name + "/" + file.name for file in (away / "history").rglob("*.arrows*")}
    journals = {f"{process:04}/acquired.arrows" for process in (1, 2)}
    assert journals < names
    assert {Path(name).suffix for name in names} == {".arrows"}
    history = open_history(away)
    assert history.complete
    assert history.rows("deliveries")
    assert 0 < history.manifest.clock_error < SECOND


@pytest.mark.parametrize(
    ("uri", "secret", "sentence"),
    [
        (f"s3a://{BUCKET}/x", "wrong", "signature|denied|Forbidden|SignatureDoesNotMatch"),
        ("s3a://no-such-bucket/x", SECRET, "bucket does not exist"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_a_refusal_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, uri: str, secret: str, sentence: str
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    away = place(uri)
    away.fs.clear_instance_cache()  # type: ignore[attr-defined]
    with pytest.raises(EnvironmentFault, match=sentence) as fault, kept_at(place(uri), print):
        raise AssertionError
    assert "\n" not in str(fault.value)
    assert SECRET not in str(fault.value)


def test_a_server_that_dies_costs_nothing(bucket: Server) -> None:
    # After all others that need the server.
    with pytest.raises(EnvironmentFault, match=r"All of the run is in ") as fault:
        _leave_a_run(place(f"s3a://{BUCKET}/dying"), bucket)
    kept = Path(str(fault.value).rpartition(" is in ")[2].rstrip("."))
    assert compact(kept / "history").files
    shutil.rmtree(kept)


def _leave_a_run(away: Path, server: Server) -> None:
    with kept_at(away, print) as local:
        _history(local)
        server.end()


def test_places() -> None:
    assert place("a/b") == Path("a/b")
    assert place("file:///a/b") == Path("/a/b")
    assert not is_remote(place("/a"))
    assert is_remote(place("s3a://bucket/a"))
    assert os.fspath(place(Path("/a"))) == "/a"
    with pytest.raises(UsageFault, match=r"no file system is known for ftp:; these are: file:"):
        place("ftp://host/a")
