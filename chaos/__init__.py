"""Workloads, faults and seeded schedules."""
