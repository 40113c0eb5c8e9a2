"""The manual page shareproof(1), made of what ``--help`` says.

A wheel has it as ``share/man/man1/shareproof.1`` (``tools/documents/hook.py``), and
``python -m tools.documents.manpage`` prints it. Generators of manual pages for Click do not know
the Click that Typer has inside, and make a page without examples for each command; one page is
easier to search.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from shareproof.cli import app
from shareproof.manual import CODES, EXAMPLES, SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option, or an argument, as ``--help`` tells it; ``words`` are its names and its values."""

    words: str
    meaning: str
    positional: bool


def commands() -> dict[str, TyperCommand]:
    return {
        name: command
        for name, command in _whole().commands.items()
        if isinstance(command, TyperCommand)
    }


def options(name: str, command: TyperCommand | TyperGroup) -> list[Option]:
    context = command.context_class(command, info_name=name)
    found = []
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record and "--help" not in each.opts:
            words, meaning = record
            told = " ".join(meaning.split())
            positional = isinstance(each, TyperArgument)
            found.append(Option(words=words, meaning=told, positional=positional))
    return found


def _whole() -> TyperGroup:
    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)
    return whole


def page() -> str:
    lines = [
        '.TH SHAREPROOF 1 "" shareproof "User Commands"',
        ".nr HY 0",  # a name that is broken in two cannot be searched for
        ".ad l",
        ".SH NAME",
        rf"shareproof \- {_plain('certify implementations of Kafka share groups (KIP-932)')}",
        ".SH SYNOPSIS",
        r".B shareproof",
        r"\fICOMMAND\fR [\fIOPTIONS\fR]",
        ".SH DESCRIPTION",
        "How well does a broker, or a client library, implement Kafka share groups?",
        "Each rule is one sentence with its source; each verdict comes with the evidence it rests",
        "on and with the command that runs it again.",
        ".SH OPTIONS",
        *_options("shareproof", _whole()),
        ".SH COMMANDS",
    ]
    for name, command in commands().items():
        lines += [f".SS shareproof {name}", _plain(command.help or "")]
        lines += [*_options(name, command), ".PP", "Examples:"]
        for what, words in EXAMPLES[name]:
            example = _plain(f"    shareproof {name} {words}".rstrip())
            lines += [".PP", _plain(f"{what}:"), ".EX", example, ".EE"]
    lines += [".SH EXIT STATUS", _plain(CODES.partition(": ")[2])]
    lines += [".SH ENVIRONMENT", *_list((rf"\fB{name}\fR", is_) for name, is_ in SETTINGS.items())]
    return "\n".join(lines) + "\n"


def _options(name: str, command: TyperCommand | TyperGroup) -> Iterator[str]:
    yield from _list(
        (rf"\f{'I' if option.positional else 'B'}{_plain(option.words)}\fR", option.meaning)
        for option in options(name, command)
    )


def _list(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in entries:
        yield from (".TP", term, _plain(meaning))


def _plain(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text[:1] in {".", "'"} else text


if __name__ == "__main__":
    print(page(), end="")
