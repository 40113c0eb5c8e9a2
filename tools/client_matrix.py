"""The page that shows clients beside each other: ``docs/clients.md``, made from results.

``python -m tools.client_matrix OUT... --write docs/clients.md`` takes the directories of some
``shareproof client`` runs. Rules that every client keeps are counted; each other has a row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.reading import read as read_results
from reports.results import Client, Results, RuleResult, Word
from shareproof.runner.adapters import HOSTILE

_HEAD = """\
# Clients

Verdicts of `shareproof client` on the client libraries with a shipped adapter. The head of a column
names the client and the broker that it was run against. Rules that need responses no real broker
gives on request are judged against the [hostile broker](hostile-broker.md). The cause of a `fail`
is in the client's ledger, `spec/profiles/client-*.toml`, and in the finding that its row links.
`python -m tools.client_matrix` generates this page from results.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One client in front of one broker."""

    client: Client
    results: Results

    @property
    def rules(self) -> dict[str, RuleResult]:
        """Its rules by id."""
        return {rule.id: rule for rule in self.results.requirements}

    @property
    def broker(self) -> str:
        """The broker it faced, with the version where the name has none."""
        facing, version = self.client.facing, self.client.facing_version
        named = not version or version in facing
        return facing if named else f"{facing.split(':', maxsplit=1)[0]} {version}"

    def holding(self, *, hostile: bool) -> str:
        """Return how many rules hold in front of the hostile broker, or of the other one."""
        found = [n for name, n in self.client.brokers.items() if (name == HOSTILE) is hostile]
        judged = [(n.get("pass", 0), sum(n.values()) - n.get("unsupported", 0)) for n in found]
        return f"{judged[0][0]} of {judged[0][1]}" if judged else ""

    @property
    def title(self) -> str:
        """The head of its column."""
        return f"{self.client.name} {self.client.version}"

    def verdict(self, rule: str) -> str:
        """Return the verdict of a rule, in words that fit a table."""
        verdict = self.rules[rule].verdict
        return f"**{verdict}**" if verdict == "fail" else verdict


def read(directory: Path) -> Run:
    """Read one run.

    Raises:
        SystemExit: there are no results of a client in the directory.
    """
    try:
        results = read_results(directory)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if results.client is None:
        raise SystemExit(f"{directory} holds no results of a client.")
    return Run(client=results.client, results=results)


def page(runs: Sequence[Run]) -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *_summary(runs), "", *_matrix(runs), ""])


def _summary(runs: Sequence[Run]) -> list[str]:
    counted: tuple[Word, ...] = (
        "pass",
        "fail",
        "unsupported",
        "unknown",
        "vacuous",
        "error",
        "untested",
    )
    lines = [
        "| client | runtime | broker | holds there | holds at the hostile broker | "
        f"{' | '.join(counted)} |",
        f"|{'---|' * (5 + len(counted))}",
    ]
    for run in runs:
        numbers = " | ".join(str(run.results.summary[verdict]) for verdict in counted)
        faced = f"{run.holding(hostile=False)} | {run.holding(hostile=True)}"
        lines.append(f"| {run.title} | {run.client.runtime} | {run.broker} | {faced} | {numbers} |")
    return lines


def _matrix(runs: Sequence[Run]) -> list[str]:
    common = sorted(set.intersection(*(set(run.rules) for run in runs)), key=_number)
    verdicts = {rule: {run.rules[rule].verdict for run in runs} for rule in common}
    kept = [rule for rule in common if verdicts[rule] == {"pass"}]
    shown = [rule for rule in common if not verdicts[rule] <= {"pass", "untested"}]
    columns = " | ".join(f"{run.title}, {run.client.runtime} @ {run.broker}" for run in runs)
    lines = [f"{len(kept)} rules hold for all clients. The others:", ""]
    lines += [f"| rule | level | {columns} | findings |", f"|---|---|{'---|' * (len(runs) + 1)}"]
    for rule in shown:
        found = runs[0].rules[rule]
        cells = " | ".join(run.verdict(rule) for run in runs)
        pages = _findings([run.rules[rule] for run in runs])
        lines.append(f"| {rule} {found.text} | {found.level} | {cells} | {pages} |")
    return lines


def _findings(rules: Sequence[RuleResult]) -> str:
    """Return links to the findings that ledgers name for a rule that does not hold."""
    named = {
        entry.finding
        for rule in rules
        if rule.verdict in {"fail", "unknown"}
        for entry in rule.known_failures
        if entry.finding
    }
    return " ".join(f"[{name[:3]}](findings/{name}.md)" for name in sorted(named))


def _number(rule: str) -> int:
    return int(rule.partition("-")[2])


def main() -> int:
    """Make the page, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    text = page([read(directory) for directory in options.runs])
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
