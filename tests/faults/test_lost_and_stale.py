"""An index that lost a bank, lags behind or was backed up: what is there is found, and no more is said."""

import asyncio
import json
from datetime import timedelta

import asyncpg
import pytest
from devstack.client import Session
from devstack.stack import Stack
from openbot.memory.v1 import memory_service_pb2

from tests.eventually import until
from tests.faults.proxy import FaultyProxy, overloaded, says
from tests.faults.systems import DELETE, RECALL, bank_of, document_id, is_cleared, is_indexed, value

pytestmark = pytest.mark.e2e

Answer = memory_service_pb2.RecallResponse


def index_answers(lin: Session) -> bool:
    return lin.recall("bullet points").served_by == Answer.SERVED_BY_INDEX


def test_a_bank_that_was_lost_is_filled_again_and_meanwhile_nothing_is_hidden(
    lin: Session, fragile: Stack, stack: Stack
) -> None:
    old = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, old.name))
    bank = bank_of(fragile, old.name)
    asyncio.run(lose_bank(stack.postgres.admin_dsn(f"{stack.name}_index"), bank))
    assert until(lambda: lin.recall("bullet points").degraded_reason == "INDEX_BANK_MISSING")

    new = lin.remember("Risks first, please.")

    assert until(lambda: is_indexed(lin, new.name))
    assert old.name in {item.memory.name for item in lin.recall("bullet points").items}
    assert until(lambda: is_indexed(lin, old.name))
    assert until(lambda: index_answers(lin))
    assert [item.memory.name for item in lin.recall("bullet points", limit=1).items] == [old.name]


async def lose_bank(dsn: str, bank: str) -> None:
    """Takes a bank out of Hindsight's database, as a backup restored from before it would."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            for table in ("memory_units", "documents", "banks"):
                await connection.execute(f"delete from {table} where bank_id = $1", bank)
    finally:
        await connection.close()


def test_stale_hits_do_not_crowd_out_what_is_still_there(lin: Session, proxy: FaultyProxy) -> None:
    gone = [lin.remember(f"My favourite colour is shade {number}.") for number in range(6)]
    memory = lin.remember("The parking garage closes at nine.")
    assert until(lambda: all(is_indexed(lin, each.name) for each in (*gone, memory)))
    assert until(lambda: index_answers(lin))
    # The index has not followed the forgetting yet, and answers with what it had.
    proxy.on(DELETE, overloaded())
    lin.forget(*(each.name for each in gone))
    stale = {
        "results": [{"document_id": document_id(each.name), "scores": {"semantic": 0.9}} for each in gone]
    }
    proxy.on(RECALL, says(json.dumps(stale).encode()))

    answer = lin.recall("parking garage in my favourite colour", limit=1)

    assert [item.memory.name for item in answer.items] == [memory.name]


def test_backups_made_before_or_after_a_copy_was_there_do_not_matter(lin: Session, fragile: Stack) -> None:
    span = "insert into openbot.backups (store, began_at, ended_at) values ('index', now() + $1, now() + $1)"
    value(fragile.dsns["memory_operator"], span, timedelta(hours=-1))
    value(fragile.dsns["memory_operator"], span, timedelta(hours=1))
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))

    forget = lin.forget(memory.name)

    assert until(lambda: is_cleared(lin, forget.name))
