"""Hooks on real Kafka: brokers of somebody's cluster go away and come back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from tests.fake import ROOT
from tools.vanilla import hooks

RULES = {"LAG-13": "pass", "PER-42": "pass", "PER-44": "out of reach"}


def test_hooks_open_the_rules_about_failover(tmp_path: Path) -> None:
    target = open_target(DEFAULT_TARGET, TargetOptions(brokers=3, shipped=True))
    target.start()
    try:
        where = ",".join(target.info.bootstrap)
        with hooks(target) as file:
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "shareproof", "broker", "--only", ",".join(RULES)),
                    *("--target", f"external:{where}", "--hooks", str(file), "--seed", "1"),
                    *("--workers", "1", "--out", str(tmp_path)),
                ],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
        results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert {rule["id"]: rule["verdict"] for rule in results["requirements"]} == RULES
        assert all(broker.is_alive for broker in target.brokers)
    finally:
        target.stop()
