"""docs/detection.md and its badge, made of the record and nothing else.

``python -m suites.detection.page`` writes them; ``shareproof self --record`` does so, too.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

from fixtures.reference.mutants import MUTANTS, Mutant
from spec.requirement import AREAS
from suites.detection import real
from suites.detection.hunting import checks, playable
from suites.detection.playing import HONEST
from suites.detection.record import Record, Rejection

DOCS = Path(__file__).parents[2] / "docs"
PAGE, BADGE, IMAGE = "detection.md", "detection-badge.json", "detection-badge.svg"

HEAD = """\
# Detection

What the suite notices, and what it would miss. A broken broker counts as noticed (*killed*) when a
check reports a rule broken that this broker does break, while the same check, by the same random
choices, accepts the honest one.

This page is made of `suites/self/detection.json`; `shareproof self --record` plays everything again
and writes both. `shareproof self` only plays it, and exits with 1 if a mutant lives or a check
rejects nothing. The reference broker and the checks share one event loop whose time is virtual, so
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
falsify` wrote it into `suites/self/falsified.json`, which has every other check, too.
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


def badge(record: Record) -> str:
    """Return what shields.io wants of an endpoint (https://shields.io/badges/endpoint-badge)."""
    killed = _killed(record)
    colour = "brightgreen" if killed == len(MUTANTS) else "red"
    fields = {"schemaVersion": 1, "label": LABEL, "message": _message(record), "color": colour}
    return json.dumps(fields, indent=1) + "\n"


LABEL = "mutants killed"


def _message(record: Record) -> str:
    return f"{_killed(record)} of {len(MUTANTS)}"


def image(record: Record) -> str:
    """Return the same as a picture."""
    whole = _killed(record) == len(MUTANTS)
    left, right = (7 * len(text) + 10 for text in (LABEL, _message(record)))
    return SVG.format(
        label=LABEL,
        message=_message(record),
        left=left,
        right=right,
        width=left + right,
        colour="#3fb911" if whole else "#d33a2c",
        label_at=left / 2,
        message_at=left + right / 2,
    )


SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"
 aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{left}" height="20" fill="#555"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{label_at}" y="14">{label}</text>
<text x="{message_at}" y="14">{message}</text>
</g>
</svg>
"""


def write(record: Record, folder: Path = DOCS) -> None:
    """Write the page and the badge."""
    for name, text in (
        (PAGE, page(record)),
        (BADGE, badge(record)),
        (IMAGE, image(record)),
    ):
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Record.load())
