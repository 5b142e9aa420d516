"""Applying the numbered migrations, and writing down the schema that they make."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from devstack.paths import CHECKOUT, MIGRATIONS, VENV_BIN
from devstack.postgres import EmbeddedPostgres

SCHEMA_FILE = CHECKOUT / "db" / "schema.sql"


def migrate(dsn: str) -> None:
    """Brings the database of ``dsn`` to the newest migration."""
    done = subprocess.run(
        [
            str(VENV_BIN / "dbmate"),
            "--url", f"{dsn}?sslmode=disable",
            "--migrations-dir", str(MIGRATIONS),
            "--no-dump-schema",
            "migrate",
        ],
        env={"PATH": str(VENV_BIN)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"migration failed: {done.stderr.strip()}")


def dump_schema(server: EmbeddedPostgres, database: str) -> str:
    """The schema of ``database`` as SQL, privileges included, without what varies between runs."""
    done = subprocess.run(
        [
            str(server.bin_dir / "pg_dump"),
            "--schema-only", "--schema=openbot", "--no-owner",
            server.admin_dsn(database),
        ],
        env={"LD_LIBRARY_PATH": server.library_path},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    volatile = re.compile(r"^(--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog\.set_config.*|)$")
    lines = [line for line in done.stdout.splitlines() if not volatile.match(line)]
    return "-- Made by `make schema` from db/migrations.\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    """``make schema``: writes db/schema.sql."""
    with TemporaryDirectory() as directory:
        server = EmbeddedPostgres(Path(directory) / "postgres")
        Path(directory).chmod(0o711)
        server.start()
        try:
            server.create_database("schema")
            migrate(server.admin_dsn("schema"))
            SCHEMA_FILE.write_text(dump_schema(server, "schema"), encoding="utf-8")
        finally:
            server.destroy()


if __name__ == "__main__":
    sys.exit(main())
