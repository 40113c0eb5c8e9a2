"""What a run prints at its end: only what nobody foresaw, the counts, and where the time went."""

from __future__ import annotations

import io
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reports.results import Document

COLOURS = {
    "pass": "green",
    "unsupported": "cyan",
    "vacuous": "magenta",
    "unknown": "yellow",
    "fail": "bold red",
    "error": "bold white on red",
    "untested": "dim",
}
UNWRAPPED = 10_000
"""Columns where nobody looks at a terminal: whoever reads a line with a program wants it whole."""


def screen(*, stderr: bool = False, soft_wrap: bool = False, highlight: bool = True) -> Console:
    """Return a console on standard output or error; only on a terminal it wraps what is long."""
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else UNWRAPPED
    return Console(stderr=stderr, soft_wrap=soft_wrap, highlight=highlight, width=width)


def show(document: Document, console: Console) -> None:
    """Print a run's summary."""
    for fault in document["run"]["faults"]:
        console.print(f"[bold red]fault[/] {escape(fault)}", soft_wrap=True)
    for requirement in document["requirements"]:
        if not requirement["expected"] or requirement["problem"]:
            _show_requirement(requirement, console)
    for problem in document["problems"]:
        console.print(f"[bold red]ledger[/] {escape(problem)}", soft_wrap=True)
    _show_counts(document, console)
    _show_time(document, console)


def render_text(document: Document, width: int = 100) -> str:
    """Return the summary as plain text."""
    buffer = io.StringIO()
    show(document, Console(file=buffer, width=width, color_system=None))
    return buffer.getvalue()


def _show_requirement(requirement: dict[str, Any], console: Console) -> None:
    verdict = requirement["verdict"]
    colour = COLOURS[verdict]
    head = f"{requirement['id']} {requirement['level']}"
    console.print(f"[{colour}]{verdict}[/] {head} {escape(requirement['text'])}", soft_wrap=True)
    lines = [requirement["reason"], requirement["problem"], *requirement["witness"]]
    for line in filter(None, lines):
        console.print(f"    {escape(line)}", soft_wrap=True)
    for check in requirement["checks"]:
        if check["transcript"]:
            console.print(f"    frames: {escape(check['transcript'])}", soft_wrap=True)
    if requirement["reproduce"]:
        console.print(f"    [dim]$ {escape(requirement['reproduce'])}[/]", soft_wrap=True)


def _show_counts(document: Document, console: Console) -> None:
    summary = document["summary"]
    counts = [f"[{COLOURS[w]}]{summary[w]} {w}[/]" for w in COLOURS if summary[w]]
    target = document["target"]
    name = escape(f"{target['name']} ({target['version'] or 'version unknown'})")
    partial = " [bold red]partial run[/]" if document["run"]["partial"] else ""
    console.print(f"{name}: {', '.join(counts) or 'nothing judged'}{partial}", soft_wrap=True)
    foreseen = sum(
        entry["expected"] and bool(entry["ledger"]) for entry in document["requirements"]
    )
    extra = [
        (summary["unexpected"], "unexpected"),
        (foreseen, "foreseen by the ledger"),
        (summary["problems"], "ledger problems"),
        (len(document["later"]), "younger than this release"),
    ]
    said = ", ".join(f"{count} {what}" for count, what in extra if count)
    if said:
        console.print(said, soft_wrap=True)


def _show_time(document: Document, console: Console) -> None:
    timing = document["timing"]
    console.print(
        f"time: {timing['total']:.1f} s in all, cluster up after {timing['cluster_start']:.1f} s, "
        f"first check after {timing['before_checks']:.1f} s, {timing['executions']} checks in "
        f"{timing['checks']:.1f} s ({timing['work']:.0f} s of work)",
        soft_wrap=True,
    )
    table = Table(box=None, show_header=False, padding=(0, 1))
    for slow in timing["slowest"][:5]:
        table.add_row(f"{slow['seconds']:.1f} s", escape(slow["check"].rsplit("/", 1)[-1]))
    if timing["slowest"]:
        console.print("slowest checks:")
        console.print(table)
