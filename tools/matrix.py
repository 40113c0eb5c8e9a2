"""The pages that show clients, and brokers, beside each other: made from results of whole runs.

``python -m tools.matrix clients OUT... --write docs/clients.md`` and ``brokers OUT... --write
docs/brokers.md`` take the directories of some runs. Rules that hold everywhere are counted; each
other has a row, the worst first: by the rank of the finding that explains it, then by its level.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reports.reading import read as read_results
from reports.results import Results, RuleResult

FINDINGS = Path(__file__).parents[1] / "docs" / "findings"
RANKS = ("loss", "duplicate", "stall", "overload", "wrong response", "cosmetic", "")
"""Ranks of findings, the worst first; the last is that of rules that no finding is about."""

_BROKEN = frozenset({"fail", "unknown", "vacuous", "error"})
_SHOWN = _BROKEN - {"error"}
"""A check that ended with an error of the suite says nothing about a rule."""
_LEVELS = ("MUST", "SHOULD", "MAY")

_CLIENTS = """\
# Clients

Verdicts of `shareproof client` on the client libraries with a shipped adapter, each in its newest
release, in front of a release of Kafka or the reference broker. Rules that need responses no real
broker gives on request are judged against the [hostile broker](hostile-broker.md) in each run. The
cause of a `fail` is in the client's ledger, `spec/profiles/client-*.toml`, and in the
[finding](findings/README.md) that its row links. `python -m tools.matrix clients` generates this
page from results.
"""
_BROKERS = """\
# Brokers

Verdicts of `shareproof broker` on releases of Apache Kafka, three brokers each. The cause of a
`fail` is in the broker's ledger, `spec/profiles`, and in the [finding](findings/README.md) that its
row links. A rule is `unknown` where its check could not decide, and out of reach where the target
cannot be asked. Causes in other implementations are on the pages of the
[implementations](implementations.md) and the [fakes](fakes.md). `python -m tools.matrix brokers`
generates this page from results.
"""
_CHOOSING = """
The numbers under ranks count broken rules by the rank of the finding that explains them.

## Choosing

1. **loss and duplicate**: no setting helps. Read the finding: does your application meet its case?
2. **stall**: a consumer stops, or waits for minutes, after something that happens to every cluster.
   Watch the age of the oldest record.
3. **overload**: a failing partition or coordinator makes the client a burden for the cluster.
   Quotas help.
4. **what your application needs**:
"""
_CAPABILITIES = (
    ("ack-record", "acknowledges single records"),
    ("explicit", "accepts nothing by itself"),
    ("renew", "renews locks"),
    ("record-limit", "limits records of a poll"),
    ("commit-sync", "waits for results"),
    ("callback", "reports results by callback"),
    ("close-timeout", "bounds close"),
    ("wakeup", "ends a poll"),
    ("lock-duration", "tells the lock's duration"),
)
_CALLED = {
    "confluent-kafka": ("confluent-kafka", "librdkafka"),
    "kafkats": ("@kafkats/client",),
    "spring-kafka": ("Spring Kafka", "spring-kafka"),
}
"""What findings call a client, where that is not its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    results: Results

    @property
    def rules(self) -> dict[str, RuleResult]:
        return {rule.id: rule for rule in self.results.requirements}

    @property
    def title(self) -> str:
        client, target = self.results.client, self.results.target
        if client is not None:
            return f"{client.name} {client.version}"
        return target.name if target.version in target.name else f"{target.name} {target.version}"

    @property
    def broken(self) -> list[RuleResult]:
        return [rule for rule in self.results.requirements if rule.verdict in _BROKEN]


@cache
def rank_of(finding: str) -> str:
    page = FINDINGS / f"{finding}.md"
    if not finding or not page.exists():
        return ""
    found = re.search(r"\*\*Rank\*\* ([a-z ]+)", page.read_text(encoding="utf-8"))
    return found[1].strip() if found else ""


def findings(rule: RuleResult) -> list[str]:
    return sorted({entry.finding for entry in rule.known_failures if entry.finding})


def worst(rules: Sequence[RuleResult]) -> str:
    ranks = {rank_of(name) for rule in rules if rule.verdict in _BROKEN for name in findings(rule)}
    return min(ranks, key=RANKS.index, default="")


