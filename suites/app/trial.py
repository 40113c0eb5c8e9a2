"""What is tried, and how: the program's command, what it is told, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from suites.app.load import Template

VARIABLES = {
    "bootstrap": "SHAREPROOF_BOOTSTRAP",
    "topic": "SHAREPROOF_TOPIC",
    "group": "SHAREPROOF_GROUP",
    "output": "SHAREPROOF_OUTPUT",
    "dead_letters": "SHAREPROOF_DEAD_LETTERS",
}
"""What a program is told: the placeholder in its command, and the environment variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is tried, and how.

    Attributes:
        command: The program and its arguments, with placeholders.
        records: How many records it gets in each scenario.
        template: What they look like.
        attempts: The delivery by which the program declares to finish what fails; 0 is none.
        patience: Seconds without progress after which what is not finished never will be.
        grace: Seconds that the program may take to end.
        starting: Seconds that it may take to join the group.
    """

    command: tuple[str, ...]
    records: int = 40
    template: Template = field(default_factory=Template)
    attempts: int = 0
    patience: float = 20.0
    grace: float = 20.0
    starting: float = 60.0


@dataclass(slots=True, kw_only=True)
class Fault:
    """What was done, and when it began."""

    what: str
    at: float


def filled(word: str, told: Mapping[str, str]) -> str:
    """Return a word of a command with its placeholders replaced."""
    for name, value in told.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def uses(command: Sequence[str], name: str) -> bool:
    """Tell whether a command has a placeholder."""
    return any(f"{{{name}}}" in word for word in command)
