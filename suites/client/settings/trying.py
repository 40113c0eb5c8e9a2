"""Tries one setting at one value: the consumer is refused, or what shows on the wire is judged."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Any

from fixtures.clients.adapter import AdapterHang, Refused
from spec.adapter import Capability
from suites.client.harness import Harness
from suites.client.settings.effects import Try, effect
from suites.client.settings.trials import Trial

CLOSES = 20.0
"""Seconds within which a consumer has to close whose settings are none that anybody uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a trial.

    Attributes:
        refusals: What calls were refused with.
        works: Whether the wanted effect showed.
        shown: What showed, in words.
    """

    refusals: tuple[str, ...] = ()
    works: bool = False
    shown: str = ""


async def tried(harness: Harness, trial: Trial) -> Outcome:
    """Open a consumer with a setting, poll, and return what came of it."""
    queue = await harness.queue(1)
    handle = harness.handle()
    shows = trial.setting.shows
    look, script = effect(shows if trial.wanted is not None or "." in shows else "")
    steps = harness.play(*script)
    one = Try(harness, handle, queue, len(harness.tap.exchanges))
    works, shown = False, ""
    try:
        await handle.open(harness.config(handle, queue.group, **_config(trial)))
        await handle.subscribe(queue.topic.name)
        works, shown = await look(one, trial.wanted)
    except Refused as error:
        one.errors.append(error)
    finally:
        harness.tap.script.drop(steps)
    limit = 2.0 if harness.adapter.has(Capability.CLOSE_TIMEOUT) else None
    with contextlib.suppress(Refused, AdapterHang):
        await handle.close(limit, within=CLOSES)
    told = tuple(f"{error.name}: {error.message}" for error in one.errors)
    return Outcome(refusals=told, works=works, shown=shown)


def _config(trial: Trial) -> dict[str, Any]:
    """Return the setting as the adapter takes it: by its own name, or by the protocol's key."""
    setting, value = trial.setting, trial.value
    if setting.key:
        return {setting.key: int(value) if value.isdigit() else value}
    return {"extra": {**setting.beside, setting.name: value}}


def broken(trial: Trial, outcome: Outcome) -> str:
    """Say what is wrong with the outcome of a trial, or nothing."""
    named = any(_names(trial, told) for told in outcome.refusals)
    if outcome.works and trial.wanted is not None:
        return ""
    if named and (trial.wanted is None or trial.may_refuse):
        return ""
    if named:
        return f"{trial.name}: refused, although it is documented"
    if outcome.refusals and not outcome.shown:
        return f"{trial.name}: refused by an error that does not name the setting"
    if trial.wanted is None:
        return f"{trial.name}: not refused; {outcome.shown}"
    return f"{trial.name}: no effect; {outcome.shown}"


def _names(trial: Trial, told: str) -> bool:
    names = {trial.setting.name, trial.setting.called} - {""}
    return any(_plain(name) in _plain(told) for name in names)


def _plain(text: str) -> str:
    """Return a text without what names are written with: ``maxWaitMs`` is ``max.wait.ms``."""
    return re.sub(r"[^a-z0-9]", "", text.lower())
