"""The reference of commands, made of what ``--help`` says."""

from typing import Any

from typer.main import get_command

from shareproof.cli import app
from shareproof.manual import CODES, EXAMPLES, SETTINGS

COMPLETION = (
    "`shareproof --install-completion` installs completion of commands, options, targets, clients, "
    "ledgers and rules for your shell (bash, zsh, fish, PowerShell). "
    "`shareproof --show-completion` prints it instead."
)


def page() -> str:
    whole: Any = get_command(app)
    parts = ["# The command line", "The output of `--help` for every command.", CODES, COMPLETION]
    for name, command in whole.commands.items():
        parts += [f"## shareproof {name}", (command.help or "").strip()]
        context = command.context_class(command, info_name=name)
        records = (
            each.get_help_record(context)
            for each in command.get_params(context)
            if "--help" not in each.opts
        )
        rows = [
            f"| `{words.replace('|', ' or ')}` | {' '.join(meaning.split()).replace('|', ' or ')} |"
            for words, meaning in filter(None, records)
        ]
        parts.append("\n".join(["| option | |", "| --- | --- |", *rows]))
        parts.append(
            "\n".join(
                f"    shareproof {' '.join((name, *words.split()))}  # {what}"
                for what, words in EXAMPLES[name]
            )
        )
    rows = [f"| `{name}` | {meaning} |" for name, meaning in SETTINGS.items()]
    parts += ["## Environment variables", "\n".join(["| variable | |", "| --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"
