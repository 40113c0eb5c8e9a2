"""The programs that reproduce findings about brokers on the raw wire; no check, and no judge."""
