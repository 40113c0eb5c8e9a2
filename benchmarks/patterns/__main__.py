"""Compare share group, consumer group and KMQ: ``python -m benchmarks.patterns --out DIR``.

One cluster is started, and every scenario is played on it for each of the three; what came of it is
in DIR/patterns.json, whose schema is benchmarks/patterns/results.schema.json, and of which
benchmarks.patterns.page makes tables. Scenarios take about a minute each on two cores.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.patterns import results
from benchmarks.patterns.stage import PROPERTIES, SCENES, Played, Stage
from benchmarks.patterns.workload import SYSTEMS
from fixtures.clients.cluster import Cluster
from fixtures.targets import DEFAULT_TARGET, Target, TargetOptions, UsageFault, open_target, started
from fixtures.wire.frame import Transcript
from spec.verdict import EnvironmentFault, Undecided


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.patterns",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--target", default=DEFAULT_TARGET, help="a cluster that we start")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=3)
    parser.add_argument(
        "--seconds", type=float, default=12.0, help="of production at a rate, in each such scenario"
    )
    parser.add_argument("--scenes", default=",".join(SCENES), help="which, with commas between")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="which, with commas between")
    parser.add_argument("--out", type=Path, default=Path("out-patterns"), help="a new directory")
    parser.add_argument(
        "--note", default="", help="what is special about this run, for its readers"
    )
    parser.add_argument("--json", action="store_true", help="print the results and nothing else")
    return parser


def _chosen(what: str, text: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or (unknown := [name for name in names if name not in known]):
        said = f"There is no {what} {unknown[0]!r}" if names else f"No {what} was named"
        raise UsageFault(f"{said}; there are {', '.join(known)}.")
    return [name for name in known if name in names]


def _check(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the scenes and systems asked for; raises UsageFault."""
    scenes = _chosen("scene", options.scenes, list(SCENES))
    systems = _chosen("system", options.systems, SYSTEMS)
    if not 5 <= options.seconds <= 600:
        raise UsageFault("--seconds is at least 5 and at most 600: faults need room around them.")
    if options.out.exists() and any(options.out.iterdir()):
        raise UsageFault(f"{options.out} is not empty: name a new directory with --out.")
    if not options.target.startswith("kafka:"):
        raise UsageFault("--target is a Kafka that we start and break, such as kafka:4.4.0.")
    return scenes, systems


async def _play(
    target: Target,
    options: argparse.Namespace,
    scenes: Sequence[str],
    systems: Sequence[str],
    tell: Callable[[str], None],
) -> tuple[list[Played], str]:
    async with Cluster(target.info, transcript=Transcript(keep=0), roams=True) as cluster:
        stage = Stage(target, cluster, options.out, options.seconds)
        found: list[Played] = []
        for number, name in enumerate(scenes, 1):
            tell(f"[{number}/{len(scenes)}] {name}")
            try:
                found += await stage.play(SCENES[name], systems, tell)
            except (EnvironmentFault, Undecided) as error:
                return found, f"{name}: {error}"
        return found, ""


def _run(options: argparse.Namespace) -> dict[str, Any]:
    scenes, systems = _check(options)
    began = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {line}", file=sys.stderr, flush=True)

    target = open_target(
        options.target, TargetOptions(brokers=options.brokers, properties=PROPERTIES)
    )
    options.out.mkdir(parents=True, exist_ok=True)
    tell(f"starting {options.target} with {options.brokers} brokers")
    with started(target):
        played, partial = asyncio.run(_play(target, options, scenes, systems, tell))
    tell("judging the histories")
    document = results.document(played, target, options, partial)
    file = options.out / "patterns.json"
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    tell(f"results are in {file}")
    return document


def main() -> int:
    """Compare; exit code 2 for wrong usage, 3 where machine or cluster failed us."""
    options = _parser().parse_args()
    try:
        document = _run(options)
    except UsageFault as error:
        print(error, file=sys.stderr)
        return 2
    except (EnvironmentFault, Undecided) as error:
        print(error, file=sys.stderr)
        return 3
    if options.json:
        print(json.dumps(document))
    if document["partial"]:
        print(f"Not all was played. {document['partial']}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
