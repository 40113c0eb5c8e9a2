"""The application: command line, runner and chaos runs; checks and rules are in other packages.

The suite itself lives in packages beside this one in a checkout, and in ``source`` inside it
when installed (docs/adr/0002). Importing this package puts them on ``sys.path``.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

ROOT = _HERE / "source" if (_HERE / "source").is_dir() else _HERE.parent
"""The folder that holds ``suites``, ``reports``, ``chaos``, ``fixtures`` and ``spec``."""

if sys.path[:1] != [str(ROOT)]:
    sys.path.insert(0, str(ROOT))  # before whatever else is called like one of them
