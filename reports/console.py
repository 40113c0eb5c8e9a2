"""What a run prints at its end: what is unexpected, the counts, and where the time went."""

import io
import sys
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from reports.headlines import out_of_reach
from reports.results import Results, Word

COLOURS: Mapping[Word, str] = {
    "pass": "green",
    "unsupported": "cyan",
    "out of reach": "blue",
    "vacuous": "magenta",
    "unknown": "yellow",
    "fail": "bold red",
    "error": "bold white on red",
    "untested": "dim",
}
MOST_REASONS = 8
"""So many reasons why rules are out of reach are printed; the report has all of them."""

UNWRAPPED = 10_000  # columns of output that goes to no terminal: a row of a table stays one line


def screen(*, stderr: bool = False, soft_wrap: bool = False, highlight: bool = True) -> Console:
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else UNWRAPPED
    return Console(stderr=stderr, soft_wrap=soft_wrap, highlight=highlight, width=width)


def line(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def show(results: Results, console: Console) -> None:
    for notice in results.run.notices:
        console.print(f"[bold yellow]notice[/] {escape(notice)}", soft_wrap=True)
    for error in results.run.errors:
        console.print(f"[bold red]error[/] {escape(error)}", soft_wrap=True)
    for rule in results.unexpected:
        verdict = f"[{COLOURS[rule.verdict]}]{rule.verdict}[/]"
        console.print(f"{verdict} {rule.id} {rule.level} {escape(rule.text)}", soft_wrap=True)
        for text in filter(None, (rule.reason, rule.problem, *rule.witness)):
            console.print(f"    {escape(text)}", soft_wrap=True)
        for check in rule.checks:
            if check.transcript and check.verdict != "pass":
                console.print(f"    frames: {escape(check.transcript)}", soft_wrap=True)
        if rule.reproduce:
            console.print(f"    [dim]$ {escape(rule.reproduce)}[/]", soft_wrap=True)
    for problem in results.problems:
        console.print(f"[bold red]ledger[/] {escape(problem)}", soft_wrap=True)
    _show_counts(results, console)
    _show_time(results, console)


def render_text(results: Results) -> str:
    buffer = io.StringIO()
    show(results, Console(file=buffer, width=100, color_system=None))
    return buffer.getvalue()


def _show_counts(results: Results, console: Console) -> None:
    summary, target = results.summary, results.target
    counts = [f"[{COLOURS[w]}]{summary[w]} {w}[/]" for w in COLOURS if summary[w]]
    name = escape(f"{target.name} ({target.version or 'version unknown'})")
    partial = " [bold red]partial run[/]" if results.run.partial else ""
    console.print(f"{name}: {', '.join(counts) or 'nothing judged'}{partial}", soft_wrap=True)
    extra = [
        (summary["unexpected"], "unexpected"),
        (sum(rule.expected and bool(rule.known_failures) for rule in results.rules), "known"),
        (summary["problems"], "ledger problems"),
        (results.second_tries, "played twice"),
        (len(results.newer_than_target), "introduced by a newer release"),
    ]
    said = ", ".join(f"{count} {what}" for count, what in extra if count)
    if said:
        console.print(said, soft_wrap=True)
    reasons = out_of_reach(results.rules)
    for reason, count in reasons[:MOST_REASONS]:
        console.print(f"{count} out of reach: {escape(reason)}", soft_wrap=True)
    if rest := sum(count for _, count in reasons[MOST_REASONS:]):
        console.print(f"{rest} out of reach for other reasons", soft_wrap=True)


def _show_time(results: Results, console: Console) -> None:
    timing = results.timing
    console.print(
        f"time: {timing.total:.1f} s in all, cluster up after {timing.cluster_start:.1f} s, "
        f"first check after {timing.before_checks:.1f} s, {timing.executions} checks in "
        f"{timing.checks:.1f} s ({timing.work:.0f} s of work)",
        soft_wrap=True,
    )
    table = Table(box=None, show_header=False, padding=(0, 1))
    for slow in timing.slowest[:5]:
        table.add_row(f"{slow.seconds:.1f} s", escape(slow.check.rsplit("/", 1)[-1]))
    if timing.slowest:
        console.print("slowest checks:")
        console.print(table)
