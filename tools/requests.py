"""Records which requests beyond tier 1 checks of a broker send, for ``shareproof broker --tier``.

    python -m tools.requests                    # plays all checks on the reference broker
    python -m tools.requests suites/broker/test_x.py::test_new     # adds a check to the table

A pytest plugin, and the command that runs pytest with it. What a check sends may depend on the
target: the reference broker offers every API. Checks that it does not play are not in the table,
and are of the highest tier; drafts are not in it either.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from fixtures.wire.connection import Connection
from shareproof.runner.inventory import read_checks
from spec.tiers import PLAIN, REQUESTS, recorded

_PROPERTY = "shareproof-requests"
_SENT: set[str] = set()
_FOUND: dict[str, set[str]] = {}
_exchange = Connection.exchange


async def _recorded(self: Connection, api: str, *args: Any) -> bytes:
    _SENT.add(api)
    return await _exchange(self, api, *args)


def pytest_configure() -> None:
    setattr(Connection, "exchange", _recorded)  # noqa: B010  # a wrapper of another signature


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    _SENT.clear()
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.user_properties.append((_PROPERTY, " ".join(sorted(_SENT))))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    sent = str(dict(report.user_properties).get(_PROPERTY, ""))
    _FOUND.setdefault(report.nodeid.partition("[")[0], set()).update(sent.split())


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and _FOUND:
        known = {check.id for check in read_checks()}
        sent = {check: apis - PLAIN for check, apis in _FOUND.items() if apis}
        found = {check: set(apis) for check, apis in recorded().items()} | sent
        files: dict[str, dict[str, list[str]]] = {}
        for name in sorted(found.keys() & known):
            file, _, check = name.partition("::")
            files.setdefault(file, {})[check] = sorted(found[name])
        lines = (f" {json.dumps(file)}: {json.dumps(checks)}" for file, checks in files.items())
        REQUESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def play(checks: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-p", "tools.requests", "-p", "no:cacheprovider"]
    command += ["-q", "-n", "2", "--target", "reference", "--ledger", "reference"]
    command += ["-m", "not crossed"]  # set-ups need more than the check, and tier 1 has none
    return subprocess.run([*command, *checks], check=False, stdout=sys.stderr).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.requests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checks", nargs="*", default=["suites/broker"], help="default: all checks")
    return play(parser.parse_args().checks)


if __name__ == "__main__":
    sys.exit(main())
