"""The command line: thin, and the same exit codes everywhere.

0 all required rules hold or are known failures, 1 a rule does not hold, 2 wrong usage,
3 harness or environment, 130 interrupted.
"""

import signal
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from fixtures.targets import UsageFault
from shareproof import manual
from shareproof.commands import certify, chaos, cluster, pages
from spec.rule import SpecError
from spec.verdict import EnvironmentFault, MixedTargets, Undecided

INTERRUPTED = 130

# Frames and columns are for a terminal; elsewhere help is plain text, and its lines are whole.
_FRAMED = sys.stdout.isatty()

app = typer.Typer(
    name="shareproof",
    help="Certify implementations of Kafka share groups (KIP-932), rule by rule.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if _FRAMED else None,
    context_settings={} if _FRAMED else {"terminal_width": 10_000},
)

COMMANDS: dict[str, Callable[..., None]] = {
    "broker": certify.broker,
    "client": certify.client,
    "finding": certify.finding,
    "sweep": certify.sweep,
    "app": certify.try_app,
    "hostile": certify.hostile,
    "walk": certify.walk,
    "model": certify.model,
    "load": chaos.load,
    "analyse": chaos.analyse,
    "chaos": chaos.chaos,
    "night": chaos.night,
    "rejudge": chaos.rejudge,
    "clean": cluster.clean,
    "risks": cluster.risks,
    "up": cluster.up,
    "doctor": cluster.doctor,
    "list": pages.list_rules,
    "report": pages.report,
    "definitions": pages.definitions,
}

for _name, _command in COMMANDS.items():
    app.command(name=_name, epilog=manual.epilog(_name))(_command)


@app.callback()
def _shareproof(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Certify implementations of Kafka share groups (KIP-932), rule by rule."""
    if version:
        from reports.results import suite_version

        typer.echo(f"shareproof {suite_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        from reports.verdicts import USAGE

        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


def _end(code: int, sentence: str) -> NoReturn:
    print(f"shareproof: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def main() -> NoReturn:
    # Who ends a job wants what Ctrl-C does: what there is kept, and no process left behind.
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells' background jobs ignore it
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    run(app)


def _refuse_old_options(words: list[str]) -> None:
    own = words[: words.index("--")] if "--" in words else words
    if words[:1] != ["model"] and any(word.split("=")[0] == "--profile" for word in own):
        raise UsageFault("--profile is now --ledger.")


def _told(fault: Exception) -> tuple[int, str]:
    """Return the exit code of a failure, and its sentence."""
    from reports.verdicts import FAULT, USAGE

    match fault:
        case typer.TyperException() | UsageFault() | SpecError() | MixedTargets():
            return USAGE, str(getattr(fault, "format_message", fault.__str__)())
        case FileExistsError() | NotADirectoryError() | IsADirectoryError() | PermissionError():
            return USAGE, f"{fault.filename}: {fault.strerror}."
        case Undecided():  # a set-up, such as topics that nobody may create
            return FAULT, f"the run stopped: {fault}"
        case EnvironmentFault():
            return FAULT, str(fault)
    traceback.print_exception(fault)  # Python's own exit code would accuse what is judged
    return FAULT, "the suite itself failed, as above; docs/challenge.md says where to report it."


def run(program: typer.Typer) -> NoReturn:
    """Run a command line; every failure is one sentence on standard error and an exit code."""
    try:
        _refuse_old_options(sys.argv[1:])
        code = program(standalone_mode=False)
        if code == INTERRUPTED:  # Typer's way to say so; what was done so far is written
            _end(code, "interrupted")
    except (typer.Abort, KeyboardInterrupt):
        _end(INTERRUPTED, "interrupted")
    except Exception as fault:
        _end(*_told(fault))
    raise SystemExit(code or 0)
