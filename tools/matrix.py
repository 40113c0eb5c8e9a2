"""The pages that show clients, and brokers, beside each other: made from results of whole runs.

``python -m tools.matrix clients OUT... --write docs/clients.md`` and ``brokers OUT... --write
docs/brokers.md`` take the directories of some runs. Rules that hold everywhere are counted; each
other has a row, the worst first: by the rank of the finding that explains it, then by its level.
``findings --write docs/findings/README.md`` makes the tables of the findings, and ``releases
TARGET... --write docs/findings/matrix.md`` what became of them: of runs, or played on targets.
``reports OUT... --write docs/client-reports.md`` tells what clients do in its situations.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.reader import read as read_results
from reports.results import Results, RuleResult
from shareproof.findings.fates import FILE, Fate, chosen, fates
from spec.catalogue import RANKS, Risk, load_findings, rank_of

_ORDER = (*RANKS, "")
"""Ranks of findings, the worst first; the last is that of rules that no finding is about."""
_BROKEN = frozenset({"fail", "unknown", "vacuous", "error"})
_SHOWN = _BROKEN - {"error"}
"""A check that ended with an error of the suite says nothing about a rule."""
_LEVELS = ("MUST", "SHOULD", "MAY")

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
_ABOUT = "\n[Findings by component](findings/README.md#by-component) has those about each."
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    results: Results

    @property
    def rules(self) -> dict[str, RuleResult]:
        return {rule.id: rule for rule in self.results.rules}

    @property
    def title(self) -> str:
        client, target = self.results.client, self.results.target
        if client is not None:
            return f"{client.name} {client.version}"
        return target.name if target.version in target.name else f"{target.name} {target.version}"

    @property
    def broken(self) -> list[RuleResult]:
        return [rule for rule in self.results.rules if rule.verdict in _BROKEN]


def findings(rule: RuleResult) -> list[str]:
    return sorted({entry.finding for entry in rule.known_failures if entry.finding})


def worst(rules: Sequence[RuleResult]) -> str:
    ranks = {rank_of(name) for rule in rules if rule.verdict in _BROKEN for name in findings(rule)}
    return min(ranks, key=_ORDER.index, default="")


def page(kind: str, runs: Sequence[Run], beside: Sequence[Run] = ()) -> str:
    if kind == "clients":
        head = ["", *(said for _, said in _CAPABILITIES)]
        rows = []
        for client in filter(None, (run.results.client for run in runs)):
            has = ("yes" if name in client.capabilities else "no" for name, _ in _CAPABILITIES)
            told = f"{client.name} {client.version}, {client.language or client.runtime}"
            rows.append([told, *has])
        lines = [*_summary([*runs, *beside]), _CHOOSING, *_table(head, rows), _ABOUT]
    else:
        lines = [*_summary([*runs, *beside])]
    ids = sorted(set().union(*(run.rules for run in runs)), key=lambda id_: (id_[:3], int(id_[4:])))
    seen = {id_: [run.rules[id_] for run in runs if id_ in run.rules] for id_ in ids}
    shown = [id_ for id_ in ids if any(rule.verdict in _SHOWN for rule in seen[id_])]
    shown.sort(key=lambda id_: (_ORDER.index(worst(seen[id_])), _LEVELS.index(seen[id_][0].level)))
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
    return "\n".join([*lines, "", "## Rules", "", said, "", *_table(head, rows), ""])


def index() -> str:
    every = sorted(load_findings().values(), key=lambda one: bool(one.demoted))
    head = ["", "severity", "component", "what happens", "rules", "seen on", "why demoted"]
    rows = [
        [_link(o), o.rank, ", ".join(o.components), o.what, o.rules, o.seen, o.demoted]
        for o in every
    ]
    by_part: dict[str, dict[str, list[str]]] = {}
    for one in every:
        for name in one.components:
            by_part.setdefault(name, {}).setdefault(one.rank, []).append(_link(one))
    parts = [[name, *(" ".join(of.get(r, ())) for r in RANKS)] for name, of in by_part.items()]
    first, second = ["## By severity", ""], ["", "## By component", ""]
    return "\n".join([*first, *_table(head, rows), *second, *_table(["", *RANKS], parts), ""])


def _link(finding: Risk) -> str:
    return f"[{finding.number}]({finding.id}.md)"


def releases(names: Sequence[str]) -> str:
    words = (sys.executable, "-m", "shareproof", "finding", "--target")
    played, head = [], ["", "severity", "what happens"]
    for name in names:
        folder = Path(name)
        if not folder.is_dir():
            folder = Path("out", name.replace(":", "-"))
            subprocess.run([*words, name, "--out", str(folder)], check=False)
        results, told = read_results(folder), folder / FILE
        if told.is_file():
            played.append({one["page"]: one["fate"] for one in json.loads(told.read_text("utf-8"))})
        else:
            found = fates(chosen(results.target.ledger, ()), results)
            played.append({one.page: str(one.fate) for one in found})
        head.append(f"{results.target.version}, {results.run.started[:10]}")
    rows = [
        [_link(one), one.rank, one.what, *(fates_of[page] for fates_of in played)]
        for page, one in load_findings().items()
        if any(fates_of[page] != Fate.NOT_PLAYED for fates_of in played)
    ]
    return "\n".join(["## From runs", "", *_table(head, rows), ""])


def reports(runs: Sequence[Run], situations: str) -> str:
    rows = []
    for line in situations.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if rules := re.findall(r"CLI-\d+", line.partition("untested")[0]):
            checks = re.findall(r"`(test_\w+)\[?([^`]*?)\]?`", line)
            rows.append([cells[1], *(_met(run, rules, checks) for run in runs)])
    head = ["report", *(run.title for run in runs)]
    day = max((run.results.run.started[:10] for run in runs), default="")
    return "\n".join([f"### Played on {day}", "", *_table(head, rows), ""])


def _met(run: Run, rules: Sequence[str], wanted: Sequence[tuple[str, str]]) -> str:
    seen = set[str]()
    for check in (each for rule in rules if rule in run.rules for each in run.rules[rule].checks):
        name, _, case = check.check.rpartition("::")[2].partition("[")
        if not wanted or any(name == one and word in case for one, word in wanted):
            seen.add(str(check.verdict))
    verdict = next((one for one in ("error", "fail", "unknown", "pass") if one in seen), "-")
    return {"fail": "**fail**", "error": "not judged"}.get(verdict, verdict)


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
                *(ranks[rank] or "" for rank in RANKS),
            ]
        )
    return _table([*head, *RANKS], rows)


def _cell(rule: RuleResult | None) -> str:
    verdict = str(rule.verdict) if rule else ""
    return {"fail": "**fail**", "error": "not judged"}.get(verdict, verdict)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__)
    kinds = ("clients", "brokers", "findings", "releases", "reports")
    parser.add_argument("kind", choices=kinds, help="which page")
    parser.add_argument("runs", nargs="*", help="directories of runs, or targets, a column each")
    parser.add_argument("--beside", nargs="*", default=[], help="runs without a column")
    parser.add_argument("--write", type=Path, help="the page; default: standard output")
    options = parser.parse_args()
    try:
        if options.kind == "findings":
            text = index()
        elif options.kind == "releases":
            text = releases(options.runs)
        else:
            runs, beside = (
                [Run(results=read_results(Path(one))) for one in some]
                for some in (options.runs, options.beside)
            )
            if options.kind == "reports":
                text = reports(runs, options.write.read_text(encoding="utf-8"))
            else:
                text = page(options.kind, runs, beside)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if options.write:  # what stands above the tables is written by hand
        first = text[: text.index("\n")]
        head = options.write.read_text(encoding="utf-8").partition(first.partition(" on ")[0])[0]
        options.write.write_text(head + text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
