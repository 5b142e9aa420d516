"""What the fault tests ask of a system: its states, its rows, and its index past the proxy."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import asyncpg
from devstack.client import Session
from devstack.issuer import SYNC_DAEMON_SIGNER
from devstack.process import ManagedProcess
from devstack.stack import Stack
from hindsight_index import BankTokenSigner, Document, HindsightIndex
from openbot.memory.v1 import forget_pb2, memory_pb2

RETAIN = r"^POST .*/memories$"
DELETE = r"^DELETE "
RECALL = r"^POST .*/memories/recall$"

Result = TypeVar("Result")


def index_state(session: Session, name: str) -> "memory_pb2.IndexStatus.State.ValueType":
    return session.get(name).index_status.state


def is_indexed(session: Session, name: str) -> bool:
    return index_state(session, name) == memory_pb2.IndexStatus.STATE_INDEXED


def is_cleared(session: Session, name: str) -> bool:
    return session.get_forget(name).state == forget_pb2.Forget.STATE_CLEARED


def pending_reasons(session: Session, name: str) -> set[str]:
    """Why the domains of a forget are not proven; the empty one for those that are."""
    return {each.pending_reason for each in session.get_forget(name).clearances}


def daemon_of(stack: Stack) -> ManagedProcess:
    assert stack.sync_daemon is not None
    return stack.sync_daemon


def document_id(name: str) -> str:
    return name.removeprefix("memories/")


def value(dsn: str, statement: str, *arguments: object) -> object:
    """The first value of the first row."""

    async def run() -> object:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement, *arguments)
        finally:
            await connection.close()

    return asyncio.run(run())


def bank_of(stack: Stack, name: str) -> str:
    """The bank of a memory."""
    found = value(
        stack.admin_dsn,
        "select bank_id from openbot.memories join openbot.scopes using (scope_id) where memory_id = $1",
        UUID(document_id(name)),
    )
    assert isinstance(found, str)
    return found


def outbox_rows(stack: Stack, name: str) -> object:
    """How many outbox rows the person has whose memory it is."""
    return value(
        stack.admin_dsn,
        "select count(*) from openbot.outbox where company_id ="
        " (select company_id from openbot.memories where memory_id = $1)",
        UUID(document_id(name)),
    )


def in_index(stack: Stack, ask: Callable[[HindsightIndex], Awaitable[Result]]) -> Result:
    """Asks the real Hindsight, past the proxy, as the daemon may."""
    key = stack.issuer.bank_key_file(SYNC_DAEMON_SIGNER).read_bytes()

    async def run() -> Result:
        async with HindsightIndex(stack.index_url, BankTokenSigner(key, issuer=SYNC_DAEMON_SIGNER)) as index:
            return await ask(index)

    return asyncio.run(run())


def document_of(stack: Stack, bank: str, name: str) -> Document | None:
    return in_index(stack, lambda index: index.document(bank, document_id(name)))
