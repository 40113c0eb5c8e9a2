"""The runner: the pytest plugin, its session and its cluster; no check and no rule."""
