"""Whether Allure makes a report of what a run left, and whether that tells what the run tells.

``python -m tools.allure_report RUN`` makes a report in the run's directory with Allure 3, which
``npx`` gets from npm's registry, and compares the two: how many checks ended in which way, how many
are in which category, and who was judged. It ends with 1 if the report tells anything else, with
2 if there is no such run, and with 3 if the report cannot be made.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fixtures.machine import network
from fixtures.targets import doctor
from shareproof.runner.allured import CONFIG, REPORT, RESULTS
from spec.verdict import EnvironmentFault

ALLURE = "allure@3.18.0"
STATUSES = ("passed", "failed", "broken", "skipped", "unknown")
# npm's codes for a registry that it does not reach, or that refuses it.
UNREACHED = re.compile(
    r"CERT|UNABLE_TO|^E(401|403|5\d\d|CONN|TIMEDOUT|NOTFOUND|AI_AGAIN|PROTO|HOST|NET|RR_SOCKET)"
)
TIMEOUT = 600.0
Tally = Mapping[str, Mapping[str, Any]]
"""Statuses, categories and environment, on which a run and its report have to agree."""


class Unreached(EnvironmentFault):
    """npm's registry cannot be reached, so that there is no Allure to make a report with."""


def make(run: Path) -> Path:
    npx = shutil.which("npx")
    if npx is None:
        raise EnvironmentFault("there is no npx; pip install 'shareproof[allure]' brings Node.js")
    try:
        done = subprocess.run(
            [npx, "--yes", ALLURE, "generate", RESULTS],
            cwd=run,
            env=network.fetching(),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(f"npx {ALLURE} did not end in {TIMEOUT:g} s") from None
    if code := re.search(r"^npm error code (\w+)", done.stderr, re.MULTILINE):
        kind = Unreached if UNREACHED.search(code[1]) else EnvironmentFault
        reason = f"npx could not get {ALLURE} from npm's registry: {code[1]}"
        raise kind(f"{reason}. {network.advice('npm')}")
    if done.returncode:
        reason = (done.stdout + done.stderr)[-1000:]
        raise EnvironmentFault(f"{ALLURE} ended with {done.returncode}: {reason}")
    return run / REPORT


def expected(run: Path) -> Tally:
    config = _load(run / CONFIG)
    # Of a check that ran more than once Allure shows the last run.
    results = sorted(map(_load, (run / RESULTS).glob("*-result.json")), key=lambda one: one["stop"])
    last = {result.get("historyId", result["uuid"]): result for result in results}.values()
    return {
        "statuses": Counter(result["status"] for result in last),
        "categories": Counter(
            category["name"]
            for result in last
            for category in config["categories"]
            if _matches(result, category["matchers"])
        ),
        "environment": config["variables"],
    }


def reported(report: Path) -> Tally:
    stats = _load(report / "summary.json")["stats"]
    tree = _load(report / "widgets" / "categories.json")
    roots = [tree["nodes"][root] for root in tree["roots"]]
    environment = _load(report / "widgets" / "allure_environment.json")
    return {
        "statuses": {word: stats[word] for word in STATUSES if stats.get(word)},
        "categories": {root["name"]: root["statistic"]["total"] for root in roots},
        "environment": {one["name"]: ", ".join(one["values"]) for one in environment},
    }


def _matches(result: Mapping[str, Any], matchers: Mapping[str, Any]) -> bool:
    labels = {label["name"]: label["value"] for label in result["labels"]}
    return result["status"] in matchers["statuses"] and all(
        re.search(pattern, labels.get(name, "")) for name, pattern in matchers["labels"].items()
    )


def differences(wanted: Tally, found: Tally) -> list[str]:
    return [
        f"its {part} are {dict(found[part])}, those of the run {dict(wanted[part])}"
        for part in wanted
        if found[part] != wanted[part]
    ]


def _load(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.allure_report", description=__doc__)
    parser.add_argument("run", type=Path, help="what a run left: the directory named by its --out")
    run: Path = parser.parse_args(arguments).run
    if not ((run / CONFIG).is_file() and (run / RESULTS).is_dir()):
        parser.error(f"{run} has no {RESULTS} with {CONFIG}; run shareproof broker --out {run}")
    try:
        if lacks := doctor.missing("npm"):
            raise Unreached(lacks)
        report = make(run)
    except EnvironmentFault as fault:
        if isinstance(fault, Unreached):
            doctor.not_run("Allure's report of the run", str(fault))
        print(f"tools.allure_report: {fault}", file=sys.stderr)
        return 3
    wanted = expected(run)
    if wrong := differences(wanted, reported(report)):
        print(f"tools.allure_report: {report} is wrong: {'; '.join(wrong)}", file=sys.stderr)
        return 1
    statuses, categories = dict(wanted["statuses"]), dict(wanted["categories"])
    print(f"{report / 'index.html'}: {statuses}; {categories}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
