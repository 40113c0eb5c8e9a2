"""Repetition: the same checks again and again, each time with other random choices.

A referee that changes its mind is worse than none: a new check is only trusted after it came
through this. With ``--only`` the checks are repeated alone, on one cluster; without it whole
certifications are, and every rule is named whose verdict was not the same in all of them.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fixtures.targets import UsageFault
from reports.results import Results
from shareproof.runner.inventory import CLIENT, Check, read_checks
from shareproof.runner.scheduler import scope
from spec.verdict import Verdict
from tools.campaign import clients, runs
from tools.campaign.options import Options, Outcome, meant

TOGETHER = "together"  # The checks that share a cluster.


def play(options: Options) -> Outcome:
    if options.client:
        return clients.repeat(options)
    if not options.only:
        folder = Path(tempfile.mkdtemp(prefix="shareproof-repeat-"))
        found: list[Results] = []
        for seed in range(options.seed, options.seed + options.rounds):
            command = ["shareproof", "broker", "--target", options.target, "--seed", str(seed)]
            found.append(runs.results_of(command, folder / f"seed-{seed}"))
            last = found[-1]
            options.say(
                f"seed {seed}: exit {last.run.exit_code}, {last.run.seconds:.0f} s, "
                f"{executions(last)} checks, {dict(last.summary)}"
            )
        total = sum(map(executions, found))
        changed = differing(found)
        return Outcome(
            said=[f"{total} check executions in {len(found)} runs; see {folder}"],
            broken=[f"{rule}: {dict(counter)}" for rule, counter in changed.items()],
        )
    words = options.only
    of_clients, checks = meant(words, read_checks(CLIENT)), meant(words, read_checks(drafts=True))
    if not checks:
        hint = " Add --client model for checks of clients." if of_clients else ""
        raise UsageFault(f"--only {', '.join(words)}: no check of brokers is called that.{hint}")
    return _alone(options, checks)


def _alone(options: Options, checks: Iterable[Check]) -> Outcome:
    outcome, counted = Outcome(), Counter[tuple[str, str]]()
    groups: dict[str, list[Check]] = {}
    for check in checks:
        staged = scope(check.id) != check.id
        own = check.id if check.solo and not staged else TOGETHER
        groups.setdefault(scope(check.id) if staged else own, []).append(check)
    for group, mine in groups.items():
        options.say(f"{group}: {len(mine)} checks, {options.rounds} rounds")
        words = ["--rounds", str(options.rounds), "--seed", str(options.seed)]
        brokers = 3 if group == TOGETHER else 1
        seen = [*runs.sweep(options.target, mine, words, brokers=brokers)]
        outcome.broken += [
            f"round {number}: {one.rule} {one.verdict} {one.check}: {one.reason}"
            for _, number, one in seen
            if one.verdict is not Verdict.PASS
        ]
        counted.update((one.check, one.rule) for _, _, one in seen)
        outcome.broken += [
            f"{check.id} {rule}: {counted[check.id, rule]} of {options.rounds} rounds were played"
            for check in mine
            for rule in check.rules
            if counted[check.id, rule] < options.rounds
        ]
    outcome.said.append(f"{counted.total()} verdicts, {len(outcome.broken)} of them no pass")
    return outcome


def executions(results: Results) -> int:
    return len({check.check for rule in results.rules for check in rule.checks})


def differing(runs: list[Results]) -> dict[str, Counter[str]]:
    seen = [{rule.id: rule.verdict for rule in results.rules} for results in runs]
    rules = sorted({rule for run in seen for rule in run})
    counted = {rule: Counter(run.get(rule, "missing") for run in seen) for rule in rules}
    return {rule: counter for rule, counter in counted.items() if len(counter) > 1}
