"""What ``shareproof app`` does: play scenarios around any program, and judge its frames."""
