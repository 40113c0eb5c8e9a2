"""What becomes of each behaviour that upstream tests: its rules, and the checks that reach them.

``python -m tools.catalogue`` prints it, and ends with 1 while a behaviour has a hole: a rule that
no check reaches and that does not say why. ``--open`` leaves out what is reached in full.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reports.analysis.rules import load_invariants
from shareproof.runner.inventory import CLIENT, by_rule, read_checks
from spec.catalogue import Entry, load_catalogue
from spec.requirement import Honesty, Requirement, load_requirements


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """A rule of a behaviour, the checks that reach it, and why not if none does."""

    rule: str
    checks: tuple[str, ...]
    why: str = ""

    @property
    def hole(self) -> bool:
        """Whether nothing reaches the rule and nothing says why."""
        return not self.checks and not self.why


def reached(
    entry: Entry, rules: Mapping[str, Requirement], checks: Mapping[str, Sequence[str]]
) -> Iterator[Reach]:
    for identity in entry.rules:
        found = tuple(checks.get(identity, ()))
        rule = rules.get(identity)
        untested = rule is not None and rule.honesty is Honesty.UNTESTED
        yield Reach(rule=identity, checks=found, why=rule.why if rule and untested else "")


def judges() -> dict[str, list[str]]:
    """Return what judges each rule: checks by their id, and the invariants of histories."""
    checks = by_rule([*read_checks(), *read_checks(CLIENT)])
    found = {rule: [check.id for check in all_of] for rule, all_of in checks.items()}
    for invariant in load_invariants():
        found.setdefault(invariant.id, []).append(f"shareproof analyse, {invariant.id}")
    return found


def holes(
    entries: Mapping[str, Entry],
    rules: Mapping[str, Requirement],
    checks: Mapping[str, Sequence[str]],
) -> dict[str, list[str]]:
    """Return the rules of each behaviour that nothing reaches and nothing excuses."""
    found = {
        entry.id: [reach.rule for reach in reached(entry, rules, checks) if reach.hole]
        for entry in entries.values()
    }
    return {identity: missing for identity, missing in found.items() if missing}


def _lines(entry: Entry, reaches: list[Reach]) -> Iterator[str]:
    yield f"{entry.id}  {entry.label}"
    for reach in reaches:
        said = " ".join(reach.why.split()) or "NOTHING REACHES IT"
        for line in reach.checks or (f"untested: {said}",):
            yield f"    {reach.rule}  {line}"


def main() -> int:
    """Print the list; exit code 1 while it has a hole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", action="store_true", help="only what is not reached in full")
    options = parser.parse_args()
    entries, rules, checks = load_catalogue(), load_requirements(), judges()
    full = 0
    for entry in entries.values():
        reaches = list(reached(entry, rules, checks))
        whole = all(reach.checks for reach in reaches)
        full += whole
        if not (options.open and whole):
            print(*_lines(entry, reaches), sep="\n")
    missing = holes(entries, rules, checks)
    print(f"{len(entries)} behaviours: {full} reached in full, {len(missing)} with holes")
    return int(bool(missing))


if __name__ == "__main__":
    raise SystemExit(main())
