"""The session's real Hindsight behind the guard, as our services and as strangers see it.

The fixtures ``hindsight`` and ``stack`` are those of tests/conftest.py.
"""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from devstack.bank_tokens import BankTokens
from devstack.issuer import MEMORY_API_SIGNER, SYNC_DAEMON_SIGNER
from devstack.stack import Stack
from hindsight_guard.operations import OPERATIONS
from hindsight_index import HindsightIndex

from tests.contract.inside import Inside, ask_inside

HOOK_BANK = "bank-0123456789"


@pytest.fixture
def bank() -> str:
    """The name of a bank that nobody else uses. It does not exist yet."""
    return f"bank-{uuid4().hex}"


@pytest.fixture
async def index(hindsight: Any) -> AsyncIterator[HindsightIndex]:
    """The index as sync_daemon has it: everything but recall."""
    async with HindsightIndex(hindsight.base_url, hindsight.sync_signer) as index:
        yield index


@pytest.fixture
async def recall_index(hindsight: Any) -> AsyncIterator[HindsightIndex]:
    """The index as memory_api has it: recall and nothing else."""
    async with HindsightIndex(hindsight.base_url, hindsight.recall_signer) as index:
        yield index


@pytest.fixture
async def index_rows(hindsight: Any) -> AsyncIterator[asyncpg.Connection]:
    """Hindsight's own database, past every door."""
    connection = await asyncpg.connect(hindsight.database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def http(hindsight: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Plain HTTP to the guarded Hindsight, for what our client would never send."""
    async with httpx.AsyncClient(base_url=hindsight.base_url, trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def inside(stack: Stack, api: BankTokens, daemon: BankTokens) -> Inside:
    """Hindsight's routes and defaults, and every hook of the guard asked about one bank with a token for each
    operation, with none, as Hindsight's own worker and with tokens for another bank."""
    tokens: dict[str, str | None] = {
        operation: (api if operation == "recall" else daemon).token(HOOK_BANK, operation)
        for operation in OPERATIONS
    }
    tokens |= {
        "none": None,
        "garbage": "garbage",
        "worker": None,
        "another bank": daemon.token("bank-9876543210", *OPERATIONS),
        "another bank, recall": api.token("bank-9876543210", *OPERATIONS),
    }
    assert stack.hindsight_config is not None
    strongest = [signer.token(HOOK_BANK, *OPERATIONS) for signer in (api, daemon)]
    return ask_inside(stack.hindsight_config, HOOK_BANK, tokens, strongest, stack.directory)


@pytest.fixture(scope="session")
def api(stack: Stack) -> BankTokens:
    """Right and wrong tokens of the signer that may only recall."""
    return BankTokens(stack.issuer, MEMORY_API_SIGNER)


@pytest.fixture(scope="session")
def daemon(stack: Stack) -> BankTokens:
    """Right and wrong tokens of the signer that may do everything but recall."""
    return BankTokens(stack.issuer, SYNC_DAEMON_SIGNER)
