"""``python -m tools.frozen``: all that the suite can do, one sorted line each.

For changes that must alter no verdict: print it before and after, and compare with ``diff``.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import typer.main

from chaos.faults import FAULTS
from fixtures.adapters.model.mutants import MUTANTS as CLIENTS
from fixtures.adapters.shipped import SHIPPED
from fixtures.mutants import MUTANTS as KAFKAS
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as BROKERS
from reports.analysis.rules import load_invariants
from shareproof.cli import app
from shareproof.runner.inventory import CLIENT, read_checks
from spec.ledger import load_ledger, shipped
from spec.rule import load_rules
from suites.chaos.scenarios import SCENARIOS
from tools.campaign.player import cases
from tools.documents.generated import ROOT


def _checks() -> Iterator[str]:
    judged: dict[str, list[str]] = {}
    for check in (*read_checks(drafts=True), *read_checks(CLIENT)):
        played = sorted(one.name.removeprefix(check.id) for one in cases(check))
        yield f"check {check.id} rules={','.join(check.rules)} cases={' '.join(played)}"
        for rule in check.rules:
            judged.setdefault(rule, []).append(check.id)
    for rule, one in load_rules().items():
        text = " ".join(one.text.split())
        by = ",".join(judged.get(rule, ()))
        yield f"rule {rule} {one.level} {one.honesty.value} by={by}: {text}"


def _others() -> Iterator[str]:
    broken: dict[str, Mapping[str, Any]] = {
        "reference": BROKERS,
        "client": CLIENTS,
        "kafka": KAFKAS,
        "alteration": ALTERATIONS,
    }
    for kind, known in broken.items():
        for name, one in known.items():
            yield f"broken {kind} {name} rules={','.join(sorted(one.rules))}"
    yield from (f"fault {name}" for name in FAULTS)
    yield from (f"scenario {name}" for name in SCENARIOS)
    yield from (f"invariant {one.id}" for one in load_invariants())
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        options = sorted(option for one in command.params for option in one.opts)
        yield f"command {name} {' '.join(options)}"
    for name in shipped():
        yield from (f"ledger {name} {one}" for one in load_ledger(name).expected)
    pages = chain(
        (ROOT / "reports/page").glob("*.html.jinja"), (ROOT / "reports/site/pages").iterdir()
    )
    yield from (f"page {one.relative_to(ROOT)}" for one in pages)
    yield from (f"adapter {name}" for name in SHIPPED)


if __name__ == "__main__":
    for line in sorted({*_checks(), *_others()}):
        print(line)
