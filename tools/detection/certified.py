"""Accepting examples of checks that no reference broker can satisfy, from certifications.

``python -m tools.detection.certified RESULTS...`` reads the results of certifications of honest
brokers and notes in the record what each check out of the reference broker's reach accepted there.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from reports.reading import read
from reports.results import Results
from spec.verdict import Verdict
from tools.detection import page
from tools.detection.hunting import checks
from tools.detection.playing import HONEST
from tools.detection.record import Acceptance, Record


def accepted(results: Results, wanted: Collection[str]) -> Record:
    """Return the checks all of whose rules held; evidence is the rules', all checks together."""
    verdicts: dict[str, set[str]] = defaultdict(set)
    evidence: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for rule in results.requirements:
        for seen in rule.checks:
            check = seen.check.partition("[")[0]
            verdicts[check].add(seen.verdict)
            evidence[check][rule.id] = dict(rule.evidence)
    target, seed = results.target.name, results.run.seed
    return Record(
        {
            check: Acceptance(target=target, seed=seed, evidence=evidence[check])
            for check in verdicts.keys() & set(wanted)
            if verdicts[check] == {Verdict.PASS.value}
        }
    )


def beyond(record: Record) -> list[str]:
    """Return the trusted checks that no reference broker was seen satisfying."""
    return [
        name
        for name, check in checks().items()
        if not check.draft and (name not in record.accepts or record.accepts[name].target != HONEST)
    ]


def main() -> None:
    """Note what certifications accepted."""
    parser = argparse.ArgumentParser(description="Note what certifications accepted.")
    parser.add_argument("results", nargs="+", type=Path, help="directories of runs")
    record = Record.load()
    for results in parser.parse_args().results:
        found = accepted(read(results), beyond(record))
        record.accepts |= found.accepts
        print(f"{results}: {len(found.accepts)} checks accept {', '.join(sorted(found.accepts))}")
    record.save()
    page.write(record)


if __name__ == "__main__":
    main()
