"""The command line: exit codes, one sentence per failure, JSON, examples, and words to complete."""

import json
import re
import shlex
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fixtures.machine.storage import alone
from fixtures.targets.doctor import Finding
from reports.console import UNWRAPPED, screen
from reports.reader import parse
from shareproof.cli import app
from shareproof.commands import cluster
from shareproof.manual import EXAMPLES, SETTINGS, rules
from shareproof.runner import run
from shareproof.runner.run import Ended
from spec.rule import Level, load_rules
from spec.verdict import EnvironmentFault
from suites.options import Client, RunOptions
from tests.fake import ROOT
from tests.shell import Shell, python, shareproof
from tests.test_results import document, keep
from tools.documents.commands import page

WRONG = r"""
broker --no-such-option | broker --target nonsense | broker --target kafka:3.9.0
broker --target kafka:4.4.0 --brokers 2 | broker --target reference --brokers -1
broker --target reference --workers 100000 | broker --target reference:no-such
broker --target altered:no-such@reference | broker --target reference --broker-option no.such=1
broker --target kfake --broker-option no.such=1 | broker --target reference --broker-jvm=-Xmx1g
broker --target reference --only ADM-01 --tier 1
broker --target reference --topics mine | broker --only NOPE | broker --only ''
broker --level WISH | broker --ledger nobody | broker --profile strict
broker --ledger missing.toml | broker --target kafka:4.4.0 --expect-version 4.3.0
risks --fail-on serious | risks --accept no-such-risk | risks --release new | up --brokers 2
up --property novalue | up --target reference --property no.such=1 | list --only NOPE
report nowhere | report nowhere --diff | report nowhere --json | certify
finding 051 --out /dev/null/out | sweep | sweep --client model --settings --sequences
model --target kafka:./nowhere | walk model --target kafka:./nowhere
hostile nowhere.toml --target kafka:./nowhere -- true | chaos --no-faults --out /dev/null
load --out /dev/null | analyse nowhere --out /dev/null | night --archive /dev/null/nights
night --target external:localhost:1 | hostile /dev/null -- no-such-program
chaos --faults kill-leader --schedule nowhere.json
load --target external:h:1 --conf x | load --target external:h:1 --workers-on nosuch
model --target reference --expect-version x
model --replay nowhere | walk model --record /dev/null/walks | client --client nosuch
client --client model:nosuch | client --adapter no-such-program | client --out /dev/null/out
"""


@pytest.mark.parametrize("line", [each.strip() for each in re.split(r" \| |\n", WRONG.strip())])
def test_wrong_usage_is_one_sentence_and_two(shell: Shell, tmp_path: Path, line: str) -> None:
    extra = ("--out", str(tmp_path / "out")) if line.startswith("broker") else ()
    code, out, err = shell(*shlex.split(line), *extra)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("shareproof: ")


def test_what_is_wrong_with_names_and_files_is_told(shell: Shell, tmp_path: Path) -> None:
    _, _, err = shell("broker", "--out", str(tmp_path), "--target", "reference:lock-never-ends")
    assert "did you mean locks-never-end" in err
    assert "`python -m tools.campaign reference --list`" in err
    assert len(err) < 300
    sentence = f"shareproof: {tmp_path}: no history is there: give the directory of a run.\n"
    assert shell("analyse", str(tmp_path)) == (2, "", sentence)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    _, _, err = shell("broker", "--ledger", str(tmp_path / "x.toml"))
    assert err.splitlines()[-1].startswith(f"shareproof: --ledger {tmp_path / 'x.toml'}: ")
    assert shell("broker", "--out", str(tmp_path))[0] == 2, "a directory of other things stays"


@pytest.mark.parametrize("command", ["broker", "finding", "app", "load", "chaos --no-faults"])
def test_a_second_run_into_a_directory_is_refused(
    shell: Shell, tmp_path: Path, command: str
) -> None:
    words = ("--target", "reference", "--brokers", "1", "--out", str(tmp_path))
    with alone(tmp_path):
        code, _, err = shell(
            *command.split(), *words, *(("--", "true") if command == "app" else ())
        )
    assert (code, "another run writes there" in err) == (2, True)
    assert not [*tmp_path.iterdir()]
    with alone(tmp_path / "new"):
        pass
    assert not [*tmp_path.iterdir()]


