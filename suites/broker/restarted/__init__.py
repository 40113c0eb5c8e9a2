"""Checks of what a restart keeps: one broker, which is killed and started again."""
