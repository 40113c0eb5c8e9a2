"""Runs a command against a Kafka with the properties that it ships with, as somebody's cluster.

    python -m tools.vanilla [--brokers 3] [--kafka 4.4.0] -- shareproof broker --target external:{}

``{}`` stands for the brokers' addresses, separated by commas. The exit code is the command's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from fixtures.interface.names import DEFAULT_VERSION
from fixtures.targets import TargetOptions, open_target


def main() -> int:
    """Start the cluster, run the command, stop the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--kafka", default=DEFAULT_VERSION)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    target = open_target(f"kafka:{asked.kafka}", TargetOptions(brokers=asked.brokers, shipped=True))
    target.start()
    try:
        where = ",".join(target.info.bootstrap)
        command = [word.replace("{}", where) for word in asked.command]
        began = time.monotonic()
        code = subprocess.run(command, check=False).returncode
        print(f"{time.monotonic() - began:.0f} s, exit code {code}", file=sys.stderr)
        return code
    finally:
        target.stop()


if __name__ == "__main__":
    sys.exit(main())
