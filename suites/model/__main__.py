"""``python -m suites.model``: the model in lock-step with a target, or one script played again."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fixtures.targets import DEFAULT_TARGET, UsageFault, open_target
from fixtures.targets.info import ClusterInfo
from reports.verdicts import FAULT, USAGE
from spec.verdict import EnvironmentFault, Undecided, Violation
from suites.model.actions import read_script, to_text
from suites.model.lockstep import Field, Plan, run
from suites.model.machine import Tally

PROFILES = {"ci": (2.0, 2_000), "night": (240.0, 10_000_000)}
"""Minutes and actions after which a run ends, whichever comes first."""


def main(arguments: list[str] | None = None) -> int:
    """Run or replay; 0 without a violation, 1 with one, 2 for bad input, 3 for a broken set-up."""
    options = _parser().parse_args(arguments)
    try:
        with _target(options) as info:
            field = Field(info, options.seed, options.expect_version)
            try:
                return _replay(field, options) if options.replay else _run(field, options)
            finally:
                field.close()
    except (UsageFault, ValueError, OSError) as error:
        print(f"{error}", file=sys.stderr)
        return USAGE
    except (EnvironmentFault, Undecided) as fault:
        print(f"{fault}", file=sys.stderr)
        return FAULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m suites.model", description="Play the model in lock-step with a target."
    )
    parser.add_argument("--target", default=DEFAULT_TARGET)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--expect-version", default="", help="the release, where it is not told")
    parser.add_argument("--profile", choices=PROFILES, default="ci")
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--steps", type=int, help="stop after this many actions")
    parser.add_argument("--actions", type=int, default=40, help="actions in one example")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--out", type=Path, help="where the script of a violation goes")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play this script once")
    return parser


@contextlib.contextmanager
def _target(options: argparse.Namespace) -> Iterator[ClusterInfo]:
    target = open_target(options.target, brokers=options.brokers)
    try:
        target.start()
        yield target.info
    finally:
        target.stop()


def _run(field: Field, options: argparse.Namespace) -> int:
    minutes, steps = PROFILES[options.profile]
    plan = Plan(
        seed=options.seed,
        minutes=options.minutes or minutes,
        steps=options.steps or steps,
        actions=options.actions,
    )
    print(f"seed {plan.seed}, target {options.target}, release {field.release.name}", flush=True)
    tally = run(field, plan, _progress)
    _summary(tally)
    if not tally.violation:
        return 0
    out = options.out or Path(tempfile.mkdtemp(prefix="shareproof-model-")) / "script.jsonl"
    out.write_text(to_text(tally.failing), encoding="utf-8")
    again = ["python", "-m", "suites.model", "--target", options.target, "--replay", str(out)]
    print(f"{tally.violation}\n{to_text(tally.failing)}reproduce: {shlex.join(again)}")
    return 1


def _progress(tally: Tally) -> None:
    print(f"{tally.examples} examples, {tally.actions} actions", file=sys.stderr, flush=True)


def _summary(tally: Tally) -> None:
    print(f"{tally.examples} examples, {tally.actions} actions in lock-step")
    for title, counter in (
        ("reached", tally.reached),
        ("foreseen by the ledger", tally.foreseen),
        ("undecided", tally.undecided),
    ):
        print(f"{title}: " + (", ".join(f"{k} {v}" for k, v in sorted(counter.items())) or "none"))


def _replay(field: Field, options: argparse.Namespace) -> int:
    script = read_script(options.replay)
    try:
        player = field.replay(script)
    except Violation as violation:
        print(f"{violation}")
        return 1
    print(f"{len(player.script)} actions played, everything allowed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
