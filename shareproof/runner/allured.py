"""What a run leaves for Allure beside its results: verdicts as categories, and what was tested.

Allure 2 takes categories and environment from files among the results. Allure 3 takes them from the
``allurerc.json`` that lies above them, so that ``npx allure generate`` in the run's directory makes
a report by area and rule. Its history grows there too, one line for each report that was made.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import allure

from reports.results import Results
from spec.verdict import SEVERITY, Verdict

RESULTS, CONFIG = "allure-results", "allurerc.json"
REPORT, HISTORY = "allure-report", "allure-history.jsonl"

LABEL = "verdict"  # the label of a check that carries its verdict, the worst of its rules

NAMES: Mapping[Verdict, str] = {
    Verdict.FAIL: "fail: the implementation broke a rule",
    Verdict.ERROR: "error: the suite or its machine failed",
    Verdict.UNKNOWN: "unknown: could not be decided",
    Verdict.VACUOUS: "vacuous: the rule was never exercised",
}
"""Categories of unexpected verdicts, in the order a reader wants them."""

UNSUPPORTED = "unsupported: declared absent, and refused"
OUT_OF_REACH = "out of reach: this target cannot be asked"

_MESSAGES: Mapping[Verdict, str] = {
    Verdict.FAIL: ".*Violation.*|.*AssertionError.*",
    Verdict.UNKNOWN: ".*(Undecided|CallTimeout|ConnectionLost).*",
    Verdict.VACUOUS: ".*Vacuous.*",
}
"""How Allure 2, which cannot ask for labels, tells verdicts apart."""


def label(verdicts: Iterable[Verdict]) -> None:
    worst = max(verdicts, key=SEVERITY.index)
    allure.dynamic.label(LABEL, worst.value)  # type: ignore[no-untyped-call]


def write(out: Path, results: Results) -> None:
    folder = out / RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name}={value}" for name, value in _environment(results).items()]
    text = "".join(line.replace("\n", " ") + "\n" for line in lines)
    (folder / "environment.properties").write_text(text, encoding="utf-8")
    ended: Any = {"matchedStatuses": ["failed", "broken"]}
    categories = [
        *({"name": NAMES[one], **ended, "messageRegex": text} for one, text in _MESSAGES.items()),
        {"name": "known failure, unsupported, or out of reach", "matchedStatuses": ["skipped"]},
        {"name": OUT_OF_REACH, **ended, "messageRegex": ".*OutOfReach.*"},
        {"name": NAMES[Verdict.ERROR], "matchedStatuses": ["broken"]},
    ]
    files = {folder / "categories.json": categories, out / CONFIG: _config(results)}
    for file, content in files.items():
        written = json.dumps(content, indent=1, ensure_ascii=False)
        file.write_text(written + "\n", encoding="utf-8")


def _environment(results: Results) -> dict[str, str]:
    run, target, client = results.run, results.target, results.client
    found: dict[str, object] = {
        "target": target.name,
        "version": target.version or "unknown",
        "brokers": target.brokers,
        "ledger": target.ledger,
        "seed": run.seed,
        "exit code": run.exit_code,
        **run.versions,
    }
    if client:
        found |= {"client": f"{client.name} {client.version}", "language": client.language}
    return {name.replace(" ", "_"): str(value) for name, value in found.items()}


def _config(results: Results) -> dict[str, Any]:
    verdicts = [_category(verdict, name, "failed", "broken") for verdict, name in NAMES.items()]
    known = [
        _category(verdict, f"{verdict.value}: known failure", "skipped")
        for verdict in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.VACUOUS)
    ]
    unsupported = _category(Verdict.UNSUPPORTED, UNSUPPORTED, "skipped")
    beyond = _category(Verdict.OUT_OF_REACH, OUT_OF_REACH, "skipped", "failed", "broken")
    title = f"shareproof: {results.target.name}"
    options = {"reportName": title, "groupBy": ["feature", "story"]}
    return {
        "name": title,
        "output": REPORT,
        "historyPath": HISTORY,
        "appendHistory": True,
        "variables": _environment(results),
        "categories": [*verdicts, *known, beyond, unsupported],
        "plugins": {"awesome": {"options": options}},
    }


def _category(verdict: Verdict, name: str, *statuses: str) -> dict[str, Any]:
    matchers = {"labels": {LABEL: f"^{verdict.value}$"}, "statuses": list(statuses)}
    return {"name": name, "matchers": matchers, "groupBy": [{"label": "story"}]}
