"""The trials of a library's settings: one for each value, with the rule that it is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from spec.settings import Setting, Settings

TAKES_EFFECT, REFUSED, FOREIGN = "CLI-124", "CLI-125", "CLI-94"
RULES = (TAKES_EFFECT, REFUSED, FOREIGN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A consumer that is opened with one setting at one value.

    Attributes:
        setting: The setting.
        value: Its value.
        rule: What it is judged by.
        wanted: What has to show on the wire; None if the value has to be refused.
        may_refuse: Whether a refusal is as good.
    """

    setting: Setting
    value: str
    rule: str
    wanted: Any = None
    may_refuse: bool = False

    @property
    def name(self) -> str:
        """What selects it on the command line."""
        return f"{self.setting.name}={self.value}"


def trials(settings: Settings) -> list[Trial]:
    """Return the trials of all settings."""
    return [trial for setting in settings.settings for trial in _of(setting)]


def chosen(found: Sequence[Trial], words: Sequence[str]) -> list[Trial]:
    """Return the trials that names or patterns such as ``fetch.*`` or ``*=-1`` mean."""
    wanted = [word if "=" in word else f"{word}=*" for word in words]
    return [one for one in found if not words or any(fnmatchcase(one.name, w) for w in wanted)]


def _of(setting: Setting) -> Iterator[Trial]:
    for value, wanted in setting.values.items():
        yield Trial(setting=setting, value=value, rule=TAKES_EFFECT, wanted=wanted)
    for value, wanted in setting.either.items():
        yield Trial(setting=setting, value=value, rule=TAKES_EFFECT, wanted=wanted, may_refuse=True)
    for value in setting.refused:
        yield Trial(setting=setting, value=value, rule=FOREIGN if setting.foreign else REFUSED)
