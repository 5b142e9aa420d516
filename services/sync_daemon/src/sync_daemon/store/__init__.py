"""Statements of the daemon. Those that touch records run in a transaction bound to their tenant."""
