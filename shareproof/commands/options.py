"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fixtures.interface.names import FORMS
from shareproof import manual
from spec.requirement import Level

Target = Annotated[str, typer.Option(help=f"{FORMS}.", autocompletion=manual.targets)]
Brokers = Annotated[int, typer.Option(help="Brokers to start: 1 or 3.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Area (ACK) or rule (ACK-07); repeatable, or a,b,c.", autocompletion=manual.rules
    ),
]
Seed = Annotated[
    int | None, typer.Option(help="Random seed; repeats the choices of an earlier run.")
]
LowestLevel = Annotated[
    Level, typer.Option(case_sensitive=False, help="Lowest level of rules that must hold.")
]
Out = Annotated[Path, typer.Option(help="Directory for the reports.")]
Fast = Annotated[bool, typer.Option("--fast", help="Only the fast subset.")]
Drafts = Annotated[bool, typer.Option("--drafts", help="Run draft checks, too.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-n", min=0, help="Number of checks at the same time.")
]
Ledger = Annotated[
    str,
    typer.Option(
        help="Ledger: a shipped name, or a path to a .toml file.", autocompletion=manual.ledgers
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
