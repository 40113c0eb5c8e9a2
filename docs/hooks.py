"""What the documentation's site has beside written pages: pages made from the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

CAUSES = re.compile(r"<!-- causes: ([\w-]+) -->")
LINK = re.compile(r"\]\(((?:\.\./)+[^)#]+)")
COMPLETION = (
    "`shareproof --install-completion` teaches your shell (bash, zsh, fish, PowerShell) to "
    "complete commands, options, targets, clients, ledgers and rules. "
    "`shareproof --show-completion` prints what it would install. The manual page shareproof(1) "
    "says what is here without a browser: an installation has it in `share/man/man1`, where "
    "`man shareproof` finds it after `pipx install`, and `man .venv/share/man/man1/shareproof.1` "
    "in an environment."
)
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for address, text in (
        ("reference/rules.md", _rules()),
        ("reference/commands.md", _commands()),
    ):
        files.append(File.generated(config, address, content=text))
    for plots in (ROOT / "reports" / "page" / "uplot").glob("uPlot.*"):
        files.append(File.generated(config, f"comparison/{plots.name}", abs_src_path=str(plots)))
    for page in list(files.documentation_pages()):
        for source in _outside(page).values():
            if source.is_file():
                address = f"source/{source.relative_to(ROOT)}"
                files.append(File.generated(config, address, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Fill in causes from ledgers, and let links out of here lead to copies of files."""
    markdown = CAUSES.sub(lambda found: _causes(found[1]), markdown)
    up = "../" * page.file.src_uri.count("/")
    for link, source in _outside(page.file).items():
        markdown = markdown.replace(f"]({link}", f"]({up}source/{source.relative_to(ROOT)}")
    return markdown


def _outside(page: File) -> dict[str, Path]:
    """Return the links of a page that lead out of the documentation, and what they lead to."""
    folder = (ROOT / "docs" / page.src_uri).parent
    found = {link: (folder / link).resolve() for link in LINK.findall(page.content_string)}
    return {link: to for link, to in found.items() if not to.is_relative_to(ROOT / "docs")}


def _causes(ledger: str) -> str:
    """Return a ledger's causes as a table, those that break the most rules first."""
    from spec.profile import load_profile

    profile = load_profile(ledger)
    broken: dict[str, set[str]] = {}
    for entry in profile.expected:
        broken.setdefault(entry.reason, set()).add(entry.requirement)
    rows = [
        f"| {reason.replace('|', 'or')} | {' '.join(sorted(rules))} |"
        for reason, rules in sorted(broken.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    rows += [f"| {one.reason}: *absent* | {' '.join(one.rules)} |" for one in profile.absent]
    return "\n".join(["| cause | rules |", "| --- | --- |", *rows])


def _rules() -> str:
    from spec.requirement import AREAS, load_requirements

    rules = load_requirements().values()
    parts = [
        "# The rules",
        f"{len(rules)} rules. A rule that is *untested* says why no check reaches it yet.",
    ]
    for area, title in AREAS.items():
        parts += [f"## {area}: {title}", "| rule | level | since | sentence | source |"]
        parts[-1] += "\n| --- | --- | --- | --- | --- |"
        for rule in rules:
            if rule.area == area:
                honesty = "" if rule.honesty.value == "required" else f" *({rule.honesty.value})*"
                cells = (rule.id, rule.level.value, rule.since, rule.text, "; ".join(rule.source))
                row = " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells)
                parts[-1] += f"\n| {row.replace(rule.id, rule.id + honesty, 1)} |"
    return "\n\n".join(parts) + "\n"


def _commands() -> str:
    from shareproof.manpage import commands, options
    from shareproof.manual import CODES, EXAMPLES, SETTINGS

    parts = ["# The command line", "What `--help` says, on one page.", CODES, COMPLETION]
    for name, command in commands().items():
        parts += [f"## shareproof {name}", (command.help or "").strip()]
        rows = [
            f"| `{each.words.replace('|', ' or ')}` | {each.meaning.replace('|', ' or ')} |"
            for each in options(name, command)
        ]
        parts.append("\n".join(["| option | |", "| --- | --- |", *rows]))
        parts.append(
            "\n".join(
                f"    shareproof {' '.join((name, *words.split()))}  # {what}"
                for what, words in EXAMPLES[name]
            )
        )
    rows = [f"| `{name}` | {meaning} |" for name, meaning in SETTINGS.items()]
    parts += [
        "## Settings of the environment",
        "\n".join(["| variable | |", "| --- | --- |", *rows]),
    ]
    return "\n\n".join(parts) + "\n"
