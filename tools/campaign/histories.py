"""Random small histories: the judges must accuse those, and only those, that nothing explains.

Each seed makes a legal history and then edits it until no legal execution explains it. An edit that
left it legal counts as legal. All are judged by the oracle; Spark must say the same of some.
``--seed N --count 1`` plays one seed again, and shows its histories.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from random import Random

from spec.verdict import Undecided
from tools.campaign.options import Options, Outcome
from tools.histories.edits import EDITS, edited
from tools.histories.judges import accused, disagreements
from tools.histories.legal import legal
from tools.histories.small import History
from tools.histories.truth import is_legal

NOTICED = 0.99
"""At least this share of what is illegal is accused; ``docs/histories.md`` says what is not."""
_TOGETHER = 50  # Seeds that are judged at a time.
_BY_SPARK = 100  # One of so many seeds is judged by Spark, too, and up to as many.
_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    seed: int
    edit: str  # What it is of; nothing for the first.
    legal: bool | None  # None where the truth was not found in time.
    history: History
    broken: tuple[str, ...] = ()


def histories(seed: int) -> Iterator[Played]:
    random, first = Random(seed), legal(seed)
    yield Played(seed=seed, edit="", legal=_truth(first), history=first)
    for _ in range(8):
        edit = random.choice(EDITS)
        changed = edited(first, edit, random)
        if changed is None:
            continue
        truth = _truth(changed)
        yield Played(seed=seed, edit=edit.__name__, legal=truth, history=changed)
        if truth is False:
            return


def _truth(history: History) -> bool | None:
    try:
        return is_legal(history)
    except Undecided:
        return None


def judged(seeds: Sequence[int]) -> list[Played]:
    made = [one for seed in seeds for one in histories(seed)]
    found = accused([one.history for one in made])
    return [replace(one, broken=broken) for one, broken in zip(made, found, strict=True)]


def play(options: Options) -> Outcome:
    seeds = range(options.seed, options.seed + options.count)
    parts = [seeds[at : at + _TOGETHER] for at in range(0, len(seeds), _TOGETHER)]
    found = judged(seeds) if len(parts) == 1 else []
    if not found:
        with ProcessPoolExecutor(options.workers or os.cpu_count()) as pool:
            for done, some in enumerate(pool.map(judged, parts), start=1):
                found += some
                options.progress("histories", done, len(parts))
    outcome = summary(found)
    if options.count == 1:
        for one in found:
            truth = {True: "legal", False: "illegal", None: "undecided"}[one.legal]
            by = ", ".join(one.broken) or "no rule"
            head = f"{one.edit or 'unedited'}: {truth}, accused by {by}"
            outcome.said.append(f"\n{head}\n{one.history}")
    sampled = seeds[: min(options.count // _BY_SPARK, _BY_SPARK)]
    if sampled and find_spec("pyspark"):
        both = [one.history for seed in sampled for one in histories(seed)]
        differing = disagreements(both)
        outcome.said.append(f"Spark and the oracle agree on {len(both)} of them" * (not differing))
        outcome.broken += [f"the judges differ: {one}" for one in differing]
    return outcome


def summary(found: Sequence[Played]) -> Outcome:
    outcome = Outcome()
    fine = [one for one in found if one.legal]
    unedited = sum(not one.edit for one in fine)
    outcome.said.append(
        f"{unedited} legal histories and {len(fine) - unedited} that an edit left legal: "
        f"{sum(map(bool, (one.broken for one in fine)))} accused; "
        f"{sum(one.legal is None for one in found)} undecided"
    )
    for rule in dict.fromkeys(rule for one in fine for rule in one.broken):
        false = [one.seed for one in fine if rule in one.broken]
        outcome.broken.append(f"{rule} accuses legal histories: {_seeds(false)}")
    outcome.broken += [
        f"no execution is found for what the model did: {_seeds([one.seed])}"
        for one in found
        if one.legal is False and not one.edit
    ]
    wrong = [one for one in found if one.legal is False]
    noticed = sum(bool(one.broken) for one in wrong)
    outcome.said.append(f"{noticed} of {len(wrong)} illegal histories accused")
    chance = 3 * (NOTICED * (1 - NOTICED) * len(wrong)) ** 0.5  # of a small sample
    if noticed + chance < NOTICED * len(wrong):
        outcome.broken.append(f"fewer than {NOTICED:.0%} of the illegal histories are accused")
    for edit, tried in sorted(Counter(one.edit for one in wrong).items()):
        missed = [one.seed for one in wrong if one.edit == edit and not one.broken]
        line = f"{edit}: {tried - len(missed)} of {tried}"
        outcome.said.append(line + (f"; not: {_seeds(missed)}" if missed else ""))
    return outcome


def _seeds(seeds: Sequence[int]) -> str:
    some = ", ".join(map(str, seeds[:_SHOWN])) + ", ..." * (len(seeds) > _SHOWN)
    return f"{len(seeds)} (seeds {some}; `python -m tools.campaign histories --count 1 --seed N`)"
