"""What must hold: rules, verdicts, ledgers.

Pure: no sockets, no clocks, no files but its own data.
"""
