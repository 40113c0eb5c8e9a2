"""``python -m suites.model``: the model in lock-step with a target, or one script played again."""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fixtures.targets import DEFAULT_TARGET, UsageFault
from reports.verdicts import FAULT, USAGE
from spec.verdict import EnvironmentFault, Undecided, Violation
from suites.model.actions import Action, read_script, to_text
from suites.model.environment import Environment, open_environment
from suites.model.lockstep import confirm, run
from suites.model.tally import Plan, Tally

INTERRUPTED = 130
_EVERY = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How long a run is; see :class:`suites.model.tally.Plan`."""

    minutes: float
    steps: int
    actions: int
    shrinking: float


PROFILES = {
    "ci": Profile(minutes=1.5, steps=2_000, actions=40, shrinking=1.0),
    "night": Profile(minutes=480.0, steps=10_000_000, actions=120, shrinking=30.0),
}


def main(arguments: list[str] | None = None) -> int:
    """Run or replay; 0 without a violation, 1 with one, 2 for bad input, 3 for a broken set-up."""
    options = _parser().parse_args(arguments)
    try:
        script = read_script(options.replay) if options.replay else None
        with open_environment(
            options.target,
            brokers=options.brokers,
            seed=options.seed,
            version=options.expect_version,
        ) as field:
            return _run(field, options) if script is None else _replay(field, script)
    except (UsageFault, ValueError, OSError) as error:
        print(f"{error}", file=sys.stderr)
        return USAGE
    except (EnvironmentFault, Undecided) as fault:
        print(f"{fault}", file=sys.stderr)
        return FAULT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suites.model",
        description="Play the model in lock-step with a target, or a script once more.",
    )
    parser.add_argument("--target", default=DEFAULT_TARGET, help="any target of shareproof broker")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=3)
    parser.add_argument("--expect-version", default="", help="the release, where it is not told")
    parser.add_argument("--profile", choices=PROFILES, default="ci", help="minutes, or a night")
    parser.add_argument("--minutes", type=_positive, help="stop after this time")
    parser.add_argument("--steps", type=int, help="stop after this many actions")
    parser.add_argument("--actions", type=int, help="actions in one example")
    parser.add_argument("--shrinking", type=_positive, help="minutes for finding a short script")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--out", type=Path, help="file for the script of a violation")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play this script once")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def _positive(text: str) -> float:
    if (value := float(text)) <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _run(field: Environment, options: argparse.Namespace) -> int:
    profile = PROFILES[options.profile]
    plan = Plan(
        seed=options.seed,
        minutes=options.minutes or profile.minutes,
        steps=options.steps or profile.steps,
        actions=options.actions or profile.actions,
        shrinking=options.shrinking or profile.shrinking,
    )
    said = f"seed {plan.seed}, target {options.target}, release {field.release.name}"
    print(said, file=sys.stderr, flush=True)
    tally = run(field, plan, Progress())
    again = confirm(field, tally) if tally.violation else ""
    out = _written(options, tally) if tally.violation else None
    if options.json:
        print(json.dumps(_document(options, tally, out), indent=1))
    else:
        _summary(tally)
    if out is None:
        return 0
    if not options.json:
        print(
            f"{tally.violation}\n{again}\n{to_text(tally.failing)}reproduce: {_again(options, out)}"
        )
    return 1


class Progress:
    """Says now and then how far a run is, and at once what it has found."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._found = False

    def __call__(self, tally: Tally) -> None:
        """Say it, if it is time."""
        now, line = time.monotonic(), f"{tally.examples} examples, {tally.actions} actions"
        if tally.violation and not self._found:
            line = (
                f"{tally.violation}\nlooking for a script shorter than {len(tally.failing)} actions"
            )
        elif tally.violation:
            line = f"{len(tally.failing)} actions: {tally.violation}"
        if now - self._last >= _EVERY or (tally.violation and not self._found):
            self._last, self._found = now, bool(tally.violation)
            print(line, file=sys.stderr, flush=True)


def _written(options: argparse.Namespace, tally: Tally) -> Path:
    out: Path = options.out or Path(tempfile.mkdtemp(prefix="shareproof-model-")) / "script.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    told = f"# {tally.violation}\n# {options.target}, seed {options.seed}\n"
    out.write_text(told + to_text(tally.failing), encoding="utf-8")
    return out


def _again(options: argparse.Namespace, out: Path) -> str:
    command = ["python", "-m", "suites.model", "--target", options.target]
    command += ["--brokers", str(options.brokers), "--seed", str(options.seed)]
    return shlex.join([*command, "--replay", str(out)])


def _document(options: argparse.Namespace, tally: Tally, out: Path | None) -> dict[str, object]:
    document: dict[str, object] = {
        "seed": options.seed,
        "target": options.target,
        "examples": tally.examples,
        "actions": tally.actions,
        "reached": dict(sorted(tally.reached.items())),
        "expected": dict(tally.expected),
        "undecided": dict(tally.undecided),
        "violation": tally.violation or None,
    }
    if out is not None:
        script = [json.loads(str(action)) for action in tally.failing]
        document |= {"script": script, "reproduce": _again(options, out)}
    return document


def _summary(tally: Tally) -> None:
    print(f"{tally.examples} examples, {tally.actions} actions in lock-step")
    for title, counter in (
        ("reached", tally.reached),
        ("expected by the ledger", tally.expected),
        ("undecided", tally.undecided),
    ):
        print(f"{title}: " + (", ".join(f"{k} {v}" for k, v in sorted(counter.items())) or "none"))


def _replay(field: Environment, script: list[Action]) -> int:
    try:
        player = field.replay(script)
    except Violation as violation:
        print(f"{violation}")
        return 1
    print(f"{len(player.script)} actions played, everything allowed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
