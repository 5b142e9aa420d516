"""Apply the numbered migrations, and write down the schema that they make."""

import os
import re
import subprocess
from pathlib import Path

from devstack.paths import CHECKOUT, MIGRATIONS, VENV_BIN
from devstack.postgres import EmbeddedPostgres

SCHEMA_FILE = CHECKOUT / "db" / "schema.sql"

_HEADER = "-- Made by `make schema` from db/migrations.\n\n"
# Comments, the settings of a session and pg_dump's random \restrict keys say nothing about the schema.
_VOLATILE = re.compile(r"^(--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog\.set_config.*|)$")
# A migration waits briefly for its locks and never holds one for long: it fails and is run again.
_CONNECTION = "sslmode=disable&lock_timeout=5000&statement_timeout=60000"


class MigrationError(Exception):
    """dbmate refused a migration; the message holds what it said."""


def migrate(dsn: str, migrations: Path = MIGRATIONS) -> None:
    """Bring the database of this URL to the newest migration; nothing happens if it is there."""
    done = subprocess.run(
        [VENV_BIN / "dbmate", "--no-dump-schema", "--migrations-dir", migrations, "migrate"],
        # By environment, since every user of the machine can read a command line.
        env={"PATH": os.defpath, "DATABASE_URL": f"{dsn}?{_CONNECTION}"},
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MigrationError(f"dbmate failed: {done.stderr.strip()}")


def dump_schema(server: EmbeddedPostgres, database: str) -> str:
    """The schema of `database` as SQL, privileges and policies included, without what varies between runs."""
    dumped = server.client("pg_dump", database, "--schema-only", "--schema=openbot", "--no-owner")
    return _HEADER + "\n".join(line for line in dumped.splitlines() if not _VOLATILE.match(line)) + "\n"


def migrated_schema(migrations: Path = MIGRATIONS) -> str:
    """The schema that all migrations make on an empty server, which is started and destroyed for it."""
    server = EmbeddedPostgres.throwaway()
    try:
        server.start()
        server.create_database("schema")
        migrate(server.admin_dsn("schema"), migrations)
        return dump_schema(server, "schema")
    finally:
        server.destroy()


if __name__ == "__main__":
    SCHEMA_FILE.write_text(migrated_schema(), encoding="utf-8")
