"""What becomes of each behaviour that upstream tests: its rules, and the checks that reach them.

``python -m tools.catalogue`` prints it, and ends with 1 while a behaviour has a hole: a rule that
no check reaches and that does not say why. ``--open`` leaves out what is reached in full.
"""

import argparse
from collections.abc import Mapping, Sequence

from reports.analysis.rules import load_invariants
from shareproof.runner.inventory import CLIENT, by_rule, read_checks
from spec.catalogue import Entry, load_catalogue
from spec.requirement import Honesty, Requirement, load_requirements


def excuse(rule: Requirement | None) -> str:
    untested = rule is not None and rule.honesty is Honesty.UNTESTED
    return " ".join(rule.why.split()) if rule and untested else ""


def judges() -> dict[str, list[str]]:
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
    found = {
        entry.id: [
            rule for rule in entry.rules if not checks.get(rule) and not excuse(rules.get(rule))
        ]
        for entry in entries.values()
    }
    return {identity: missing for identity, missing in found.items() if missing}


def main() -> int:
    """Print the list; exit code 1 while it has a hole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", action="store_true", help="only what is not reached in full")
    options = parser.parse_args()
    entries, rules, checks = load_catalogue(), load_requirements(), judges()
    full = 0
    for entry in entries.values():
        whole = all(checks.get(rule) for rule in entry.rules)
        full += whole
        if options.open and whole:
            continue
        print(f"{entry.id}  {entry.label}")
        for rule in entry.rules:
            why = excuse(rules.get(rule)) or "NOTHING REACHES IT"
            for line in checks.get(rule) or (f"untested: {why}",):
                print(f"    {rule}  {line}")
    missing = holes(entries, rules, checks)
    print(f"{len(entries)} behaviours: {full} reached in full, {len(missing)} with holes")
    return int(bool(missing))


if __name__ == "__main__":
    raise SystemExit(main())
