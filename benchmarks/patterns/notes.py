"""Events as lines of a file: written at once, so that a process that is killed takes none along."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

Event = tuple[Any, ...]


class Notes:
    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, events: Iterable[Event]) -> None:
        lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in events)
        if lines:
            os.write(self._file, lines.encode())
