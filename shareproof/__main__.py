"""``python -m shareproof``."""

from shareproof.cli import main

main()