def page(kind: str, runs: Sequence[Run], beside: Sequence[Run] = ()) -> str:
    if kind == "clients":
        lines = [_CLIENTS, *_summary([*runs, *beside]), _CHOOSING, *_capabilities(runs)]
        lines += ["", "## Findings about each", "", *_known(runs)]
    else:
        lines = [_BROKERS, *_summary([*runs, *beside])]
    return "\n".join([*lines, "", "## Rules", "", *_matrix(runs), ""])


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return [first, "|" + "---|" * len(head), *others]


def _summary(runs: Sequence[Run]) -> list[str]:
    head = ["", "judged on", "in front of", "pass", "MUST broken", "SHOULD broken", "undecided"]
    rows: list[list[object]] = []
    for run in runs:
        results, client = run.results, run.results.client
        failed = [rule for rule in run.broken if rule.verdict == "fail"]
        levels = Counter(rule.level.value for rule in failed)
        ranks = Counter(worst([rule]) for rule in failed)
        rows.append(
            [
                run.title,
                results.run.started[:10],
                client.facing if client is not None else "",
                results.summary["pass"],
                levels["MUST"],
                levels["SHOULD"],
                len(run.broken) - len(failed),
                *(ranks[rank] or "" for rank in RANKS[:-1]),
            ]
        )
    return _table([*head, *RANKS[:-1]], rows)


def _capabilities(runs: Sequence[Run]) -> list[str]:
    head = ["", *(said for _, said in _CAPABILITIES)]
    rows = []
    for client in filter(None, (run.results.client for run in runs)):
        has = ("yes" if name in client.capabilities else "no" for name, _ in _CAPABILITIES)
        told = f"{client.name} {client.version}, {client.language or client.runtime}"
        rows.append([told, *has])
    return _table(head, rows)


def _known(runs: Sequence[Run]) -> list[str]:
    text = (FINDINGS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[\d+\]\((.*?)\.md\) \|.*\| (.*?) \|$", text, re.MULTILINE)
    rows = []
    for run in runs:
        client = run.results.client
        assert client is not None
        names = _CALLED.get(client.name, (client.name,))
        mine = [stem for stem, seen in listed if any(name in seen for name in names)]
        by_rank = [[stem for stem in mine if rank_of(stem) == rank] for rank in RANKS[:-1]]
        links = [" ".join(f"[{s[:3]}](findings/{s}.md)" for s in stems) for stems in by_rank]
        rows.append([run.title, *links])
    return _table(["", *RANKS[:-1]], rows)


def _matrix(runs: Sequence[Run]) -> list[str]:
    ids = sorted(set().union(*(run.rules for run in runs)), key=lambda id_: (id_[:3], int(id_[4:])))
    seen = {id_: [run.rules[id_] for run in runs if id_ in run.rules] for id_ in ids}
    shown = [id_ for id_ in ids if any(rule.verdict in _SHOWN for rule in seen[id_])]
    shown.sort(key=lambda id_: (RANKS.index(worst(seen[id_])), _LEVELS.index(seen[id_][0].level)))
    held = [id_ for id_ in ids if {str(rule.verdict) for rule in seen[id_]} == {"pass"}]
    rows = []
    for id_ in shown:
        names = sorted({name for rule in seen[id_] for name in findings(rule)})
        links = " ".join(f"[{name[:3]}](findings/{name}.md)" for name in names)
        first = seen[id_][0]
        cells = [_cell(run.rules.get(id_)) for run in runs]
        rows.append([worst(seen[id_]), f"{id_} {first.text}", first.level.value, *cells, links])
    head = ["rank", "rule", "level", *(run.title for run in runs), "findings"]
    said = f"{len(held)} rules hold for all. Of the others these are broken or undecided somewhere:"
    return [said, "", *_table(head, rows)]


def _cell(rule: RuleResult | None) -> str:
    verdict = str(rule.verdict) if rule else ""
    return {"fail": "**fail**", "error": "not judged"}.get(verdict, verdict)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__)
    parser.add_argument("kind", choices=("clients", "brokers"), help="which page")
    parser.add_argument("runs", nargs="+", type=Path, help="directories of runs, a column each")
    parser.add_argument("--beside", nargs="*", default=[], type=Path, help="runs without a column")
    parser.add_argument("--write", type=Path, help="the page; default: standard output")
    options = parser.parse_args()
    try:
        runs, beside = (
            [Run(results=read_results(folder)) for folder in folders]
            for folders in (options.runs, options.beside)
        )
    except ValueError as error:
        raise SystemExit(str(error)) from None
    text = page(options.kind, runs, beside)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
