"""Variants of the reference broker that are as right as it is: no check may fail one.

Each check that can be played in virtual time meets each variant. Undecided is fair: a check may be
unable to tell where a broker takes a liberty. ``fail`` accuses somebody who is right, and ``error``
is a check that breaks.
"""

from fixtures.reference.mutants import VARIANTS
from spec.verdict import Verdict
from tools.campaign import rejections
from tools.campaign.options import Options, Outcome, chosen
from tools.campaign.player import HONEST, play
from tools.campaign.reference import each, pool


def accusations(variant: str, check: str, seed: int) -> list[str]:
    allowed = VARIANTS[variant].rules
    return [
        f"{variant}: {case.name}: {seen.rule} {seen.verdict}: {seen.reason}"
        for case in rejections.cases_of(check)
        for seen in play(f"{HONEST}:{variant}", case, seed).observations
        if seen.verdict in {Verdict.FAIL, Verdict.ERROR} and seen.rule not in allowed
    ]


def accuse(options: Options) -> Outcome:
    known = [rejections.checks()[name] for name in rejections.playable(drafts=bool(options.only))]
    names, checks = chosen(options.only, VARIANTS, known)
    plays = [(name, check.id) for check in checks for name in names]
    with pool(options.workers) as workers:
        futures = [workers.submit(accusations, *one, options.seed) for one in plays]
        found = [line for lines in each(futures, "variants", options.progress) for line in lines]
    said = (
        f"{len(plays)} plays of {len(checks)} checks on {len(names)} variants, seed {options.seed}"
    )
    return Outcome(said=[said], broken=sorted(found))
