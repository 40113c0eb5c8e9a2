"""``python -m shareproof``."""

from shareproof.cli import main

if __name__ == "__main__":  # worker processes import this module, too
    main()
