"""Checks on a cluster with users, access control lists, TLS and quotas."""
