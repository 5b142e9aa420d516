"""The two databases on the embedded PostgreSQL, and a login for every role of a service."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

import asyncpg

#: Group roles that the migrations create; each gets a login of the same name with `_login`.
SERVICE_ROLES = ("memory_api", "sync_daemon", "memory_operator", "authority_writer")


async def create_logins(admin_dsn: str) -> Mapping[str, str]:
    """Creates or renews one login a service role. Returns role → DSN into the same database."""
    connection = await asyncpg.connect(admin_dsn)
    dsns = {}
    try:
        for role in SERVICE_ROLES:
            login, password = f"{role}_login", secrets.token_urlsafe(24)
            if not await connection.fetchval("select true from pg_roles where rolname = $1", login):
                await connection.execute(f"create role {login} login in role {role}")
            # The password is ours and urlsafe; CREATE ROLE takes no parameters.
            await connection.execute(f"alter role {login} password '{password}'")
            dsns[role] = with_login(admin_dsn, login, password)
    finally:
        await connection.close()
    return dsns


def with_login(dsn: str, user: str, password: str) -> str:
    """The same server and database for another login."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.hostname}:{parts.port}"))
