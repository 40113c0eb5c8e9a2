"""A pytest plugin: one cluster, and one alteration after the other between it and its checks.

The cluster of a stage takes long to start. So the checks of a stage are played behind each
alteration in turn while the cluster stays: ``pytest -p tools.campaign.sweep --alterations NAME,NAME
--target altered:honest@...`` followed by the checks. An alteration is in force only while a check
runs; its fixtures, which mend the stage, see what is true. What each check said is written to the
file of ``--seen`` at once, so that a sweep that is cut short has not run in vain.

``--declared`` plays each check behind those alterations only that are meant to break its rules.
``--rounds 20`` without alterations plays each check twenty times.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest

from fixtures.proxies.alter import HONEST
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.targets.altered import replace_alteration
from shareproof.runner.checks import rules_of
from shareproof.runner.outcome import PROPERTY, unpack
from spec.verdict import Verdict

T = TypeVar("T")

_PLAY = re.compile(r"<(.+?) (\d+)>")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register what the campaign passes on."""
    group = parser.getgroup("sweep", "one alteration after the other")
    group.addoption("--alterations", default=HONEST.name, help="names, with commas")
    group.addoption("--rounds", type=int, default=1, help="how often each check runs behind each")
    group.addoption("--seen", default="", help="file for what each check said, as JSON Lines")
    group.addoption("--full", action="store_true", help="go on with checks that have failed")
    group.addoption("--declared", action="store_true", help="only what declares a check's rules")


def pytest_configure(config: pytest.Config) -> None:
    """Begin the sweep."""
    config.pluginmanager.register(Sweep(config), "shareproof-sweep")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each check behind each alteration, as often as there are rounds."""
    if any(metafunc.definition.iter_markers("requirement")):
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
    """The alteration that is in force while the check runs, and the number of the round."""
    return str(request.param)


class Sweep:
    """Puts alterations in force, and notes which check rejected which."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        self._failed: dict[str, dict[str, set[str]]] = defaultdict(dict)
        self._full = option.full or option.alterations == HONEST.name
        self._seen = Path(option.seen) if option.seen else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Play all checks before the first one comes again."""
        order = {_play_of(item.nodeid): None for item in items}
        places = {play: place for place, play in enumerate(order)}
        items.sort(key=lambda item: places[_play_of(item.nodeid)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Leave out what was seen failing for each of its rules, or behind this very alteration."""
        if self._full:
            return
        failed, name = self._failed[_check_of(item.nodeid)], _play_of(item.nodeid)[0]
        seen = [failed.get(rule, set()) for rule in rules_of(item)]
        if all(seen) or any(name in names for names in seen):
            pytest.skip("was seen failing for each of its rules, or behind this alteration")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, T, T]:
        """Alter for as long as the check itself runs."""
        replace_alteration({HONEST.name: HONEST, **ALTERATIONS}[_play_of(item.nodeid)[0]])
        try:
            return (yield)
        finally:
            replace_alteration(HONEST)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down what a check said."""
        told = dict(report.user_properties).get(PROPERTY)
        if report.when != "call" or told is None:
            return
        name, number = _play_of(report.nodeid)
        check = _check_of(report.nodeid)
        for one in unpack(str(told)):
            if one.verdict is Verdict.FAIL:
                self._failed[check].setdefault(one.requirement, set()).add(name)
            line = {
                "name": name,
                "round": int(number),
                "check": check,
                "rule": one.requirement,
                "verdict": one.verdict.value,
                "reason": one.reason,
            }
            self._write(line)

    def _write(self, line: dict[str, object]) -> None:
        if self._seen is not None:
            with self._seen.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _check_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _play_of(nodeid: str) -> tuple[str, str]:
    """Return the alteration and the round of a play."""
    found = _PLAY.search(nodeid)
    return (found[1], found[2]) if found else (HONEST.name, "0")
