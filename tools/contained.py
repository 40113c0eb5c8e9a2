"""One scenario in containers, where an engine is there: ``python -m tools.contained``.

CI runs it everywhere. Where there is no engine it says in one line that nothing was run, and ends
without a verdict: that is no pass of the scenario, and no fault of the suite.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence

from fixtures.targets import doctor
from fixtures.targets.container.engine import answers
from reports.verdicts import OK
from suites.chaos.scenarios import SHORT_CONTAINED

TARGET = "container:apache/kafka:4.4.0"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.contained", description=__doc__)
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--scenario", default=SHORT_CONTAINED)
    asked, further = parser.parse_known_args(arguments)
    if not answers():
        doctor.not_run("the scenario in containers", "a container engine")
        return OK
    command = [sys.executable, "-m", "shareproof", "chaos", "--target", asked.target]
    command += ["--strict", "--scenario", asked.scenario, *further]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
