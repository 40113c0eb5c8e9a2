"""The model in lock-step: the reference broker is never accused, a broken one is found and shrunk.

All of it is played in virtual time, so that waiting for locks costs nothing.
"""

import json
from pathlib import Path

import pytest

from fixtures.targets import UsageFault
from shareproof.cli import app
from suites.model.actions import Action, Do, from_text, to_text

ALL = [
    Action(do=Do.PRODUCE, n=5),
    Action(do=Do.FETCH, seat=0, n=2, mode=1, wait=50),
    Action(do=Do.RACE, seat=1, other=2, n=10),
    Action(do=Do.ACK, seat=0, types=(1, 4)),
    Action(do=Do.INTRUDE, seat=1, other=0, types=(1,)),
    Action(do=Do.ACK_ON_FETCH, seat=1, n=5, types=(3, 2)),
    Action(do=Do.CLOSE, seat=1, types=(1,)),
    Action(do=Do.DROP, seat=2),
    Action(do=Do.LEAVE, seat=0),
    Action(do=Do.WAIT, n=1100),
    Action(do=Do.LIMIT, n=3),
    Action(do=Do.DELETE, n=1),
    Action(do=Do.PRODUCE, n=4),
    Action(do=Do.CUT, n=1),
    Action(do=Do.MOVE),
    Action(do=Do.FETCH, seat=2, n=10),
    Action(do=Do.LOOK),
]
"""Every kind of action."""


def main(arguments: list[str]) -> int:
    try:
        return int(app(["model", *arguments], standalone_mode=False) or 0)
    except UsageFault:
        return 2


def test_scripts_are_read_back() -> None:
    assert {action.do for action in ALL} == set(Do)
    assert from_text(f"# why\n\n{to_text(ALL)}") == ALL


@pytest.mark.parametrize(
    "line", ['{"do": "dance"}', "[]", "{", '{"do": "look", "far": 1}', '{"do": "ack", "types": 1}']
)
def test_lines_that_are_no_actions(line: str, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(f'{{"do": "look"}}\n{line}\n', encoding="utf-8")
    assert main(["--replay", str(script), "--target", "reference"]) == 2
    with pytest.raises(ValueError, match="line 2 is no action"):
        from_text(script.read_text(encoding="utf-8"))


def test_every_action_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(to_text(ALL), encoding="utf-8")
    assert main(["--replay", str(script), "--target", "reference"]) == 0
    assert f"{len(ALL)} actions played, everything allowed" in capsys.readouterr().out


def test_the_reference_broker_is_never_accused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--target", "reference", "--seed", "7", "--steps", "150", "--json"]
    assert main([*arguments, "--actions", "30", "--minutes", "10"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["violation"] is None
    assert not told["undecided"]
    assert told["reached"]["redeliveries"] > 0
    assert told["reached"]["acks taken"] > 0


@pytest.mark.parametrize(
    ("mutant", "rules"),
    [
        ("locks-never-end", {"LCK-01", "ACQ-41", "ACQ-25"}),
        ("accept-releases", {"ACK-01", "INV-24", "ACQ-25"}),
    ],
)
def test_mutants_are_found_and_shrunk(
    mutant: str, rules: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, target = tmp_path / "script.jsonl", f"reference:{mutant}"
    arguments = ["--target", target, "--seed", "3", "--minutes", "5", "--json"]
    assert main([*arguments, "--shrinking", "1", "--out", str(script)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["violation"].partition(":")[0] in rules
    assert len(from_text(script.read_text(encoding="utf-8"))) <= 12
    assert main(["--replay", str(script), "--target", target]) == 1
    assert main(["--replay", str(script), "--target", "reference"]) == 0
