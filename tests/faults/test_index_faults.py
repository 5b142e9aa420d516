"""Hindsight overloaded, slow, cut off or lying: nothing is lost, and nothing is claimed that is not so."""

import asyncio
import json
import time

import asyncpg
import pytest
from devstack.client import Session
from devstack.stack import Stack
from openbot.memory.v1 import forget_pb2, memory_pb2, memory_service_pb2

from tests.eventually import until
from tests.faults.proxy import (
    Fault,
    FaultyProxy,
    bank_is_gone,
    cut_after,
    cut_before,
    cut_within,
    overloaded,
    says,
    slow,
)

pytestmark = pytest.mark.e2e

RETAIN = r"^POST .*/memories$"
RECALL = r"^POST .*/memories/recall$"
Answer = memory_service_pb2.RecallResponse


def index_state(session: Session, name: str) -> "memory_pb2.IndexStatus.State.ValueType":
    return session.get(name).index_status.state


def is_indexed(session: Session, name: str) -> bool:
    return index_state(session, name) == memory_pb2.IndexStatus.STATE_INDEXED


@pytest.mark.parametrize(
    "fault",
    [overloaded(), cut_before, cut_after, cut_within, says(b'{"success": tru'), says(b"[]"), says(b"", 500)],
    ids=["503", "cut-before", "cut-after", "cut-within", "truncated-json", "absurd-json", "500"],
)
def test_a_retain_that_fails_twice_is_repeated_until_it_holds(
    lin: Session, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.on(RETAIN, fault, times=2)
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))


def test_success_without_effect_is_not_believed(lin: Session, proxy: FaultyProxy) -> None:
    lying = proxy.on(RETAIN, says(b'{"success": true}'), times=2)
    memory = lin.remember("Bullet points, please.")
    assert lying.met.wait(10)
    assert index_state(lin, memory.name) == memory_pb2.IndexStatus.STATE_PENDING
    assert until(lambda: is_indexed(lin, memory.name))
    assert lying.times == 0


def test_retry_after_is_obeyed(lin: Session, proxy: FaultyProxy) -> None:
    refused = proxy.on(RETAIN, overloaded(retry_after_s=2), times=1)
    memory = lin.remember("Bullet points, please.")
    assert refused.met.wait(10)
    before = time.monotonic()
    assert until(lambda: is_indexed(lin, memory.name))
    # A lower bound: a slow machine can only make it longer.
    assert time.monotonic() - before > 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (overloaded(), "INDEX_UNAVAILABLE"),
        (cut_before, "INDEX_UNAVAILABLE"),
        (cut_within, "INDEX_UNAVAILABLE"),
        (slow(8), "INDEX_TIMEOUT"),
        (says(b'{"results": 7}'), "INDEX_PROTOCOL_ERROR"),
        (says(b"{}", 403), "INDEX_REFUSED"),
        (bank_is_gone, "INDEX_BANK_MISSING"),
        (says(b'{"detail":"refused"}', 404), "INDEX_PROTOCOL_ERROR"),
    ],
    ids=["503", "cut-before", "cut-within", "slow", "absurd", "refused", "bank-missing", "404-of-another"],
)
def test_recall_answers_from_postgresql_when_the_index_does_not(
    lin: Session, proxy: FaultyProxy, fault: Fault, reason: str
) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    # The breaker may still be open from the case before.
    assert until(lambda: lin.recall("bullet points").served_by == Answer.SERVED_BY_INDEX)

    proxy.on(RECALL, fault)
    answer = lin.recall("bullet points")

    assert [item.memory.name for item in answer.items] == [memory.name]
    assert answer.served_by == Answer.SERVED_BY_LEXICAL
    assert answer.degraded_reason == reason


def test_hits_of_foreign_and_unknown_documents_are_dropped(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    forged = {
        "results": [
            {"document_id": document, "text": "invented by the index", "scores": {"semantic": 1.0}}
            for document in (
                "00000000-0000-4000-8000-000000000000",
                "no-id",
                memory.name.removeprefix("memories/"),
            )
        ]
    }
    assert until(lambda: lin.recall("bullet points").served_by == Answer.SERVED_BY_INDEX)
    proxy.on(RECALL, says(json.dumps(forged).encode()))

    answer = lin.recall("anything")

    assert [item.memory.text for item in answer.items] == ["Bullet points, please."]


def test_a_forget_is_not_cleared_while_the_index_cannot_be_asked(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    proxy.on(r"^(DELETE|GET) ", cut_before)

    forget = lin.forget(memory.name)

    def reason(domain: "forget_pb2.Clearance.Domain.ValueType") -> str:
        return next(e.pending_reason for e in lin.get_forget(forget.name).clearances if e.domain == domain)

    assert until(lambda: reason(forget_pb2.Clearance.DOMAIN_INDEX_ACTIVE) == "DELETION_PENDING")
    assert lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARING
    proxy.heal()
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)


def test_an_index_without_the_bank_proves_nothing(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    # A Hindsight that lost the bank: every read is a 404, deletes find nothing.
    proxy.on(r"^GET .*/config$", bank_is_gone)

    forget = lin.forget(memory.name)

    def reasons() -> set[str]:
        return {each.pending_reason for each in lin.get_forget(forget.name).clearances}

    assert until(lambda: "BANK_MISSING" in reasons())
    assert lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARING
    proxy.heal()
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)


def test_a_document_that_is_still_there_keeps_the_forget_open(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    # The delete claims success and does nothing: only asking afterwards tells.
    lying = proxy.on(r"^DELETE ", says(b'{"success": true}'), times=2)

    forget = lin.forget(memory.name)

    assert lying.met.wait(10)
    assert lin.get_forget(forget.name).state != forget_pb2.Forget.STATE_CLEARED
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)
    assert lying.times == 0


def test_a_registered_backup_keeps_the_forget_open_until_it_is_purged(lin: Session, fragile: Stack) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    operator = fragile.dsns["memory_operator"]
    backup = asyncio.run(
        fetch(
            operator,
            "insert into openbot.backups (store, taken_at) values ('authority', now()) returning backup_id",
        )
    )

    forget = lin.forget(memory.name)

    def reasons() -> set[str]:
        return {each.pending_reason for each in lin.get_forget(forget.name).clearances}

    assert until(lambda: reasons() == {"", "BACKUPS_NOT_PURGED"})
    asyncio.run(fetch(operator, "update openbot.backups set purged_at = now() where backup_id = $1", backup))
    assert until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED)


async def fetch(dsn: str, statement: str, *arguments: object) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(statement, *arguments)
    finally:
        await connection.close()
