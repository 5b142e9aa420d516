"""Hindsight overloaded, slow, cut off or lying: nothing is lost, and nothing is claimed that is not so."""

import json
import time

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
from tests.faults.systems import (
    DELETE,
    RECALL,
    RETAIN,
    bank_of,
    daemon_of,
    document_id,
    document_of,
    index_state,
    is_cleared,
    is_indexed,
    outbox_rows,
    pending_reasons,
    value,
)

pytestmark = pytest.mark.e2e

Answer = memory_service_pb2.RecallResponse


def test_a_retain_that_fails_is_repeated_until_it_holds(
    lin: Session, proxy: FaultyProxy, fragile: Stack, stack: Stack
) -> None:
    faults: dict[str, Fault] = {
        "overloaded": overloaded(),
        "cut before it arrives": cut_before,
        "cut after it was done": cut_after,
        "cut within the answer": cut_within,
        "slower than the daemon waits": slow(3),
        "truncated JSON": says(b'{"success": tru'),
        "absurd JSON": says(b"[]"),
        "a page of a proxy": says(b"<html>maintenance</html>"),
        "an internal error": says(b"", 500),
        "a refused token": says(b"{}", 401),
    }
    rules = {name: proxy.on(RETAIN, fault, 1, f"Case: {name}.") for name, fault in faults.items()}
    memories = {name: lin.remember(f"Case: {name}.") for name in faults}

    for name, memory in memories.items():
        assert until(lambda memory=memory: is_indexed(lin, memory.name)), name  # type: ignore[misc]
        assert rules[name].times == 0, name
        bank = bank_of(fragile, memory.name)
        found = document_of(stack, bank, memory.name)
        assert found is not None, name
        assert (found.text, found.unit_count) == (memory.text, 1), name
    assert until(lambda: outbox_rows(fragile, memories["overloaded"].name) == 0)


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


def test_what_hindsight_drops_from_a_text_does_not_keep_it_from_being_indexed(lin: Session) -> None:
    partly = lin.remember("Bullet points⟦hs-att:1⟧, please.")
    wholly = lin.remember("⟦hs-att:1⟧")

    assert until(lambda: is_indexed(lin, partly.name))
    assert until(lambda: index_state(lin, wholly.name) == memory_pb2.IndexStatus.STATE_FAILED)
    assert lin.get(wholly.name).index_status.failure_reason == "NOTHING_TO_INDEX"
    # Given up as an index entry, forgotten all the same.
    forget = lin.forget(partly.name, wholly.name)
    assert until(lambda: is_cleared(lin, forget.name))


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
    began = time.monotonic()
    answer = lin.recall("bullet points")

    assert time.monotonic() - began < 5, "half of what the caller gave, although the index takes longer"

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


def test_a_forget_waits_for_an_index_that_is_down_and_is_cleared_after_it(
    lin: Session, proxy: FaultyProxy
) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    down = proxy.on(r"^(DELETE|GET) ", cut_before)

    forget = lin.forget(memory.name)

    assert lin.recall("bullet points").items == []
    assert down.met.wait(20)
    assert until(lambda: "DELETION_PENDING" in pending_reasons(lin, forget.name))
    assert lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARING
    proxy.heal()
    assert until(lambda: is_cleared(lin, forget.name))


