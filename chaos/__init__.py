"""Faults, schedules and their injection; scenarios are in suites/chaos, load in fixtures."""
