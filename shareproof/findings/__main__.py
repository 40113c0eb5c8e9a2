"""``python -m shareproof.findings``; see programs.py."""

import sys

from shareproof.findings.programs import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
