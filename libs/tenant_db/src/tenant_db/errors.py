"""What can go wrong between a service and PostgreSQL, without a word of the driver's.

Driver messages may quote values, hence content (I13). They stop here: every error below has a
fixed text, and the driver's SQLSTATE as its only detail.
"""

from __future__ import annotations


class DatabaseError(Exception):
    """The statement failed for a reason that repeating it will not change."""

    text = "the database refused the statement"

    def __init__(self, sqlstate: str | None = None) -> None:
        super().__init__(f"{self.text} (SQLSTATE {sqlstate})" if sqlstate else self.text)
        self.sqlstate = sqlstate


class DatabaseUnavailable(DatabaseError):
    """No connection, or it was lost. The transaction did not commit, or it is unknown whether it did."""

    text = "the database does not answer"


class DatabaseConflict(DatabaseError):
    """Another transaction won (serialization failure, deadlock). Nothing was written; repeating is safe."""

    text = "another transaction was faster"


class UnsafeRole(DatabaseError):
    """The login is not of the service's role alone, owns part of the schema, or may bypass row-level
    security (I4). The process must not start."""

    text = "the database role could bypass row-level security, or is not the service's own"
