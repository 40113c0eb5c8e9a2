"""What written pages of the documentation's site get: ledgers' causes, what was played, files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

CAUSES = re.compile(r"<!-- causes: ([\w-]+) -->")
LINK = re.compile(r"\]\(((?:\.\./)+[^)#]+)")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages lead to outside of the documentation."""
    for plots in (ROOT / "reports" / "page" / "uplot").glob("uPlot.*"):
        files.append(File.generated(config, f"comparison/{plots.name}", abs_src_path=str(plots)))
    for page in list(files.documentation_pages()):
        for source in _outside(page).values():
            if source.is_file():
                address = f"source/{source.relative_to(ROOT)}"
                files.append(File.generated(config, address, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Fill in causes and what was played, and let links out of here lead to copies of files."""
    from tools.documents import architecture, chaos

    markdown = CAUSES.sub(lambda found: _causes(found[1]), markdown)
    if page.file.src_uri == chaos.PAGE.name:
        markdown = chaos.filled(markdown)
    markdown = markdown.replace("<!-- folders -->", architecture.table().rstrip())
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
