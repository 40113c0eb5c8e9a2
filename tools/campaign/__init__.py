"""Campaigns: break something on purpose, see which checks notice, keep what was seen."""
