"""The fixtures' front door: every test of the house runs under the suite's own plugin."""

from __future__ import annotations

pytest_plugins = ["shareproof.runner.plugin"]
