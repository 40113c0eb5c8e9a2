"""``hostile``: run any program in front of the hostile broker, without an adapter and a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shareproof.commands.options import Brokers, Target


def hostile(
    script: Annotated[Path, typer.Argument(help="TOML file of steps; see docs/hostile-broker.md.")],
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM...", help="The program and its arguments.")
    ],
    *,
    target: Target = "reference",
    brokers: Brokers = 1,
    frames: Annotated[int, typer.Option(min=0, help="Lines of frames to print.")] = 0,
    seconds: Annotated[float, typer.Option(min=1, help="Time for the program.")] = 30.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
) -> None:
    """Run a program in front of a broker that misbehaves by a script; print what it asked for.

    SHAREPROOF_BOOTSTRAP, SHAREPROOF_TOPIC and SHAREPROOF_GROUP tell the program where to consume.
    """
    import asyncio

    from fixtures.hostile.script import ScriptError
    from fixtures.targets import UsageFault
    from shareproof.hostile import play

    playing = play(
        script,
        program,
        where=target,
        brokers=brokers,
        frames=frames,
        seconds=seconds,
        seed=seed,
    )
    try:
        code = asyncio.run(playing)
    except ScriptError as error:
        raise UsageFault(str(error)) from None
    raise typer.Exit(code)
