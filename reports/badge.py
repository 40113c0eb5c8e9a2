"""Badges: what shields.io wants of an endpoint, and the same as a picture of our own."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from reports.results import Results
from reports.verdicts import BROKEN, OK

GOOD, BAD, DIM = "#1a7f37", "#c4212b", "#9a6700"

MOST = 0.9
"""The share of rules that has to hold for a green badge, however well known all other bugs are."""

HALF = 0.5  # the share of rules that the target has to be asked for a green badge


@dataclass(frozen=True, slots=True)
class Badge:
    """A label and what it says, in a colour."""

    label: str
    message: str
    colour: str

    def endpoint(self) -> str:
        """Return the JSON of https://shields.io/badges/endpoint-badge."""
        fields = {"schemaVersion": 1, "label": self.label, "message": self.message}
        return json.dumps(fields | {"color": self.colour}, indent=1) + "\n"

    def picture(self) -> str:
        left, right = (7 * len(text) + 10 for text in (self.label, self.message))
        return _SVG.format(
            label=escape(self.label),
            message=escape(self.message),
            left=left,
            right=right,
            width=left + right,
            colour=self.colour,
            label_at=left / 2,
            message_at=left + right / 2,
        )

    def write(self, out: Path) -> None:
        (out / "badge.json").write_text(self.endpoint(), encoding="utf-8")
        (out / "badge.svg").write_text(self.picture(), encoding="utf-8")


def of_results(results: Results) -> Badge:
    """Return the badge of a run: how many required rules hold, and whether all is as expected.

    A run that was cut short, that failed itself or that judged nothing says so and is never green,
    nor is one with that many known failures, or with most rules out of reach.
    """
    run, summary = results.run, results.summary
    judged = summary["pass"] + summary["fail"] + summary["unknown"] + summary["vacuous"]
    beyond = summary["out of reach"]
    message = f"{summary['pass']} of {judged + beyond} rules"
    message += f", {beyond} out of reach" if beyond else ""
    colour = {OK: GOOD, BROKEN: BAD}.get(run.exit_code, DIM)
    if run.partial or run.errors:
        message, colour = f"{message}, cut short", DIM
    elif not judged:
        message, colour = "nothing could be judged", DIM
    elif run.exit_code == OK:
        message += f", {summary['fail']} known bugs" if summary["fail"] else ""
        enough = not summary["fail"] or summary["pass"] >= MOST * judged
        colour = GOOD if enough and judged >= HALF * (judged + beyond) else DIM
    label = f"share groups, tier {run.tier}" if run.tier else "share groups"
    return Badge(label, message, colour)


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"
 aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{left}" height="20" fill="#444"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{label_at}" y="14">{label}</text>
<text x="{message_at}" y="14">{message}</text>
</g>
</svg>
"""
