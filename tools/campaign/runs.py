"""Runs of checks under pytest, in a process of their own, and their output.

This is also a plugin of pytest: one cluster, and one alteration after the other between it and its
checks. The cluster of a stage takes long to start. So its checks are played behind each alteration
in turn while the cluster stays: ``pytest -p tools.campaign.runs --alterations NAME,NAME --target
altered:honest@...`` followed by the checks. An alteration is in force only while a check runs; its
fixtures, which mend the stage, see what is true. What each check said is written to the file of
``--seen`` at once, so that a sweep that is cut short has not run in vain. ``--declared`` plays each
check behind those alterations only that are meant to break its rules, ``--rounds 20`` without
alterations each check twenty times.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.proxies.alter import HONEST
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.targets.altered import replace_alteration
from reports.reader import read
from reports.results import Results
from shareproof.runner.checks import rules_of
from shareproof.runner.inventory import Check
from shareproof.runner.outcome import PROPERTY, unpack
from spec.plain import from_plain, to_plain
from spec.verdict import EnvironmentFault, Observation, Verdict

ROOT = Path(__file__).parents[2]
MOST_WORKERS = 12


def command(target: str, more: Iterable[str], brokers: int = 1) -> list[str]:
    pytest = [sys.executable, "-m", "pytest", "-q", "--target", target, "--brokers", str(brokers)]
    return [*pytest, "--drafts", "--once", *more]


def with_patience(patience: float) -> dict[str, str]:
    return os.environ | {"SHAREPROOF_PATIENCE": f"{patience:g}"}


def call(words: Sequence[str], patience: float = 1) -> None:
    """Run a command; ``patience`` below 1 shortens the deadlines that a broken broker runs into."""
    subprocess.run(
        words, cwd=ROOT, env=with_patience(patience), stdout=subprocess.DEVNULL, check=False
    )


def lines_of(module: str, *words: str, patience: float) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=with_patience(patience),
    ) as hunting:
        yield from map(str.rstrip, hunting.stdout or ())
    if hunting.returncode:
        raise EnvironmentFault(f"the hunt ended with exit code {hunting.returncode}")


def results_of(command: Sequence[str], out: Path) -> Results:
    log = out.with_name(f"{out.name}.log")
    with log.open("wb") as output:
        words = [sys.executable, "-m", *command, "--out", str(out)]
        subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, check=False)
    if not (out / "results.json").exists():
        text = log.read_text(encoding="utf-8", errors="replace")
        raise EnvironmentFault(f"{shlex.join(command)} left no results, see {log}:\n{text}")
    return read(out)


def results(
    target: str, checks: Sequence[str], *, patience: float = 1, brokers: int = 1, seed: int = 0
) -> Results:
    hands = min(MOST_WORKERS, len(checks))
    with tempfile.TemporaryDirectory(prefix="shareproof-campaign-") as out:
        more = ["-n", str(hands if hands > 1 else 0), "--dist", "loadscope", "--out", out]
        more += ["--seed", str(seed)] if seed else []
        words = command(target, [*more, *checks], brokers)
        call(words, patience)
        if not (Path(out) / "results.json").exists():
            raise EnvironmentFault(f"the run left no results: {' '.join(words)}")
        return read(Path(out))


def seen(found: Results) -> Iterator[Observation]:
    for rule in found.rules:
        for one in rule.checks:
            yield Observation(rule=rule.id, check=one.check, verdict=one.verdict, reason=one.reason)


def sweep(
    target: str,
    checks: Sequence[Check],
    more: Iterable[str],
    *,
    patience: float = 1,
    brokers: int = 1,
) -> Iterator[tuple[str, int, Observation]]:
    """Play checks on one cluster by the plugin; yield what was seen, even if that is cut short.

    That is behind which alteration, in which round, each said what.
    """
    with tempfile.TemporaryDirectory(prefix="shareproof-sweep-") as folder:
        seen = Path(folder) / "seen.jsonl"
        options = ["-n", "0", "-p", "tools.campaign.runs", "--seen", str(seen), *more]
        ids = [check.id for check in checks]
        try:
            call(command(target, [*options, *ids], brokers), patience)
        finally:
            text = seen.read_text(encoding="utf-8") if seen.exists() else ""
            for line in map(json.loads, text.splitlines()):
                yield line["name"], line["round"], from_plain(Observation, line["seen"])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sweep", "one alteration after the other")
    group.addoption("--alterations", default=HONEST.name, help="names, with commas")
    group.addoption("--rounds", type=int, default=1, help="how often each check runs behind each")
    group.addoption("--seen", default="", help="file for what each check said, as JSON Lines")
    group.addoption("--full", action="store_true", help="go on with checks that have failed")
    group.addoption("--declared", action="store_true", help="only what declares a check's rules")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Sweep(config), "shareproof-sweep")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if any(metafunc.definition.iter_markers("rule")):
        option = metafunc.config.option
        names = option.alterations.split(",")
        if option.declared:
            rules = set(rules_of(metafunc.definition))
            names = [name for name in names if rules & set(ALTERATIONS[name].rules)]
        plays = [f"<{name} {n}>" for n in range(option.rounds) for name in names]
        metafunc.fixturenames.append("play")
        metafunc.parametrize("play", plays, indirect=True, ids=plays)


@pytest.fixture
def play(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Sweep:
    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        self._failed: dict[str, dict[str, set[str]]] = defaultdict(dict)
        self._full = option.full or option.alterations == HONEST.name
        self._seen = Path(option.seen) if option.seen else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = [*dict.fromkeys(_play_of(item.nodeid) for item in items)]
        items.sort(key=lambda item: order.index(_play_of(item.nodeid)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._full:
            return
        failed, name = self._failed[item.nodeid.partition("[")[0]], _play_of(item.nodeid)[0]
        seen = [failed.get(rule, set()) for rule in rules_of(item)]
        if all(seen) or any(name in names for names in seen):
            pytest.skip("was seen failing for each of its rules, or behind this alteration")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        replace_alteration({HONEST.name: HONEST, **ALTERATIONS}[_play_of(item.nodeid)[0]])
        try:
            return (yield)
        finally:
            replace_alteration(HONEST)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        packed = dict(report.user_properties).get(PROPERTY)
        if report.when != "call" or packed is None:
            return
        name, number = _play_of(report.nodeid)
        check = report.nodeid.partition("[")[0]
        for one in unpack(str(packed)):
            if one.verdict is Verdict.FAIL:
                self._failed[check].setdefault(one.rule, set()).add(name)
            line = {"name": name, "round": int(number), "seen": to_plain(replace(one, check=check))}
            if self._seen is not None:
                with self._seen.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _play_of(nodeid: str) -> tuple[str, str]:
    found = re.search(r"<(.+?) (\d+)>", nodeid)
    return (found[1], found[2]) if found else (HONEST.name, "0")
