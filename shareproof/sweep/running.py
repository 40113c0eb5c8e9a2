"""A sweep from its options to its results, with its progress on standard error."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from reports.results import Results
from shareproof.runner.progress import moving_line
from shareproof.sweep.settling import ERRORS, Subject, Sweep, now, settled
from shareproof.sweep.spreading import Swept, spread
from suites.client.sweep.working import TOGETHER, AnyCase, Played
from suites.options import RunOptions


def run(
    options: RunOptions,
    cases: Sequence[AnyCase],
    words: Sequence[str],
    brokers: int,
    console: Console,
    *,
    subject: Subject = ERRORS,
) -> Results:
    """Play cases against a client, and write what they showed to the run's directory.

    Args:
        options: of the run, with the client as it introduced itself.
        cases: to play.
        words: the patterns that chose them.
        brokers: how many hostile brokers there are.
        console: for the line that moves.
        subject: what the cases are about.

    Raises:
        EnvironmentFault: the client or a hostile broker does not start.
    """
    assert options.client is not None
    started, began, interrupted = now(), time.monotonic(), False
    swept: list[Swept] = []
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with _Line(console) as watch:
        try:
            command, seed = options.client.command, options.seed
            at_once = subject.together or TOGETHER
            swept.extend(
                spread(
                    command, cases, seed=seed, brokers=brokers, watch=watch.see, together=at_once
                )
            )
        except KeyboardInterrupt:
            interrupted = True
    order = {case.name: number for number, case in enumerate(cases)}
    return settled(
        Sweep(
            options=options,
            subject=subject,
            words=tuple(words),
            planned=len(cases),
            swept=tuple(sorted(swept, key=lambda one: order[one.played.case])),
            started=started,
            seconds=time.monotonic() - began,
            interrupted=interrupted,
        ),
        out,
    )


class _Line:
    """One line on a terminal that moves; silent when nobody watches."""

    def __init__(self, console: Console) -> None:
        self._progress = moving_line(console, "broken")
        self._task = self._progress.add_task("starting", total=None, broken="")
        self._stage, self._broken = "", 0

    def __enter__(self) -> _Line:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def see(self, stage: str, number: int, played: Played | None) -> None:
        """Note a stage, or a case of it."""
        if stage != self._stage:
            self._stage, self._broken = stage, 0
            self._progress.update(self._task, description=stage, total=number, completed=0)
        if played is not None:
            self._broken += not played.is_clear
            told = f"[bold red]{self._broken} not clear[/]" if self._broken else ""
            self._progress.update(self._task, advance=1, broken=told)
