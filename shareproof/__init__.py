"""The command line of shareproof, the conformance and chaos suite for Kafka share groups (KIP-932).

The suite itself lives in five rooms beside this package in a checkout, and in ``house`` inside it
when installed (docs/adr/0002). Importing this package puts them on ``sys.path``.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

HOUSE = _HERE / "house" if (_HERE / "house").is_dir() else _HERE.parent
"""The folder that holds ``suites``, ``reports``, ``chaos``, ``fixtures`` and ``spec``."""

if str(HOUSE) not in sys.path:
    sys.path.insert(0, str(HOUSE))
