"""A login for every role of a service on the embedded PostgreSQL."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit, urlunsplit

import asyncpg

#: Group roles that the migrations create; each gets a login of the same name with ``_login``.
SERVICE_ROLES = ("memory_api", "sync_daemon", "memory_operator", "authority_writer")


async def create_logins(admin_dsn: str) -> None:
    """Creates one login a service role. Logins belong to the server, not the database."""
    connection = await asyncpg.connect(admin_dsn)
    try:
        for role in SERVICE_ROLES:
            login = f"{role}_login"
            if not await connection.fetchval("select true from pg_roles where rolname = $1", login):
                await connection.execute(f"create role {login} login in role {role}")
            # ALTER ROLE takes no parameters; the password is hexadecimal.
            await connection.execute(f"alter role {login} password '{_password(admin_dsn, role)}'")
    finally:
        await connection.close()


def login_dsn(admin_dsn: str, role: str) -> str:
    """URL of the same database for the login of a service role."""
    parts = urlsplit(admin_dsn)
    netloc = f"{role}_login:{_password(admin_dsn, role)}@{parts.hostname}:{parts.port}"
    return urlunsplit(parts._replace(netloc=netloc))


def _password(admin_dsn: str, role: str) -> str:
    # Follows from the superuser's, which is random for each server and kept in a file of its own.
    return hashlib.sha256(f"{urlsplit(admin_dsn).password}:{role}".encode()).hexdigest()
