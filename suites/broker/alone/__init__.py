"""Checks that share one broker of their own, to reconfigure, restart and measure."""
