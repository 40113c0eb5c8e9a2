"""Examples, exit codes, environment variables, and completions for the command line."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from fixtures.adapters.shipped import SHIPPED
from fixtures.interface.names import DEFAULT_IMAGE, FAKES
from spec.releases import lines
from spec.rule import AREAS, load_rules

EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "broker": (
            ("certify a release", "--target kafka:4.4.0 --out out"),
            ("your own cluster", "--target external:broker1:9092,broker2:9092 --ledger mine.toml"),
            ("some rules, with the seed of an earlier run", "--only ACK,LCK-02 --seed 7"),
            ("a subset in a minute, as JSON", "--fast --json"),
        ),
        "client": (
            ("a shipped adapter", "--client franz-go"),
            ("your own adapter", '--adapter "python my_adapter.py" --ledger mine.toml'),
            ("against another broker", "--client java:4.3.1 --target kafka:4.2.1"),
        ),
        "app": (
            ("your program, on Kafka", "--out out -- python my_consumer.py"),
            ("a release, names in the command", "--target kafka:4.2.1 -- ./app --topic {topic}"),
            ("what is judged after the third attempt", "--attempts 3 --only FRM-05 -- ./app"),
            ("list the scenarios", "--list-scenarios"),
        ),
        "sweep": (
            ("every error, for a shipped adapter", "--client java --out out"),
            ("one case again", "--client java --only ShareFetch/top/UNKNOWN_SERVER_ERROR/lasting"),
            ("one code, wherever it comes", "--adapter ./adapter --only '*/GROUP_ID_NOT_FOUND/*'"),
            ("every setting, or one of them", "--client java --settings --only max.poll.records"),
            ("a broker, by requests at their edges", "--target kafka:4.4.0 --out out"),
        ),
        "hostile": (
            ("your program, and 20 lines of frames", "script.toml --frames 20 -- ./app"),
            ("on Kafka", "script.toml --target kafka:4.4.0 -- python app.py"),
        ),
        "walk": (
            ("two clients in front of the reference broker", "java confluent"),
            ("keep what was said", "java --target kafka:4.4.0 --record walks"),
        ),
        "model": (
            ("two minutes in lock-step with Kafka", ""),
            (
                "another release, and the examples of an earlier run",
                "--target kafka:4.2.1 --seed 7",
            ),
            ("a script that was found", "--replay script.jsonl"),
        ),
        "load": (("one minute of load, with its history", "--seconds 60 --rate 2000 --out run"),),
        "analyse": (
            ("judge a history", "run"),
            ("compare with a fault-free control run", "run --control control"),
            ("on a Spark cluster", "run --master spark://host:7077 --memory 8g"),
        ),
        "chaos": (
            ("random faults from a seed", "--minutes 10 --seed 7 --out run"),
            ("the same faults again", "--schedule run/schedule.json --out again"),
            ("two scenarios", "--scenario leader-change --scenario lock-expiry --out run"),
            ("list the faults", "--list-faults"),
        ),
        "night": (
            ("a night", "--hours 8 --archive nights"),
            ("go on with one that was stopped", "--hours 8 --archive nights --resume"),
            ("shrink a run that broke a rule", "--shrink nights/night-202611260100-7/seed-9"),
        ),
        "finding": (
            ("is it still there", "051 107 --target kafka:4.4.0 --out run"),
            ("all of them, on a build of one's own", "--target kafka:/path/to/kafka --json"),
            ("those of a client", "--client java"),
        ),
        "rejudge": (
            ("which verdicts of earlier nights changed", "nights"),
            ("let the new results take over", "nights --replace --json"),
        ),
        "clean": (
            ("what killed runs left on a cluster", "--target external:broker1:9092 --dry-run"),
            ("remove it", "--command-config client.properties"),
        ),
        "risks": (
            ("a cluster of one's own", "--target external:broker1:9092 --release 4.3.1 --out out"),
            ("a secured one", "--command-config client.properties --json"),
            (
                "each night, but for what is accepted",
                "--accept reset-latest,109 --fail-on duplicate",
            ),
            ("what comes with a release, as it is", "--target kafka:4.4.0"),
        ),
        "up": (
            ("three brokers", "--brokers 3"),
            ("with a property", "--property group.share.record.lock.duration.ms=2000 --json"),
        ),
        "doctor": (("check prerequisites", ""),),
        "list": (("the rules about locks", "--only LCK"), ("all of them, as JSON", "--json")),
        "definitions": (
            ("what 4.4.0 changed for share groups", "4.3.1 4.4.0"),
            ("everything, as JSON", "4.3.1 4.4.0 --all --json"),
        ),
        "report": (
            ("render the page of a run again", "out"),
            ("a site over many runs", "archive --site site"),
            ("what changed between two runs", "yesterday today --diff"),
        ),
    }
)
"""For each command: what an example does, and its arguments."""

CODES = (
    "Exit codes: 0 every required rule holds, or is a known failure; 1 a rule does not hold, "
    "or the ledger is wrong; 2 wrong usage; 3 the suite or the environment failed; 130 interrupted."
)
_CODES_WITHOUT_VERDICT: Mapping[str, str] = MappingProxyType(
    {
        "doctor": "Exit codes: 0 nothing is missing; 2 wrong usage; 3 a prerequisite is missing.",
        "hostile": "Exit code: the program's; 2 wrong usage; 3 suite or environment failed.",
        "walk": "Exit codes: 0 as the protocol has it; 1 something went otherwise; 2 wrong usage.",
        "finding": "Exit codes: 0 none that was played is there; 1 one is; 2 wrong usage; 3 the "
        "suite or the environment failed; 130 interrupted.",
        "rejudge": "Exit codes: 0 no verdict changed; 1 one did; 2 wrong usage; 3 something could "
        "not be judged again.",
        "risks": "Exit codes: 0 no risk of --fail-on or worse is this cluster's own, avoidable and "
        "not accepted; 1 one is; 2 wrong usage; 3 the cluster cannot be reached; 130 interrupted.",
        "clean": "Exit codes: 0 all is removed; 2 wrong usage; 3 something is left, or the cluster "
        "did not respond; 130 interrupted.",
    }
    | dict.fromkeys(
        ("load", "up", "list", "report", "definitions"),
        "Exit codes: 0 done; 2 wrong usage; 3 the suite or the environment failed; "
        "130 interrupted.",
    )
)
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "SHAREPROOF_CACHE": "cache directory for Kafka releases and prepared starts",
        "SHAREPROOF_PORTS": "LOW-HIGH: range of loopback ports for brokers",
        "SHAREPROOF_PATIENCE": "factor for deadlines; above 1 for a slow cluster",
        "SHAREPROOF_MAVEN_REPOSITORY": "mirror of Maven Central for Kafka releases",
        "SHAREPROOF_TOXIPROXY": "path of a Toxiproxy server, for chaos --proxies toxiproxy",
        "SHAREPROOF_CHROMIUM": "the browser of the suite's own tests; none skips them",
        "SHAREPROOF_TOXIPROXY_IMAGE": "Toxiproxy image, for targets container:IMAGE",
        "SHAREPROOF_CDS": "off: start brokers and Spark without a class-data archive",
    }
)
"""The environment variables that we read, and what each is for."""

_TARGETS = (
    *(f"kafka:{line.default}" for line in reversed([*lines().values()])),
    f"container:{DEFAULT_IMAGE}",
    "external:",
    "reference",
    *FAKES,
)


def epilog(command: str) -> str:
    shown = (
        f"{what}: {' '.join(('shareproof', command, *words.split()))}"
        for what, words in EXAMPLES[command]
    )
    return "\n\n".join(("Examples:", *shown, _CODES_WITHOUT_VERDICT.get(command, CODES)))


def targets(incomplete: str) -> list[str]:
    return _starting(incomplete, _TARGETS)


def clients(incomplete: str) -> list[str]:
    return _starting(incomplete, SHIPPED)


def ledgers(incomplete: str) -> list[str]:
    from spec.ledger import shipped  # noqa: PLC0415 - as whole ledgers are read by it

    return _starting(incomplete, shipped())


def rules(incomplete: str) -> list[str]:
    before, comma, last = incomplete.upper().rpartition(",")
    known = list(AREAS)
    if last[:3] in AREAS:
        known += load_rules()
    return [f"{before}{comma}{word}" for word in _starting(last, known)]


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
