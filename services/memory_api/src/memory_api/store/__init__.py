"""Statements over the authoritative records. Every one runs in a transaction bound to its tenant."""
