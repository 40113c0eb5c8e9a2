"""docs/detection.md and its badge, made of the record and nothing else.

``python -m tools.detection.page`` writes them; ``python -m tools.detection --record`` does so, too.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

from fixtures.reference.mutants import MUTANTS, Mutant
from reports.badge import BAD, GOOD, Badge
from spec.requirement import AREAS
from tools.detection import real
from tools.detection.hunting import checks, playable
from tools.detection.playing import HONEST
from tools.detection.record import Record, Rejection

DOCS = Path(__file__).parents[2] / "docs"
PAGE, BADGE, IMAGE = "detection.md", "detection-badge.json", "detection-badge.svg"

HEAD = """\
# Detection

What the suite notices, and what it would miss. A broken broker counts as noticed (*killed*) when a
check reports a rule broken that this broker does break, while the same check, by the same random
choices, accepts the honest one.

This page is made of `evidence/detection.json`; `python -m tools.detection --record` plays all of it
again and writes both. Without `--record` it exits with 1 if a mutant lives or a check rejects
nothing. The reference broker and the checks share one event loop whose time is virtual, so
one seed gives one transcript, on any machine.
"""


def page(record: Record) -> str:
    """Return the page."""
    parts = [HEAD, *_figures(record), "## Mutants of the reference broker\n", *_mutants(record)]
    parts += ["## What each check rejects\n", CHECKS_SAY, *_checks(record), real.section()]
    return "\n".join(parts)


def _killed(record: Record) -> int:
    return sum(any(record.killers(name)) for name in MUTANTS)


def _figures(record: Record) -> Iterator[str]:
    played = [
        check
        for check in playable()
        if check in record.accepts and record.accepts[check].target == HONEST
    ]
    killing = [c for c in played if any(one.mutant for one in record.rejects.get(c, {}).values())]
    lied = [c for c in played if c not in killing and record.rejects.get(c)]
    yield "| | |\n|---|---|"
    yield f"| mutants of the reference broker killed | {_killed(record)} of {len(MUTANTS)} |"
    yield f"| checks played against it | {len(played)} |"
    yield f"| of these: noticed a mutant | {len(killing)} |"
    yield f"| of these: noticed a lie told in front of it | {len(lied)} |\n"
    yield BEYOND


BEYOND = """\
Checks that kill, restart or reconfigure brokers, need TLS or run Kafka's own tools are out of the
reference broker's reach. What made each of those fail is a lie told in front of real Kafka; `tox -e
falsify` wrote it into `evidence/falsified.json`, which has every other check, too.
"""


def _mutants(record: Record) -> Iterator[str]:
    for area, meaning in AREAS.items():
        broken = [one for one in MUTANTS.values() if one.rules[0][:3] == area]
        if broken:
            yield f"### {area}: {meaning}\n"
            yield "| mutant | what is wrong | rule | killed by | noticed by |"
            yield "|---|---|---|---|---|"
            yield from (_mutant(one, record) for one in broken)
            yield ""


def _mutant(mutant: Mutant, record: Record) -> str:
    killers = sorted(record.killers(mutant.name), key=lambda kill: _draft(kill[0]))
    target = f"reference:{mutant.name}"
    noticed = sum(target in found for found in record.rejects.values())
    if not killers:
        return f"| `{mutant.name}` | {mutant.sentence} | | **nobody** | {noticed} |"
    check, seen = killers[0]
    by = f"`{_short(check)}`{' (a draft)' if _draft(check) else ''}"
    return f"| `{mutant.name}` | {mutant.sentence} | {seen.rule} | {by} | {noticed} |"


def _draft(check: str) -> bool:
    return check in checks() and checks()[check].draft


CHECKS_SAY = """\
One broken broker for each check, in the check's own words. `altered:LIE@reference` is the honest
reference broker behind a proxy that tells that lie.
"""


def _checks(record: Record) -> Iterator[str]:
    file = ""
    for check in playable():
        found = record.noticed(check)
        if not found:
            continue
        home, _, name = check.rpartition("/")[2].partition("::")
        if home != file:
            file = home
            yield f"\n### {file}\n\n| check | rejects | rule | because |\n|---|---|---|---|"
        yield _check(name, found)
    yield ""


def _check(name: str, found: list[Rejection]) -> str:
    seen = found[0]
    return f"| `{name}` | `{seen.target}` | {seen.rule} | {_cell(seen.sentence)} |"


def _cell(text: str, longest: int = 160) -> str:
    flat = " ".join(text.split())
    cut = flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
    return html.escape(cut, quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _short(check: str) -> str:
    return check.rpartition("/")[2]


def badge(record: Record) -> Badge:
    """Return how many mutants are killed; green when all are."""
    killed = _killed(record)
    return Badge(
        "mutants killed",
        f"{killed} of {len(MUTANTS)}",
        GOOD if killed == len(MUTANTS) else BAD,
    )


def write(record: Record, folder: Path = DOCS) -> None:
    """Write the page and the badge."""
    for name, text in (
        (PAGE, page(record)),
        (BADGE, badge(record).endpoint()),
        (IMAGE, badge(record).picture()),
    ):
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Record.load())
