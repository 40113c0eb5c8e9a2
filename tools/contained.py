"""One scenario in containers, where an engine is there: ``python -m tools.contained``.

CI runs it everywhere. Where there is no engine it says in one line that nothing was run, and ends
without a verdict: that is no pass of the scenario, and no fault of the suite.
"""

import subprocess
import sys
from collections.abc import Sequence

from fixtures.targets import optional
from reports.verdicts import OK
from suites.chaos.scenarios import SHORT_CONTAINED

SCENARIO = ["--target", "container:local/kafka:4.4.0", "--scenario", SHORT_CONTAINED, "--strict"]


def lacking() -> str:
    return optional.missing("container engine")


def main(options: Sequence[str]) -> int:
    """Play the scenario, with more options of chaos, and return its exit code."""
    if lacks := lacking():
        optional.not_run("the scenario in containers", lacks)
        return OK
    command = [sys.executable, "-m", "shareproof", "chaos", *SCENARIO, *options]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
