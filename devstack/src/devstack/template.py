"""A migrated database that is cloned for every test, with a login for each role of a service."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from devstack.databases import create_logins, login_dsn
from devstack.migrations import migrate
from devstack.postgres import EmbeddedPostgres

_TEMPLATE = "template_openbot"


@dataclass(frozen=True)
class ClonedDatabase:
    """One test's own database."""

    name: str
    admin_dsn: str

    def dsn(self, role: str) -> str:
        """URL for the login of a service role: memory_api, sync_daemon, memory_operator, authority_writer."""
        return login_dsn(self.admin_dsn, role)


class TemplateDatabase:
    """The schema of all migrations on a running server, made once and copied as a file for every clone."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        server.create_database(_TEMPLATE)
        migrate(server.admin_dsn(_TEMPLATE))
        asyncio.run(create_logins(server.admin_dsn(_TEMPLATE)))

    @contextmanager
    def clone(self) -> Iterator[ClonedDatabase]:
        """A database with the schema and no rows, dropped at the end whoever is still connected."""
        name = f"test_{next(self._numbers)}"
        self._server.create_database(name, template=_TEMPLATE)
        try:
            yield ClonedDatabase(name, self._server.admin_dsn(name))
        finally:
            self._server.drop_database(name)
