"""A pytest plugin: one cluster, and one lie after the other between it and its checks.

The cluster of a stage takes long to start. So the checks of a stage are played behind each lie in
turn while the cluster stays: ``pytest -p tools.lies --lies NAME,NAME --target altered:honest@...``
followed by the folder of the stage. A lie is told only while a check runs; its fixtures, which mend
the stage, see the truth. What made which check fail goes into the record of
:mod:`tools.falsified` at once, so that a sweep that is cut short has not run in vain.

``--rounds 20`` without lies plays each check twenty times, which is how a stage is repeated.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from typing import TypeVar

import pytest

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.proxies.altering import HONEST
from fixtures.targets.altered import tell
from shareproof.runner.checks import rules_of
from shareproof.runner.outcome import unpack
from shareproof.runner.recorder import PROPERTY
from spec.verdict import Verdict
from tools.falsified import Matrix, function_of

T = TypeVar("T")

_PLAY = re.compile(r"<(.+?) (\d+)>")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register what the sweep passes on."""
    group = parser.getgroup("lies", "one lie after the other")
    group.addoption("--lies", default=HONEST.name, help="names of alterations, with commas")
    group.addoption("--rounds", type=int, default=1, help="how often each check runs behind each")
    group.addoption("--full", action="store_true", help="play what was seen failing before, too")


def pytest_configure(config: pytest.Config) -> None:
    """Begin the sweep."""
    config.pluginmanager.register(Sweep(config), "shareproof-sweep")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each check behind each lie, as often as there are rounds."""
    if any(metafunc.definition.iter_markers("requirement")):
        option = metafunc.config.option
        plays = [f"<{name} {n}>" for n in range(option.rounds) for name in option.lies.split(",")]
        metafunc.fixturenames.append("play")
        metafunc.parametrize("play", plays, indirect=True, ids=plays)


@pytest.fixture
def play(request: pytest.FixtureRequest) -> str:
    """The lie that is told while the check runs, and the number of the round."""
    return str(request.param)


class Sweep:
    """Tells the lies, and notes which check rejected which."""

    def __init__(self, config: pytest.Config) -> None:
        self._matrix = Matrix.load()
        self._full = config.option.full or config.option.lies == HONEST.name

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Play all checks before the first one comes again."""
        order = {_play_of(item.nodeid): None for item in items}
        places = {play: place for place, play in enumerate(order)}
        items.sort(key=lambda item: places[_play_of(item.nodeid)])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Leave out what was seen failing for each of its rules, or behind this very lie."""
        if self._full:
            return
        check, lie = function_of(item.nodeid), _play_of(item.nodeid)[0]
        seen = [self._matrix.kills.get((check, rule), set()) for rule in rules_of(item)]
        if all(seen) or any(lie in killers for killers in seen):
            pytest.skip("was seen failing for each of its rules, or behind this lie")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, T, T]:
        """Tell the lie for as long as the check itself runs."""
        tell({HONEST.name: HONEST, **ALTERATIONS}[_play_of(item.nodeid)[0]])
        try:
            return (yield)
        finally:
            tell(HONEST)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take over what a check said behind a lie."""
        told = dict(report.user_properties).get(PROPERTY)
        if report.when != "call" or told is None:
            return
        lie, number = _play_of(report.nodeid)
        for seen in unpack(str(told)):
            words = f"{lie} {number}: {seen.requirement} {seen.verdict} {seen.reason}"
            print(words.rstrip(), file=sys.stderr, flush=True)
            if seen.verdict is Verdict.FAIL and lie != HONEST.name:
                self._matrix.add(report.nodeid, seen.requirement, lie)
                self._matrix.save()


def _play_of(nodeid: str) -> tuple[str, str]:
    """Return the lie and the round of a play."""
    found = _PLAY.search(nodeid)
    return (found[1], found[2]) if found else (HONEST.name, "0")
