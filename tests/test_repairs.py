"""No rule forbids an obvious repair of what a finding describes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.reference.mutants import REPAIRS

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "docs" / "findings"
ASKED = {"the-later-of-equal-counts": "PER-05,PER-14,PER-16,PER-17,PER-18,PER-33"}
"""The rules that a repair is near to."""


@pytest.mark.parametrize("name", REPAIRS)
def test_no_rule_forbids_a_repair(name: str, tmp_path: Path) -> None:
    """The reference broker with the repair keeps every rule that is near to it."""
    command = ["broker", "--target", f"reference:{name}", "--only", ASKED[name], "--seed", "1"]
    subprocess.run(
        [sys.executable, "-m", "shareproof", *command, "--out", str(tmp_path)],
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))

    broken = {rule["id"]: rule["reason"] for rule in results["requirements"] if rule["problem"]}
    wrong = [rule["id"] for rule in results["requirements"] if rule["verdict"] != "pass"]
    assert broken == {}
    assert wrong == []
    assert [number for number in REPAIRS[name].rules if not [*FINDINGS.glob(f"{number}-*")]] == []
