"""PostgreSQL for the services: tenant-bound transactions, SQL in files, errors without content."""

from tenant_db.errors import DatabaseConflict, DatabaseError, DatabaseUnavailable, UnsafeRole
from tenant_db.pool import Connection, TenantDatabase
from tenant_db.statements import collect, load_statements

__all__ = [
    "Connection",
    "DatabaseConflict",
    "DatabaseError",
    "DatabaseUnavailable",
    "TenantDatabase",
    "UnsafeRole",
    "collect",
    "load_statements",
]
