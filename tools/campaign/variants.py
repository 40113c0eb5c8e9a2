"""Variants of the reference broker that are as right as it is: no check may fail one.

Each check that can be played in virtual time meets each variant. Undecided is fair: a check may be
unable to tell where a broker takes a liberty. ``fail`` accuses somebody who is right, and ``error``
is a check that breaks.

``others`` asks the same of mutants: a broken broker should fail the rules that it is said to break,
and be undecided in all others. Who reads its list decides: a check may charge its rule with what
another rule is about, or a mutant may break more than it says.
"""

from collections.abc import Iterable

from fixtures.reference.mutants import MUTANTS, VARIANTS
from spec.verdict import Verdict
from tools.campaign import rejections
from tools.campaign.options import Options, Outcome, chosen
from tools.campaign.player import HONEST, play
from tools.campaign.reference import each, pool


def accusations(broken: str, check: str, seed: int) -> list[str]:
    allowed = (VARIANTS.get(broken) or MUTANTS[broken]).rules
    return [
        f"{broken}: {case.name}: {seen.rule} {seen.verdict}: {seen.reason}"
        for case in rejections.cases_of(check)
        for seen in play(f"{HONEST}:{broken}", case, seed).observations
        if seen.verdict in {Verdict.FAIL, Verdict.ERROR} and seen.rule not in allowed
    ]


def accuse(options: Options) -> Outcome:
    said, found = _play(options, VARIANTS, "variants")
    return Outcome(said=[said], broken=found)


def blame(options: Options) -> Outcome:
    said, found = _play(options, MUTANTS, "mutants")
    return Outcome(said=[*found, said])


def _play(options: Options, broken: Iterable[str], what: str) -> tuple[str, list[str]]:
    known = [rejections.checks()[name] for name in rejections.playable(drafts=bool(options.only))]
    names, checks = chosen(options.only, broken, known)
    plays = [(name, check.id) for check in checks for name in names]
    with pool(options.workers) as workers:
        futures = [workers.submit(accusations, *one, options.seed) for one in plays]
        found = [line for lines in each(futures, what, options.progress) for line in lines]
    said = f"{len(plays)} plays of {len(checks)} checks on {len(names)} {what}"
    return f"{said}, seed {options.seed}", sorted(found)
