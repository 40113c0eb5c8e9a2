"""The manual page shareproof(1), made of what ``--help`` says.

``python -m shareproof.manpage`` writes ``docs/shareproof.1``, which the wheel installs as
``share/man/man1/shareproof.1``. Generators of manual pages for Click do not know the Click that
Typer has inside, and make a page without examples for each command; one page is easier to search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from shareproof import HOUSE
from shareproof.cli import app
from shareproof.manual import CODES, EXAMPLES, SETTINGS

FILE = HOUSE / "docs" / "shareproof.1"


def page() -> str:
    """Return the page in roff, by the macros of man(7)."""
    whole = typer.main.get_command(app)
    assert isinstance(whole, TyperGroup)
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
        *_options("shareproof", whole),
        ".SH COMMANDS",
    ]
    for name, command in whole.commands.items():
        assert isinstance(command, TyperCommand)
        lines += _command(name, command)
    lines += [".SH EXIT STATUS", _plain(CODES.partition(": ")[2])]
    lines += [".SH ENVIRONMENT", *_list((rf"\fB{name}\fR", is_) for name, is_ in SETTINGS.items())]
    return "\n".join(lines) + "\n"


def _command(name: str, command: TyperCommand) -> Iterator[str]:
    yield f".SS shareproof {name}"
    yield _plain(command.help or "")
    yield from _options(name, command)
    yield ".PP"
    yield "Examples:"
    for what, words in EXAMPLES[name]:
        yield ".PP"
        yield _plain(f"{what}:")
        yield ".EX"
        yield _plain(f"    shareproof {name} {words}".rstrip())
        yield ".EE"


def _options(name: str, command: TyperCommand | TyperGroup) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    told = []
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record and "--help" not in option.opts:
            words, meaning = record
            style = "I" if isinstance(option, TyperArgument) else "B"
            told.append((rf"\f{style}{_plain(words)}\fR", meaning))
    yield from _list(told)


def _list(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in entries:
        yield ".TP"
        yield term
        yield _plain(" ".join(meaning.split()))


def _plain(text: str) -> str:
    """Return text so that roff takes no character of it for a command."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text[:1] in {".", "'"} else text


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
