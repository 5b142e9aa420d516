"""A migrated database that is cloned for every test, with a login for each role of a service."""

import itertools
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from devstack.databases import SERVICE_ROLES, with_login
from devstack.migrations import migrate
from devstack.postgres import EmbeddedPostgres

_TEMPLATE = "template_openbot"


@dataclass(frozen=True)
class ClonedDatabase:
    """One test's own database."""

    name: str
    admin_dsn: str
    passwords: Mapping[str, str]

    def dsn(self, role: str) -> str:
        """URL for the login of a service role: memory_api, sync_daemon, memory_operator, authority_writer."""
        return with_login(self.admin_dsn, f"{role}_login", self.passwords[role])


class TemplateDatabase:
    """The schema of all migrations on a running server, made once and copied as a file for every clone."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        server.create_database(_TEMPLATE)
        migrate(server.admin_dsn(_TEMPLATE))
        # Roles and so logins belong to the server: one for all clones.
        self._passwords = {role: secrets.token_urlsafe(24) for role in SERVICE_ROLES}
        for role, password in self._passwords.items():
            server.execute(f"create role {role}_login login password '{password}' in role {role}")

    @contextmanager
    def clone(self) -> Iterator[ClonedDatabase]:
        """A database with the schema and no rows, dropped at the end whoever is still connected."""
        name = f"test_{next(self._numbers)}"
        self._server.create_database(name, template=_TEMPLATE)
        try:
            yield ClonedDatabase(name, self._server.admin_dsn(name), self._passwords)
        finally:
            self._server.drop_database(name)
