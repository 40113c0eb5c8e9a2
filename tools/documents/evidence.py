"""Pages that are made from evidence when the site is built: detection, track record, a badge."""

import html
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fixtures.interface.mutant import Mutant
from fixtures.reference.mutants import MUTANTS
from reports.evidence import REFERENCE_MUTANT, Entry
from reports.headlines import BAD, GOOD, Badge
from reports.site.detection import KINDS
from shareproof.detected import BROKEN
from shareproof.detected import detection as detected
from shareproof.runner.inventory import CLIENT, by_rule, read_checks
from spec.catalogue import Past
from spec.rule import load_rules
from tools.campaign.releases import Answers, about, words

LONGEST = 160  # characters of a cell
DETECTION = """\
# Detection

What the checks notice when something is broken on purpose, and what they miss. A mutant is *killed*
when a check reports a rule broken that this mutant does break, while the same check accepts what is
not broken. [How evidence is made](evidence.md) says more.
"""
TRACK_RECORD = """\
# Track record

Defects of Apache Kafka that shareproof finds again on the releases from Maven Central that had
them. Each was confirmed on both sides: the rule is broken on the release named first and holds on
the one named last; where no release is mended, that is one with the [fix](findings/fixes.md) of the
finding. The commands of checks use the ledger `strict`, which expects no failure, so a broken rule
makes them exit with 1. A rule INV is one about whole histories: a [chaos scenario](chaos.md) was
played on the release, and Spark judged what it left. A bug id is our attribution by symptom and
release; where there is none we know of no public report.

`python -m tools.campaign releases --record` finds them again.
"""


def detection(entries: Sequence[Entry]) -> str:
    by_kind: dict[str, list[Entry]] = defaultdict(list)
    for one in entries:
        by_kind[one.kind].append(one)
    parts = [DETECTION]
    for kind, mutants in BROKEN.items():
        title = KINDS[kind]
        parts += [f"## {title[0].upper()}{title[1:]}", _mutants(mutants, by_kind[kind])]
    found = detected(entries)
    rules = [*by_rule(read_checks()), *by_rule(read_checks(CLIENT))]
    killed = sum(rule in found.kills for rule in rules)
    rows = [
        f"What is broken says which rules it breaks. {killed} of {len(rules)} rules have killed",
        "something that breaks this very rule; a broker that answers everything with an error, or",
        "with none, counts for no rule.",
        "",
        "| rule | killed | what was wrong with it | by |",
        "|---|---|---|---|",
    ]
    for rule in sorted(rules):
        shown = f"nothing | {_cell(found.exempt.get(rule, 'nothing of the kind was built'))} |"
        if kill := found.kills.get(rule):
            shown = f"`{kill.name}` | {_cell(kill.sentence)} | `{_short(kill.check)}`"
        rows.append(f"| {rule} | {shown} |")
    parts += ["## Rules, and what died by each", "\n".join(rows)]
    parts += ["## Checks and what each rejects", *_checks(entries)]
    return "\n\n".join(parts) + "\n"


def _mutants(mutants: Mapping[str, Mutant[Any]], entries: Iterable[Entry]) -> str:
    found: dict[str, list[Entry]] = defaultdict(list)
    for one in entries:
        found[one.name].append(one)
    rows = ["| mutant | what is wrong | rule | killed by |", "|---|---|---|---|"]
    for name, mutant in mutants.items():
        rules = mutant.rules
        kills = [one for one in found[name] if one.verdict == "fail" and one.rule in rules]
        why = next((one.reason for one in found[name] if one.verdict == "survived"), "not played")
        if kills:
            first = min(kills, key=lambda one: (rules.index(one.rule), one.check))
            by = f"{first.rule} | `{_short(first.check)}`"
        else:
            by = f" | survives: {_cell(why)}"
        rows.append(f"| `{name}` | {_cell(mutant.sentence)} | {by} |")
    return "\n".join(rows)


def _checks(entries: Iterable[Entry]) -> Iterator[str]:
    files: dict[str, dict[tuple[str, str], Entry]] = defaultdict(dict)
    for one in sorted(entries, key=lambda one: (one.check, one.rule, not one.reason)):
        if one.verdict == "fail" and "::" in one.check:
            files[one.check.partition("::")[0]].setdefault((one.check, one.rule), one)
    for file, checks in files.items():
        rows = ["| check | rule | rejects | because |", "|---|---|---|---|"]
        rows += [
            f"| `{check.partition('::')[2]}` | {rule} | `{one.name}` | {_cell(one.reason)} |"
            for (check, rule), one in checks.items()
        ]
        yield "\n".join([f"### {Path(file).name}", "", *rows])


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    cut = flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
    return html.escape(cut, quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _short(check: str) -> str:
    return check.rpartition("/")[2]


def badge(entries: Iterable[Entry]) -> Badge:
    kills = [one for one in entries if one.kind == REFERENCE_MUTANT and one.name in MUTANTS]
    killed = {one.name for one in kills if one.rule in MUTANTS[one.name].rules}
    whole = len(killed) == len(MUTANTS)
    return Badge("mutants killed", f"{len(killed)} of {len(MUTANTS)}", GOOD if whole else BAD)


def track_record(entries: Iterable[Past], answers: Answers) -> str:
    rules = load_rules()
    rows = ["| bug | what went wrong | rule | broken on | holds on |", "|---|---|---|---|---|"]
    parts: list[str] = []
    for entry in entries:
        bug = entry.bug or (f"finding {entry.finding[:3]}" if entry.finding else "none known")
        mended = entry.mended or "none yet"
        rows.append(f"| {bug} | {entry.title} | {entry.rule} | {entry.seen} | {mended} |")
        sentence = " ".join(rules[entry.rule].text.split())
        question = about(entry, entry.seen)
        parts.append(
            f"## {bug}: {entry.title}\n\n{entry.rule}: {sentence}\n\n"
            f"    $ {shlex.join(words(question, [entry.rule]))}\n"
            f"    {entry.rule} fail: {answers[question][entry.rule].reason}\n"
        )
        if entry.finding:
            parts[-1] += f"\nMore in [findings/{entry.finding}](findings/{entry.finding}.md).\n"
    return "\n".join([TRACK_RECORD, *rows, "", *parts])
