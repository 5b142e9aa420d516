"""The embedded PostgreSQL starts for whoever calls, survives a crash and is reachable from here only."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pg0
import pytest
from devstack.databases import SERVICE_ROLES
from devstack.installation import PostgresError, installation
from devstack.migrations import SCHEMA_FILE, migrated_schema
from devstack.paths import CHECKOUT, cache_directory
from devstack.postgres import EmbeddedPostgres
from devstack.template import ClonedDatabase, TemplateDatabase

pytestmark = pytest.mark.postgres


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """A server that a test may ill-treat."""
    server = EmbeddedPostgres.throwaway()
    try:
        server.start()
        yield server
    finally:
        server.destroy()


def _alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not collected by its parent does not."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _wait_until_gone(pid: int) -> None:
    give_up = time.monotonic() + 15
    while _alive(pid) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not _alive(pid)


def _listening_addresses(pid: int) -> set[str]:
    """Local addresses, as the kernel prints them, on which any process of this server listens."""
    inodes = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if pid in (parent, int(process.name)):
                inodes |= {link.readlink().name for link in (process / "fd").iterdir()}
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if f"socket:[{fields[9]}]" in inodes and fields[2].endswith(":0000"):
                found.add(f"{table} {fields[1]}")
    return found


def test_the_server_runs_as_an_unprivileged_user(postgres_server: EmbeddedPostgres) -> None:
    """PostgreSQL refuses root; started by root, it runs as somebody who owns nothing of ours."""
    owner = Path(f"/proc/{postgres_server.pid}").stat().st_uid
    assert owner == (pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid())


def test_a_server_comes_with_pgvector_and_sees_chinese_letters(postgres_server: EmbeddedPostgres) -> None:
    """Hindsight needs pgvector; the lexical arm needs trigrams of Chinese text."""
    postgres_server.create_database("index", extensions=("vector", "pg_trgm"))
    assert postgres_server.execute("select '[1,2]'::vector <-> '[1,4]'::vector", "index") == "2"
    assert int(postgres_server.execute("select cardinality(show_trgm('产品周会'))", "index")) > 0


def test_starting_and_stopping_twice_changes_nothing(server: EmbeddedPostgres) -> None:
    """`start` and `stop` describe the wanted state."""
    pid = server.pid
    server.start()
    assert server.pid == pid
    server.execute("create table kept as select 1")
    server.stop()
    server.stop()
    assert not server.running
    server.start()
    assert server.execute("select count(*) from kept") == "1"


def test_a_killed_server_starts_again_with_all_that_was_committed(server: EmbeddedPostgres) -> None:
    """SIGKILL of the postmaster leaves a pid file and no clean shutdown."""
    server.execute("create table kept as select generate_series(1, 1000)")
    os.kill(server.pid, signal.SIGKILL)
    _wait_until_gone(server.pid)
    assert (server.home / "data" / "postmaster.pid").exists()
    server.start()
    assert server.execute("select count(*) from kept") == "1000"


def test_a_stale_pid_file_of_a_living_stranger_does_not_prevent_a_start(server: EmbeddedPostgres) -> None:
    """After a reboot the recorded pid may belong to any process."""
    server.stop()
    pid_file = server.home / "data" / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{server.home / 'data'}\n")
    server.start()
    assert server.execute("select 1") == "1"


def test_a_home_serves_one_process_at_a_time(postgres_server: EmbeddedPostgres) -> None:
    """Two servers on one data directory would destroy it."""
    rival = EmbeddedPostgres(postgres_server.home)
    with pytest.raises(PostgresError, match="another process uses"):
        rival.start()
    assert postgres_server.execute("select 1") == "1"


def test_nothing_listens_beyond_the_loopback_interface(postgres_server: EmbeddedPostgres) -> None:
    """One socket, on 127.0.0.1, whatever the caller configures."""
    port = f"{postgres_server.port:04X}"
    assert _listening_addresses(postgres_server.pid) == {f"tcp 0100007F:{port}"}
    assert postgres_server.execute("show unix_socket_directories") == ""


def test_a_caller_cannot_open_the_server_to_the_network() -> None:
    """Loopback is not a default, it is fixed."""
    server = EmbeddedPostgres.throwaway({"listen_addresses": "*"})
    try:
        server.start()
        assert server.execute("show listen_addresses") == "127.0.0.1"
    finally:
        server.destroy()


def test_nobody_gets_in_without_the_password(postgres_server: EmbeddedPostgres) -> None:
    """Every user of the machine reaches the port; the password is in a file that only one may read."""
    somebody = ("--host=127.0.0.1", f"--port={postgres_server.port}", "--username=postgres")
    with pytest.raises(PostgresError, match="password authentication failed"):
        installation().run("psql", *somebody, password="wrong")
    assert (postgres_server.home / "superuser-password").stat().st_mode & 0o077 == 0


def test_the_log_quotes_no_statement_parameter_or_value(postgres_server: EmbeddedPostgres) -> None:
    """Content in an error of the database must not reach a log file (I13)."""
    postgres_server.execute("create table words (word text primary key)")
    postgres_server.execute("insert into words values ('blue-heron')")
    for statement in ("insert into words values ('blue-heron')", "select 'blue-heron'::int", "blue-heron"):
        with pytest.raises(PostgresError):
            postgres_server.execute(statement)
    assert "heron" not in (postgres_server.home / "postgresql.log").read_text()


def test_the_server_ends_when_its_parent_is_killed() -> None:
    """A killed test run or demo leaves nothing behind."""
    script = (
        "import sys, time\n"
        "from devstack.postgres import EmbeddedPostgres\n"
        "server = EmbeddedPostgres.throwaway()\n"
        "server.start()\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        postmaster = int(parent.stdout.readline())
        assert _alive(postmaster)
        parent.kill()
    _wait_until_gone(postmaster)


@pytest.mark.skipif(os.geteuid() != 0, reason="run by root, which alone can become somebody else")
def test_an_ordinary_user_can_start_it_too() -> None:
    """The same modules, run by a user who can read neither root's home nor root's cache."""
    nobody = pwd.getpwnam("nobody")
    cache = Path(f"/var/tmp/openbot-memory-{nobody.pw_uid}")  # noqa: S108
    had_cache = cache.exists()
    with tempfile.TemporaryDirectory(dir=cache_directory()) as directory:
        packages = Path(directory)
        packages.chmod(0o755)
        shutil.copytree(CHECKOUT / "devstack" / "src" / "devstack", packages / "devstack")
        for installed in Path(pg0.__file__).parents[1].glob("pg0*"):
            shutil.copytree(installed, packages / installed.name)

        def as_nobody(*argv: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                argv, cwd=directory, env={"PYTHONPATH": directory, "HOME": directory},
                user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
                capture_output=True, text=True, check=False,
            )  # fmt: skip

        recent = "import sys; sys.exit(sys.version_info < (3, 11))"
        pythons = [found for found in (shutil.which("python3", path=os.defpath), sys.executable) if found]
        usable = [python for python in pythons if _runs(as_nobody, python, recent)]
        if not usable:
            pytest.skip("nobody can reach no Python 3.11 on this machine")
        script = (
            "from devstack.postgres import EmbeddedPostgres\n"
            "server = EmbeddedPostgres.throwaway()\n"
            "server.start()\n"
            "print(server.execute('select 6 * 7'))\n"
            "server.destroy()\n"
        )
        try:
            done = as_nobody(usable[0], "-c", script)
        finally:
            if not had_cache:
                shutil.rmtree(cache, ignore_errors=True)
    assert (done.stdout.strip(), done.stderr) == ("42", "")


def _runs(as_nobody: Callable[..., subprocess.CompletedProcess[str]], python: str, program: str) -> bool:
    with contextlib.suppress(PermissionError):
        return as_nobody(python, "-c", program).returncode == 0
    return False


def test_every_test_gets_an_empty_database_of_its_own(
    postgres_server: EmbeddedPostgres, template_database: TemplateDatabase
) -> None:
    """What one test writes, another never sees."""
    count = "select count(*) from openbot.companies"
    with template_database.clone() as first, template_database.clone() as second:
        postgres_server.execute("insert into openbot.companies values ('acme')", first.name)
        assert postgres_server.execute(count, first.name) == "1"
        assert postgres_server.execute(count, second.name) == "0"


@pytest.mark.parametrize("role", SERVICE_ROLES)
async def test_each_service_logs_in_as_a_member_of_its_role(database: ClonedDatabase, role: str) -> None:
    """The services' logins own nothing and bypass nothing (I4)."""
    connection = await asyncpg.connect(database.dsn(role))
    try:
        assert await connection.fetchval("select pg_has_role(current_user, $1, 'member')", role)
        assert not await connection.fetchval(
            "select rolsuper or rolbypassrls or rolcreaterole or rolcreatedb"
            " from pg_roles where rolname = current_user"
        )
        assert not await connection.fetchval(
            "select exists (select from pg_class where pg_has_role(current_user, relowner, 'usage'))"
        )
    finally:
        await connection.close()


def test_the_written_schema_is_what_the_migrations_make() -> None:
    """db/schema.sql is for readers; `make schema` writes it anew."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == migrated_schema()
