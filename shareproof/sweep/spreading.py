"""Spreads cases over processes, each with a hostile broker of its own, and gathers what they show.

What broke a rule, could not be decided, or was in the way when the adapter died is played once more
when everything else is done, a few at a time; that is what counts. If the adapter dies again, each
case that it ran is played alone: one that ends it then, ended the client.
"""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

from spec.verdict import EnvironmentFault
from suites.client.sweep.working import TOGETHER, AnyCase, Played, work

SILENCE = 400.0
"""Seconds without news after which a worker is taken for hung."""

FEW, ALONE = 4, 1
"""Cases at a time when they are played once more, and when the adapter died then, too."""

Watch = Callable[[str, int, Played | None], None]
"""Is told of a stage, its number of cases, and each case that was played in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A case as it counts, and its first try if it was played twice."""

    played: Played
    first: Played | None = None


def spread(
    command: Sequence[str],
    cases: Sequence[AnyCase],
    *,
    seed: int,
    brokers: int,
    watch: Watch,
    together: int = TOGETHER,
) -> Iterator[Swept]:
    """Play cases and yield each when it is decided.

    Args:
        command: the adapter's.
        cases: to play.
        seed: of the random choices.
        brokers: how many hostile brokers there are.
        watch: is told how far it is.
        together: how many cases there are at a time in front of one broker.

    Raises:
        EnvironmentFault: a worker died or hung.
    """
    again: dict[str, Played] = {}
    watch("cases", len(cases), None)
    for played in _played(command, cases, seed, brokers, together):
        watch("cases", len(cases), played)
        if played.is_clear:
            yield Swept(played=played)
        else:
            again[played.case] = played
    if not again:
        return
    watch("once more", len(again), None)
    chosen = [case for case in cases if case.name in again]
    died = set()
    for played in _played(command, chosen, seed, min(brokers, len(chosen)), FEW):
        watch("once more", len(again), played)
        if played.died:
            died.add(played.case)
        else:
            yield Swept(played=played, first=again[played.case])
    if not died:
        return
    watch("alone", len(died), None)
    chosen = [case for case in cases if case.name in died]
    for played in _played(command, chosen, seed, min(brokers, len(chosen)), ALONE):
        watch("alone", len(died), played)
        yield Swept(played=played, first=again[played.case])


def _played(
    command: Sequence[str], cases: Sequence[AnyCase], seed: int, brokers: int, together: int
) -> Iterator[Played]:
    context = multiprocessing.get_context("spawn")
    news: Any = context.Queue()
    shares = [cases[number::brokers] for number in range(brokers)]
    processes = [
        context.Process(
            target=_worker, args=(tuple(command), share, seed, together, news), daemon=True
        )
        for share in shares
        if share
    ]
    with _running(processes):
        for _ in cases:
            yield _next(news, processes)


def _next(news: Any, processes: Sequence[BaseProcess]) -> Played:
    waited = 0.0
    while waited < SILENCE:
        try:
            found = news.get(timeout=1.0)
        except queue.Empty:
            waited += 1.0
            dead = [one.exitcode for one in processes if one.exitcode]
            if dead:
                raise EnvironmentFault(f"a worker of the sweep ended with {dead[0]}") from None
            continue
        if isinstance(found, str):
            raise EnvironmentFault(found)
        played: Played = found
        return played
    raise EnvironmentFault(f"no case ended within {SILENCE:g} s")


def _worker(
    command: Sequence[str], cases: Sequence[AnyCase], seed: int, together: int, news: Any
) -> None:
    try:
        work(command, cases, seed, news.put, together)
    except EnvironmentFault as fault:
        news.put(str(fault))


@contextmanager
def _running(processes: Sequence[BaseProcess]) -> Iterator[None]:
    for process in processes:
        process.start()
    try:
        yield
        for process in processes:
            process.join(30.0)
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join(5.0)
