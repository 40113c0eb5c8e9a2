"""``model``: play the model in lock-step with a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET
from shareproof.commands.options import AsJson, Brokers, Seed, Target


def model(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    expect_version: Annotated[
        str, typer.Option(help="The release, where the target does not tell it.")
    ] = "",
    profile: Annotated[str, typer.Option(help="How long: ci (minutes) or night.")] = "ci",
    minutes: Annotated[float, typer.Option(min=0, help="Stop after this time.")] = 0.0,
    steps: Annotated[int, typer.Option(min=0, help="Stop after this many actions.")] = 0,
    actions: Annotated[int, typer.Option(min=0, help="Actions in one example.")] = 0,
    shrinking: Annotated[
        float, typer.Option(min=0, help="Minutes for finding a short script.")
    ] = 0.0,
    seed: Seed,
    out: Annotated[Path | None, typer.Option(help="File for the script of a violation.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Play this script once.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play the model in lock-step with a target: random actions, each judged at once."""
    from suites.model.run import ModelOptions, play

    options = ModelOptions(
        target=target,
        brokers=brokers,
        expect_version=expect_version,
        profile=profile,
        minutes=minutes,
        steps=steps,
        actions=actions,
        shrinking=shrinking,
        seed=seed,
        out=out,
        replay=replay,
        as_json=as_json,
    )
    raise typer.Exit(play(options))
