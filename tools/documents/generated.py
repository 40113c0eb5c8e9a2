"""What mkdocs calls to make the documentation's site of more than ``docs``.

Reference pages are generated from the code: rules, commands, configurations, files; others from
evidence. Written pages get ledgers' causes, what was played, and what their links lead to.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\]\(((?:\.\./)+[^)#]+)")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from reports.evidence import read
    from spec.catalogue import load_track_record
    from tools.campaign.releases import answers
    from tools.documents import commands, evidence

    entries = read()
    badge = evidence.badge(entries)
    for name, text in {
        "reference/rules.md": _rules(),
        "reference/commands.md": commands.page(),
        "reference/configs.md": _configs(),
        "reference/files.md": _files(),
        "detection.md": evidence.detection(entries),
        "track-record.md": evidence.track_record(load_track_record(), answers(entries)),
        "detection-badge.json": badge.endpoint(),
        "detection-badge.svg": badge.picture(),
    }.items():
        files.append(File.generated(config, name, content=text))
    for plots in (ROOT / "reports" / "page" / "uplot").glob("uPlot.*"):
        files.append(File.generated(config, f"comparison/{plots.name}", abs_src_path=str(plots)))
    for page in list(files.documentation_pages()):
        for source in _outside(page).values():
            if source.is_file():
                address = f"source/{source.relative_to(ROOT)}"
                files.append(File.generated(config, address, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    from tools.documents import architecture, chaos

    markdown = re.sub(r"<!-- causes: ([\w-]+) -->", lambda found: _causes(found[1]), markdown)
    if page.file.src_uri == chaos.PAGE.name:
        markdown = chaos.filled(markdown)
    markdown = markdown.replace("<!-- folders -->", architecture.table().rstrip())
    markdown = markdown.replace("<!-- layers -->", architecture.drawn().rstrip())
    up = "../" * page.file.src_uri.count("/")
    for link, source in _outside(page.file).items():
        markdown = markdown.replace(f"]({link}", f"]({up}source/{source.relative_to(ROOT)}")
    return markdown


def _outside(page: File) -> dict[str, Path]:
    folder = (ROOT / "docs" / page.src_uri).parent
    found = {link: (folder / link).resolve() for link in LINK.findall(page.content_string)}
    return {link: to for link, to in found.items() if not to.is_relative_to(ROOT / "docs")}


def _causes(name: str) -> str:
    from spec.ledger import load_ledger

    ledger = load_ledger(name)
    broken: dict[str, set[str]] = {}
    for entry in ledger.expected:
        broken.setdefault(entry.reason, set()).add(entry.rule)
    rows = [
        f"| {reason.replace('|', 'or')} | {' '.join(sorted(rules))} |"
        for reason, rules in sorted(broken.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    rows += [f"| {one.reason}: *absent* | {' '.join(one.rules)} |" for one in ledger.absent]
    return "\n".join(["| cause | rules |", "| --- | --- |", *rows])


def _rules() -> str:
    from spec.rule import AREAS, load_rules

    rules = load_rules().values()
    parts = ["# The rules", f"{len(rules)} rules. An *untested* rule has no check, and a reason."]
    for area, title in AREAS.items():
        parts += [f"## {area}: {title}", "| rule | level | since | sentence | basis | source |"]
        parts[-1] += "\n| --- | --- | --- | --- | --- | --- |"
        for rule in rules:
            if rule.area == area:
                honesty = "" if rule.honesty.value == "required" else f" *({rule.honesty.value})*"
                sources = "; ".join(map(str, rule.source))
                cells = (rule.id, rule.level.value, rule.since, rule.text, rule.basis, sources)
                row = " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells)
                parts[-1] += f"\n| {row.replace(rule.id, rule.id + honesty, 1)} |"
    return "\n\n".join(parts) + "\n"


def _configs() -> str:
    from spec.configs import Scope, configs_of
    from spec.releases import lines

    parts = [
        "# Configurations of share groups",
        "The configurations of each Apache Kafka release, as the checks expect them. A value that "
        "changed is shown with the first release that has it.",
    ]
    for scope, title in ((Scope.BROKER, "Broker"), (Scope.GROUP, "Group"), (Scope.TOPIC, "Topic")):
        columns = ["configuration", "releases", "type", "default", "range"]
        columns += ["dynamic"] if scope is Scope.BROKER else []
        rows = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        by_release = {line.name: configs_of(line, scope) for line in lines().values()}
        for name in dict.fromkeys(name for found in by_release.values() for name in found):
            known = {rel: found[name] for rel, found in by_release.items() if name in found}
            cells = [
                f"`{name}`",
                _when(list(known)),
                list(known.values())[-1].type,
                _over(known, lambda one: f"`{one.default}`" if one.default else "empty"),
                _over(known, _range),
                _over(known, lambda one: "yes" if one.dynamic else "no"),
            ]
            rows.append(f"| {' | '.join(cells[: len(columns)])} |")
        parts += [f"## {title}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _when(releases: list[str]) -> str:
    from spec.releases import lines

    every = list(lines())
    if releases[-1] != every[-1]:
        return f"{releases[0]} to {releases[-1]}"
    return "all" if releases[0] == every[0] else f"{releases[0]} and later"


def _range(config: Any) -> str:
    if config.choice:
        return ", ".join(f"`{one}`" for one in config.choice)
    if config.bounds:
        return " to ".join(f"`{one}`" for one in config.bounds)
    low, high = (("" if end is None else str(end)) for end in (config.low, config.high))
    return f"{low} to {high}" if low and high else f"{low} and more" if low else ""


def _over(known: Mapping[str, Any], text_of: Callable[[Any], str]) -> str:
    values: dict[str, str] = {}
    last = None
    for release, config in known.items():
        if (value := text_of(config)) != last:
            values[release] = last = value
    if len(values) == 1:
        return next(iter(values.values()))
    return "; ".join(f"{value or 'any'} from {release} on" for release, value in values.items())


def _files() -> str:
    from reports.reader import schema as results

    parts = ["# The files of a run", "Fields by path; `[]` is each element of an array."]
    drawn = json.loads((ROOT / "reports/timelines.schema.json").read_text(encoding="utf-8"))
    for name, schema in (("results", results()), ("timelines", drawn)):
        rows = ["| field | type | |", "| --- | --- | --- |", *_fields(schema, schema, "")]
        parts += [f"## {name}.json", schema["description"], "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _fields(whole: Mapping[str, Any], node: Mapping[str, Any], path: str) -> Iterator[str]:
    if "$ref" in node:
        node = whole["$defs"][node["$ref"].rpartition("/")[2]]
    for name, field in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        optional = "" if name in node.get("required", ()) else "; optional"
        meaning = field.get("description", "").replace("|", " or ")
        yield f"| `{here}` | {_type(field)}{optional} | {meaning} |"
        yield from _fields(whole, field, here)
    if isinstance(node.get("items"), Mapping):
        yield from _fields(whole, node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), Mapping):
        yield from _fields(whole, node["additionalProperties"], f"{path}.*")


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    kind = field.get("type", "object")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and isinstance(field.get("items"), Mapping):
        return f"array of {_type(field['items'])}"
    return " or ".join(kinds)
