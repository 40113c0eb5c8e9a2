"""What must hold: requirements, verdicts, profiles.

Pure: no sockets, no clocks, no files but its own data.
"""
