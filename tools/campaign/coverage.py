"""Coverage of Kafka's own share-group code, by a certification, by chaos, and by both.

``python -m tools.campaign coverage --target kafka:4.4.0 --record`` plays both with JaCoCo's agent
in every broker, and writes the release's part of ``docs/coverage.md``. The certification plays what
``--only`` names. What brokers left is in ``out/coverage-RELEASE`` and its folders; what is there is
not played again.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from fixtures.interface.names import KafkaName
from fixtures.machine.java import find_java
from fixtures.targets.broker import VARIABLE, report_jar
from fixtures.targets.kafka import KafkaTarget
from spec.verdict import EnvironmentFault
from tools.campaign.options import Options, Outcome
from tools.campaign.runs import ROOT

PAGE = ROOT / "docs" / "coverage.md"
SCENARIO = "rolling-restart"
_SHARED = "GroupMetadataManager"
"""Serves groups of all kinds: of it, methods about share groups are counted."""
_LEFT_OUT = {"equals", "hashCode", "toString", "compareTo", "<clinit>"}
"""Methods that say nothing about what a broker does."""
_CLASSES = re.compile(
    r"kafka/server/share/.*|org/apache/kafka/(server/share/|coordinator/share/(?!generated)"
    rf"|coordinator/group/modern/share/|coordinator/group/{_SHARED}\b).*"
)


class Line(NamedTuple):
    source: str
    method: str
    number: int
    missed: int  # Of its branches.
    branches: int
    ran: bool


def play(options: Options) -> Outcome:
    version = options.target.partition(":")[2]
    # A class-data archive, if there is none yet, cannot be made by a broker with an agent.
    jars = KafkaTarget(KafkaName(version=version)).prepare().release.jars
    home = ROOT / "out" / f"coverage-{version}"
    only = [word for one in options.only for word in ("--only", one)]
    commands = {"certification": ["broker", *only], "chaos": ["chaos", "--scenario", SCENARIO]}
    counted = {}
    for name, words in commands.items():
        folder, out = home / name, home / f"{name}-run"
        command = [sys.executable, "-m", "shareproof", *words, "--target", options.target]
        command += ["--seed", str(options.seed), "--out", str(out)]
        if not folder.is_dir():
            options.say(f"{name}: {' '.join(command)}")
            folder.mkdir(parents=True)
            env = os.environ | {VARIABLE: str(folder)}
            with Path(f"{out}.log").open("wb") as log:
                subprocess.run(command, stdout=log, stderr=log, env=env, cwd=ROOT, check=False)
        counted[name] = lines(jars, [home / name])
    counted["both"] = lines(jars, [home / name for name in commands])
    told = section(version, counted)
    if options.record:
        head, *old = re.split(r"(?m)^(?=## Kafka )", PAGE.read_text(encoding="utf-8"))
        kept = [one.rstrip() + "\n" for one in old if not one.startswith(f"## Kafka {version}\n")]
        PAGE.write_text(head + "\n".join(sorted([*kept, told], reverse=True)), encoding="utf-8")
    return Outcome(said=[told])


def lines(jars: Iterable[Path], folders: Iterable[Path]) -> list[Line]:
    left = [str(file) for folder in folders for file in folder.glob("*.exec")]
    with tempfile.TemporaryDirectory(prefix="shareproof-coverage-") as room:
        for jar in (zipfile.ZipFile(jar) for jar in jars if jar.name.startswith("kafka")):
            jar.extractall(room, [one for one in jar.namelist() if _CLASSES.fullmatch(one)])
        words = [str(find_java().path), "-jar", str(report_jar()), "report", *left]
        words += ["--classfiles", room, "--xml", f"{room}/found.xml", "--quiet"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode or not left:
            raise EnvironmentFault(f"no report of what brokers ran: {done.stderr.strip()[-300:]}")
        packages = ElementTree.parse(f"{room}/found.xml").iter("package")  # noqa: S314 - our own
        return sorted(line for package in packages for line in _read(package))


def _read(package: ElementTree.Element) -> Iterable[Line]:
    starts: dict[str, dict[int, str]] = {}
    for one in package.iter("class"):
        methods = starts.setdefault(one.get("sourcefilename", ""), {})
        for method in one.iter("method"):
            called = re.sub(r"lambda\$(\w+)\$\d+", r"\1", method.get("name", ""))
            methods[int(method.get("line", 0))] = called.replace("<init>", "constructor")
    for file in package.iter("sourcefile"):
        name = file.get("name", "")
        for line in file.iter("line"):
            number, missed, reached, ran = (int(line.get(n, 0)) for n in ("nr", "mb", "cb", "ci"))
            called = starts[name][max(at for at in starts[name] if at <= number)]
            if called not in _LEFT_OUT and (_SHARED not in name or "share" in called.lower()):
                source = name.removesuffix(".java")
                yield Line(source, called, number, missed, missed + reached, ran > 0)


def section(version: str, counted: dict[str, list[Line]]) -> str:
    both = counted["both"]
    by_class = {name: list(some) for name, some in groupby(both, lambda line: line.source)}
    names = [name for name, some in by_class.items() if any(line.branches for line in some)]
    names.sort(key=lambda name: -sum(line.branches for line in by_class[name]))
    head = ["class", "branches", *counted, "lines"]
    table = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in (*names, ""):
        cells = [f"`{name}`" if name else "all"]
        for some in counted.values():
            mine = [line for line in some if not name or line.source == name]
            total, missed = sum(o.branches for o in mine), sum(o.missed for o in mine)
            cells += [str(total)] * (len(cells) == 1) + [f"{100 * (total - missed) // total} %"]
        cells.append(f"{100 * sum(line.ran for line in mine) // len(mine)} %")
        table.append(f"| {' | '.join(cells)} |")
    left = [f"### Branches of {version} that nothing reaches", ""]
    for name in names:
        some = [one for one in by_class[name] if one.missed]
        of = (f"{one.method}:{one.number} ({one.missed} of {one.branches})" for one in some)
        if places := ", ".join(of):
            left.append(f"- `{name}`: {places}")
    return "\n".join([f"## Kafka {version}", "", *table, "", *left, ""])
