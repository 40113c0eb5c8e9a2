"""Every test and check runs under the suite's own pytest plugin."""

from __future__ import annotations

pytest_plugins = ["shareproof.runner.plugin"]
