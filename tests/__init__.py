"""The suite's own tests; no check of a broker or client is here, and none of it is in the wheel."""
