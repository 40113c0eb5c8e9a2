"""All verdicts of the oracle about one history."""

from collections import Counter
from pathlib import Path

from reports.oracle import lives, offsets, orders, records
from reports.oracle.evidence import read_evidence

Verdicts = dict[str, dict[int, tuple[int, int]]]
"""For each rule and share-partition (or request) the cases that tested it, and the broken ones."""

CASES = (*lives.CASES, *records.CASES, *offsets.CASES, *orders.CASES)
"""The functions that yield the cases of all rules."""


def judge(history: Path) -> Verdicts:
    """Judge a history by every rule, from its journals; raises EnvironmentFault."""
    tested: Counter[tuple[str, int]] = Counter()
    broken: Counter[tuple[str, int]] = Counter()
    evidence = read_evidence(history)
    for rule, place, wrong in (case for cases in CASES for case in cases(evidence)):
        tested[rule, place] += 1
        broken[rule, place] += wrong
    found: Verdicts = {}
    for (rule, place), cases in tested.items():
        found.setdefault(rule, {})[place] = (cases, broken[rule, place])
    return found
