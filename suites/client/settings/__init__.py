"""Settings: each takes effect on the wire or is refused by name, and is never silently ignored."""
