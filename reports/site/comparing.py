"""What changed between two runs, rule by rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.results import RuleResult, Word

KINDS = {
    "fail": "newly failing",
    "error": "newly without a verdict, because the run failed",
    "unknown": "newly undecided",
    "vacuous": "newly vacuous",
    "out of reach": "newly out of reach",
    "unsupported": "newly unsupported",
    "pass": "newly passing",
}
"""What a new verdict is called, in the order a reader wants them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A rule whose verdict changed."""

    rule: RuleResult
    before: Word

    @property
    def word(self) -> Word:
        """The verdict of now."""
        return self.rule.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Changes by :data:`KINDS`, and rules that only one of the two runs judged."""

    changes: Mapping[str, tuple[Change, ...]]
    added: tuple[str, ...]
    dropped: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the changes in numbers, such as ``2 newly failing, 1 newly passing``."""
        told = [f"{len(found)} {KINDS[word]}" for word, found in self.changes.items()]
        told += [f"{len(self.added)} more rules judged"] if self.added else []
        told += [f"{len(self.dropped)} rules not judged this time"] if self.dropped else []
        return ", ".join(told) or "no verdict changed"

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the changes in lines of text: the numbers, and rule by rule what was before."""
        told = [self.sentence]
        for word, found in self.changes.items():
            told += ["", KINDS[word]]
            told += [f"  {one.rule.id} was {one.before}: {one.rule.text}" for one in found]
        for what, names in (("judged now only", self.added), ("judged before only", self.dropped)):
            told += ["", what, f"  {' '.join(names)}"] if names else []
        return tuple(told)

    def to_plain(self) -> dict[str, Any]:
        """Return the changes as JSON can hold them."""
        changed = [
            {"rule": one.rule.id, "before": one.before, "after": one.word}
            for found in self.changes.values()
            for one in found
        ]
        return {"changes": changed, "added": list(self.added), "dropped": list(self.dropped)}


def compare(old: Mapping[str, RuleResult], new: Mapping[str, RuleResult]) -> Comparison:
    """Compare the judged rules of two runs, each by id."""
    changed = [
        Change(rule=rule, before=old[name].verdict)
        for name, rule in new.items()
        if name in old and old[name].verdict != rule.verdict
    ]
    by_word = {word: tuple(each for each in changed if each.word == word) for word in KINDS}
    return Comparison(
        changes={word: found for word, found in by_word.items() if found},
        added=tuple(sorted(new.keys() - old.keys())),
        dropped=tuple(sorted(old.keys() - new.keys())),
    )