def test_being_ended_is_an_interrupt_and_a_defect_of_ours_is_three(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for code, does in ((130, lambda *_: signal.raise_signal(signal.SIGTERM)), (3, dict)):
        monkeypatch.setattr(run, "run_checks", does)
        assert shell("broker", "--target", "reference", "--out", str(tmp_path))[0] == code


@pytest.mark.parametrize("json_flag", [(), ("--json",)])
def test_missing_java_is_three(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, json_flag: tuple[str, ...]
) -> None:
    class NoJava:
        def start(self) -> None:
            raise EnvironmentFault("Java 17 or newer is needed.")

        def stop(self) -> None:
            pass

    monkeypatch.setattr(cluster, "open_target", lambda *_args, **_options: NoJava())

    assert shell("up", *json_flag) == (3, "", "shareproof: Java 17 or newer is needed.\n")


def test_unreachable_cluster_is_three(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    command = ["-m", "shareproof", "broker", "--target", f"external:{address}"]
    how = ["--out", "out", "--json", "--workers", "0", "--only", "ACK-01"]
    ran = python(*command, *how, cwd=tmp_path, timeout=60)
    assert ran.returncode == 3, ran.stderr
    assert address in json.loads(ran.stdout)["run"]["errors"][0]


def test_json_is_all_there_is_on_standard_output(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results = document()

    def ran(options: RunOptions, workers: int | None, console: Any) -> Ended:
        assert (options.only, options.seed, workers) == (("ACK", "LCK-02"), 9, 2)
        console.print("progress")
        return Ended(code=1, results=parse(results), log=tmp_path / "pytest.log")

    monkeypatch.setattr(run, "run_checks", ran)

    code, out, _ = shell("broker", "--only", "ack,LCK-02", "--seed", "9", "-n", "2", "--json")

    assert code == 1
    assert json.loads(out) == results


def test_options_reach_the_run_as_one_value(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[RunOptions] = []

    def ran(options: RunOptions, *_: object) -> Ended:
        given.append(options)
        return Ended(code=0, results=None, log=tmp_path / "pytest.log")

    monkeypatch.setattr(run, "run_checks", ran)
    out = ("--out", str(tmp_path), "--seed", "7")

    shell("broker", *out, "--expect-version", "4.3", "--fast", "--drafts", "--level", "must")
    shell("client", *out, "--client", "java:4.3.1", "--target", "reference", "--ledger", "strict")

    assert given == [
        RunOptions(
            out=str(tmp_path),
            seed=7,
            expect_version="4.3",
            fast=True,
            drafts=True,
            level=Level.MUST,
        ),
        RunOptions(
            out=str(tmp_path),
            seed=7,
            target="reference",
            brokers=1,
            ledger="strict",
            client=Client.from_cli(client="java:4.3.1", adapter=""),
        ),
    ]


def test_list_prints_every_rule_and_no_command_the_help(shell: Shell) -> None:
    code, out, _ = shell("list", "--json")
    assert (code, [entry["id"] for entry in json.loads(out)]) == (0, list(load_rules()))
    code, out, _ = shell("list", "--only", "SEC")
    assert (code, "SEC-01" in out, "ACK-01" in out) == (0, True, False)
    code, out, _ = shell()
    assert (code, "broker" in out) == (2, True)


def test_report_renders_a_finished_run_again_and_builds_a_site(
    shell: Shell, tmp_path: Path
) -> None:
    run, site = tmp_path / "archive" / "one", tmp_path / "site"
    keep(run, document())
    code, out, _ = shell("report", str(run))
    assert (code, out.strip()) == (0, str(run / "report.html"))
    assert "A rule." in (run / "report.html").read_text(encoding="utf-8")
    code, out, _ = shell("report", str(tmp_path / "archive"), "--site", str(site))
    assert (code, out.strip()) == (0, str(site / "index.html"))
    assert (site / "feed.xml").exists()


def test_doctor_reports_in_json_and_keeps_words_in_brackets(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = shell("doctor", "--json")
    findings = json.loads(out)
    assert findings
    assert code == (0 if all(each["ok"] for each in findings if each["needed"]) else 3)
    lacking = Finding(name="a", ok=False, needed=True, detail="x[one]", remedy="x[two]")
    monkeypatch.setattr("fixtures.targets.doctor.examine", lambda: [lacking])
    code, out, _ = shell("doctor")
    assert (code, "x[one]" in out, "x[two]" in out) == (3, True, True)


def test_what_changed_is_told(shell: Shell, tmp_path: Path) -> None:
    before, after = document(), document()
    first = after["rules"][0]
    first["verdict"] = "pass" if first["verdict"] != "pass" else "fail"
    for name, found in (("z-old", before), ("a-new", after)):
        keep(tmp_path / name, found)
    given = ("report", str(tmp_path / "z-old"), str(tmp_path / "a-new"), "--diff")
    code, out, _ = shell(*given)
    was = before["rules"][0]["verdict"]
    assert code == 0
    assert f"{first['id']} was {was}: " in out
    changed = json.loads(shell(*given, "--json")[1])["changes"]
    assert changed == [{"rule": first["id"], "before": was, "after": first["verdict"]}]
    assert shell(*given[:2], "--diff")[0] == 2


# --- What it says of itself -------------------------------------------------------------------

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
VARIABLES = ROOT / "docs" / "environment.md"
LINES = [(name, words) for name, shown in EXAMPLES.items() for _, words in shown]


def completion(typed: str) -> dict[str, str]:
    return {
        "_SHAREPROOF_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }


@pytest.mark.parametrize(("name", "words"), LINES)
def test_examples_are_understood(name: str, words: str) -> None:
    assert set(COMMANDS) == set(EXAMPLES)
    assert COMMANDS[name].make_context(name, shlex.split(words)).params


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("shareproof br", ["broker"]),
        ("shareproof broker --led", ["--ledger"]),
        ("shareproof broker --level M", ["MUST", "MAY"]),
        ("shareproof broker --target ref", ["reference"]),
        ("shareproof broker --only LC", ["LCK"]),
        ("shareproof broker --only ACK,LC", ["ACK,LCK"]),
        ("shareproof client --client kraf", ["krafka"]),
        ("shareproof broker --ledger kf", ["kfake"]),
    ],
)
def test_words_are_completed(typed: str, offered: list[str]) -> None:
    result = CliRunner().invoke(app, [], env=completion(typed), prog_name="shareproof")
    assert result.stdout.split() == offered


def test_a_shell_is_answered_at_once() -> None:
    script = """
import sys
sys.argv = ["shareproof"]
from shareproof.cli import main
try:
    main()
finally:
    print(*sys.modules)
"""
    done = python("-c", script, environment=completion("shareproof cha"))
    offered, modules = done.stdout.splitlines()
    assert offered == "chaos", done.stderr
    costly = {
        "suites.judge",
        "chaos",
        "reports",
        "fixtures.wire",
        "pytest",
        "jinja2",
        "psutil",
        "rich",
    }
    assert not costly & set(modules.split())
    assert rules("ACK")[:2] == ["ACK", "ACK-01"]
    assert "LCK,ACK-02" in rules("lck,ack-0")


def test_the_reference_of_commands_tells_all() -> None:
    text = page()
    for name, command in COMMANDS.items():
        assert f"## shareproof {name}\n" in text
        for option in command.params:
            assert all(each in text for each in option.opts)
    for name, words in LINES:
        assert f"    shareproof {name} {words}".rstrip() in text
    assert all(name in text and meaning in text for name, meaning in SETTINGS.items())


@pytest.mark.skipif(not VARIABLES.exists(), reason="an installation has no documents")
def test_the_documents_have_the_same_variables() -> None:
    rows = re.findall(r"^\| `(SHAREPROOF_\w+)` \| (.*) \|$", VARIABLES.read_text(), re.MULTILINE)
    assert {name: meaning.replace("`", "") for name, meaning in rows} == SETTINGS


@pytest.mark.parametrize("command", ["broker", "chaos", "doctor", ""])
def test_help_is_not_wrapped_for_a_pipe(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, output, _ = shell(*filter(None, (command, "--help")))
    options = output.split("Options:")[1].split("\n\n")[0].strip().splitlines()
    assert [line for line in options if not line.strip().startswith("-")] == []
    assert "--help" in options[-1]


def test_a_table_is_not_wrapped_for_a_pipe() -> None:
    output = shareproof("list", "--only", "ACK", environment={"COLUMNS": "40"}).stdout
    head, *lines = output.splitlines()
    assert head.split() == ["rule", "level", "since", "reached", "text"]
    assert {line.strip()[:4] for line in lines} == {"ACK-"}
    assert max(map(len, lines)) > 100


def test_a_screen_that_is_no_terminal_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert (screen().width, screen(stderr=True).width) == (UNWRAPPED, UNWRAPPED)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert screen().width == 40
