"""What changed between the definitions of two releases, and which rules name what changed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fixtures.definitions.changes import Change, changes, configs_in, messages_in
from fixtures.interface.names import KafkaName, parse_target
from fixtures.machine.maven import kafka_release
from fixtures.targets import UsageFault
from fixtures.targets.arguments import resolve_target
from fixtures.wire.schema import SHARE_APIS
from spec.rule import Kind, Rule

_CARRIERS = ("kafka-clients-", "kafka-share-coordinator-", "kafka-group-coordinator-")
"""The jars that carry message definitions: of requests, and of records in the state topics."""

_SHARE = re.compile(r"share|deadletter|dlq", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    change: Change
    rules: tuple[str, ...]


def compare(old: str, new: str, rules: Mapping[str, Rule], *, everything: bool) -> list[Work]:
    before, after = (_jars(name) for name in (old, new))
    carriers = [[jar for jar in j if jar.name.startswith(_CARRIERS)] for j in (before, after)]
    found = changes(*map(messages_in, carriers))
    work = [Work(change=one, rules=_naming_message(one, rules)) for one in found]
    found = changes(configs_in(before), configs_in(after))
    work += [Work(change=one, rules=_naming_config(one, rules)) for one in found]

    def about_share_groups(change: Change) -> bool:
        api = change.definition.removesuffix("Request").removesuffix("Response")
        return api in SHARE_APIS or bool(_SHARE.search(f"{change.definition} {change.part}"))

    return [one for one in work if everything or one.rules or about_share_groups(one.change)]


def _jars(name: str) -> list[Path]:
    target = parse_target(resolve_target(name if ":" in name else f"kafka:{name}"))
    if not isinstance(target, KafkaName):
        raise UsageFault(f"{name}: give a release of Kafka, such as 4.4.0.")
    return list(kafka_release(target.version).jars)


def _naming_message(change: Change, rules: Mapping[str, Rule]) -> tuple[str, ...]:
    field = change.part.rpartition(".")[2]
    error = change.what.removeprefix("error ") if change.what.startswith("error ") else ""
    place = field or ("Supported errors" if error else "valid versions")
    everything = change.what == "definition"
    return tuple(
        rule.id
        for rule in rules.values()
        if any(
            source.kind is Kind.MESSAGE
            and source.name == change.definition
            and (everything or source.place.rpartition(".")[2] == place)
            and (not error or error in f"{source.says} {rule.text}")
            for source in rule.source
        )
    )


def _naming_config(change: Change, rules: Mapping[str, Rule]) -> tuple[str, ...]:
    """Return the rules that name a key; one without a dot is also a word, such as listeners."""
    key = change.definition.rpartition(" ")[2]
    named = re.compile(rf"(?<![\w.-]){re.escape(key)}(?![\w-]|\.\w)")

    def names(rule: Rule) -> bool:
        texts = [str(source) for source in rule.source if "." in key or source.kind is Kind.DOC]
        return any(named.search(text) for text in (*texts, rule.text if "." in key else ""))

    return tuple(rule.id for rule in rules.values() if names(rule))
