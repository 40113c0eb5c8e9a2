"""How well the suite detects: every broken broker noticed, every check seen on both sides."""
