"""The model in lock-step with a target for some time, or one script played again."""

import json
import shlex
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from fixtures.targets import UsageFault
from spec.verdict import Violation
from suites.model.actions import read_script, to_text
from suites.model.environment import Environment, open_environment
from suites.model.lockstep import Plan, Tally, confirm, run
from suites.options import ModelOptions, check_version

_EVERY = 5.0  # Seconds between two lines of progress.


PROFILES = {
    "ci": Plan(minutes=1.5, steps=2_000, actions=40, shrinking=1.0),
    "night": Plan(minutes=480.0, steps=10_000_000, actions=120, shrinking=30.0),
}


def play(options: ModelOptions) -> int:
    if options.profile not in PROFILES:
        raise UsageFault(f"--profile {options.profile}: there are {', '.join(PROFILES)}.")
    check_version(options.target, options.expect_version)
    try:
        script = read_script(options.replay) if options.replay else None
    except (ValueError, OSError) as error:
        told = getattr(error, "strerror", error)
        raise UsageFault(f"--replay {options.replay}: {told}.") from None
    if options.out and options.out.is_dir():
        raise UsageFault(f"--out {options.out}: that is a directory, a file is needed.")
    with open_environment(
        options.target, brokers=options.brokers, seed=options.seed, version=options.expect_version
    ) as field:
        if script is None:
            return _run(field, options)
        try:
            player = field.replay(script)
        except Violation as violation:
            print(f"{violation}")
            return 1
        print(f"{len(player.script)} actions played, everything allowed")
        return 0


def _run(field: Environment, options: ModelOptions) -> int:
    names = ("minutes", "steps", "actions", "shrinking")
    given = {name: value for name in names if (value := getattr(options, name))}
    plan = replace(PROFILES[options.profile], seed=options.seed, **given)
    said = f"seed {plan.seed}, target {options.target}, release {field.release.name}"
    print(said, file=sys.stderr, flush=True)
    tally = run(field, plan, Progress())
    again = confirm(field, tally) if tally.violation else ""
    reproduce = _written(options, tally) if tally.violation else ""
    if options.as_json:
        print(json.dumps(_document(options, tally, reproduce), indent=1))
    else:
        _summary(tally)
        if reproduce:
            print(f"{tally.violation}\n{again}\n{to_text(tally.failing)}reproduce: {reproduce}")
    return int(bool(reproduce))


class Progress:
    def __init__(self) -> None:
        self._last = time.monotonic()
        self._found = False

    def __call__(self, tally: Tally) -> None:
        now, line = time.monotonic(), f"{tally.examples} examples, {tally.actions} actions"
        new = bool(tally.violation) and not self._found
        if tally.violation:
            length = f"{len(tally.failing)} actions"
            line = f"{length}: {tally.violation}"
            if new:
                line = f"{tally.violation}\nlooking for a script shorter than {length}"
        if now - self._last >= _EVERY or new:
            self._last, self._found = now, bool(tally.violation)
            print(line, file=sys.stderr, flush=True)


def _written(options: ModelOptions, tally: Tally) -> str:
    out: Path = options.out or Path(tempfile.mkdtemp(prefix="shareproof-model-")) / "script.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    told = f"# {tally.violation}\n# {options.target}, seed {options.seed}\n"
    out.write_text(told + to_text(tally.failing), encoding="utf-8")
    command = ["shareproof", "model", "--target", options.target]
    command += ["--brokers", str(options.brokers), "--seed", str(options.seed)]
    return shlex.join([*command, "--replay", str(out)])


def _document(options: ModelOptions, tally: Tally, reproduce: str) -> dict[str, object]:
    script = [json.loads(str(action)) for action in tally.failing] if reproduce else []
    return {
        "seed": options.seed,
        "target": options.target,
        "examples": tally.examples,
        "actions": tally.actions,
        "reached": dict(sorted(tally.reached.items())),
        "expected": dict(tally.expected),
        "undecided": dict(tally.undecided),
        "violation": tally.violation or None,
        **({"script": script, "reproduce": reproduce} if reproduce else {}),
    }


def _summary(tally: Tally) -> None:
    print(f"{tally.examples} examples, {tally.actions} actions in lock-step")
    for title, counter in (
        ("reached", tally.reached),
        ("expected by the ledger", tally.expected),
        ("undecided", tally.undecided),
    ):
        print(f"{title}: " + (", ".join(f"{k} {v}" for k, v in sorted(counter.items())) or "none"))
