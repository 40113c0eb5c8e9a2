"""``python -m tests.altered DIR``: alter a run's history in every way, and judge it."""

import argparse
import tempfile
from pathlib import Path

from reports.analysis.files import open_history
from reports.analysis.session import MEDIUM, open_session
from tests.agreement import compare
from tests.altered.judged import alter, mistakes


def main() -> int:
    """Alter and judge; exit code 1 when something else was told than should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="directory of a small run")
    history = open_history(parser.parse_args().run)
    spark = open_session("local[2]", "1g", MEDIUM)
    with tempfile.TemporaryDirectory(prefix="shareproof-altered-") as room:
        altered = alter(history.folder, Path(room) / "history", history.version, both=True)
        found, differing = compare(spark, altered.folder, "altered")
    wrong = list(mistakes(found, altered))
    print(f"{len(altered.made)} alterations, {len(differing)} differences, {len(wrong)} mistakes")
    print(*wrong, *differing[:20], sep="\n  ")
    print("no place for:", *sorted(set(altered.impossible)), sep="\n  ")
    spark.stop()
    return int(bool(wrong or differing))


if __name__ == "__main__":
    raise SystemExit(main())