def test_a_question_that_is_not_answered_is_no_evidence(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    # The document is deleted and looked up, and then Hindsight falls silent.
    proxy.on(r"^GET .*/(config|memories/list|operations)", cut_before)

    forget = lin.forget(memory.name)

    assert until(lambda: "PROBE_FAILED" in pending_reasons(lin, forget.name))
    assert lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARING
    proxy.heal()
    assert until(lambda: is_cleared(lin, forget.name))


def test_an_index_without_the_bank_proves_nothing(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    # A Hindsight that lost the bank: documents are not found, because nothing is.
    proxy.on(r"^GET .*/config$", bank_is_gone)
    proxy.on(r"^(GET|DELETE) .*/documents/", says(b'{"detail":"Document not found"}', 404))

    forget = lin.forget(memory.name)

    assert until(lambda: "BANK_MISSING" in pending_reasons(lin, forget.name))
    assert lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARING


def test_a_document_that_is_still_there_keeps_the_forget_open(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    # The delete claims success and does nothing: only asking afterwards tells.
    lying = proxy.on(DELETE, says(b'{"success": true}'), times=2)

    forget = lin.forget(memory.name)

    assert lying.met.wait(10)
    assert not is_cleared(lin, forget.name)
    assert until(lambda: is_cleared(lin, forget.name))
    assert lying.times == 0


def test_an_operation_that_may_still_run_keeps_the_forget_open(lin: Session, proxy: FaultyProxy) -> None:
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    running = {"total": 1, "operations": [{"id": "op-1", "operation_type": "retain", "status": "paused"}]}
    payload = {"status": "paused", "task_payload": {"type": "retain", "contents": []}}
    proxy.on(r"^GET .*/operations\?", says(json.dumps(running).encode()))
    proxy.on(r"^GET .*/operations/op-1", says(json.dumps(payload).encode()))

    forget = lin.forget(memory.name)

    assert until(lambda: pending_reasons(lin, forget.name) >= {"OPERATION_RUNNING"})
    running["operations"][0]["status"] = "completed"  # type: ignore[index] # a plain object of JSON
    proxy.on(r"^GET .*/operations\?", says(json.dumps(running).encode()))
    assert until(lambda: pending_reasons(lin, forget.name) >= {"OPERATION_PAYLOAD_RETAINED"})
    assert not is_cleared(lin, forget.name)
    proxy.heal()
    assert until(lambda: is_cleared(lin, forget.name))


def test_a_registered_backup_keeps_the_forget_open_until_it_is_purged(
    lin: Session, proxy: FaultyProxy, fragile: Stack
) -> None:
    daemon_of(fragile).terminate(20)
    fragile.start_sync_daemon(SYNC_DAEMON_BACKUPS="registered")
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))
    operator = fragile.dsns["memory_operator"]
    backup = value(
        operator,
        "insert into openbot.backups (store, began_at, ended_at) values ('authority', now(), now())"
        " returning backup_id",
    )
    try:
        forget = lin.forget(memory.name)
        assert until(lambda: pending_reasons(lin, forget.name) == {"", "BACKUPS_NOT_PURGED"})
        assert not is_cleared(lin, forget.name)
        # Meanwhile a copy came back, by whatever hand: what was proven is asked again before the end.
        there = {"id": document_id(memory.name), "original_text": None, "memory_unit_count": 1}
        back = proxy.on(r"^GET .*/documents/", says(json.dumps(there).encode()))
    finally:
        value(operator, "update openbot.backups set purged_at = now() where backup_id = $1", backup)
    assert back.met.wait(20)
    assert until(lambda: "DOCUMENT_PRESENT" in pending_reasons(lin, forget.name))
    proxy.heal()
    assert until(lambda: is_cleared(lin, forget.name))


def test_nothing_is_cleared_while_nobody_says_what_backups_there_are(lin: Session, fragile: Stack) -> None:
    daemon_of(fragile).terminate(20)
    fragile.start_sync_daemon(SYNC_DAEMON_BACKUPS="undeclared")
    memory = lin.remember("Bullet points, please.")
    assert until(lambda: is_indexed(lin, memory.name))

    forget = lin.forget(memory.name)

    assert until(lambda: pending_reasons(lin, forget.name) == {"", "BACKUPS_UNDECLARED"})
    daemon_of(fragile).terminate(20)
    assert lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARING
    fragile.start_sync_daemon(SYNC_DAEMON_BACKUPS="none")
    assert until(lambda: is_cleared(lin, forget.name))
