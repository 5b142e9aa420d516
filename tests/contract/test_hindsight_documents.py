"""Writing and deleting in Hindsight 1.1.0, as far as sync_daemon relies on it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from devstack.bank_tokens import BankTokens
from hindsight_index import BANK_SETTINGS, Document, HindsightIndex, HindsightRefused, indexable

pytestmark = pytest.mark.hindsight


async def unit_ids(http: httpx.AsyncClient, daemon: BankTokens, bank: str, document_id: str) -> set[str]:
    answer = await http.get(
        f"/v1/default/banks/{bank}/memories/list",
        params={"document_id": document_id, "limit": 100},
        headers={"authorization": f"Bearer {daemon.token(bank, 'units.list')}"},
    )
    return {unit["id"] for unit in answer.raise_for_status().json()["items"]}


async def places_with(rows: asyncpg.Connection, marker: str) -> set[str]:
    """Every table of Hindsight's database with a row that says ``marker`` anywhere."""
    tables = await rows.fetch("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
    return {
        table
        for (table,) in tables
        if await rows.fetchval(f"SELECT EXISTS (SELECT FROM {table} t WHERE t::text LIKE $1)", f"%{marker}%")
    }


async def test_the_same_words_again_change_nothing(
    index: HindsightIndex, http: httpx.AsyncClient, daemon: BankTokens, bank: str
) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    before = await unit_ids(http, daemon, bank, "d")
    await index.retain(bank, "d", "Ada drinks green tea.")
    assert len(before) == 1
    assert await unit_ids(http, daemon, bank, "d") == before


async def test_other_words_replace_the_first_everywhere(
    index: HindsightIndex, index_rows: asyncpg.Connection, bank: str
) -> None:
    first, second = uuid4().hex, uuid4().hex
    await index.ensure_bank(bank)
    await index.retain(bank, "d", f"Ada's locker is {first}.")
    await index.retain(bank, "d", f"Ada's locker is {second}.")
    assert await index.document(bank, "d") == Document(f"Ada's locker is {second}.", 1)
    assert await index.count_units(bank, "d") == 1
    assert await places_with(index_rows, first) == set()


@pytest.mark.parametrize(
    "text",
    [
        "艾达每天早上喝绿茶，不加糖。",
        "👩🏽‍🚀 café naïve ﷽ \u202eright\u202c\u200d \U0001f600",
        "  spaces around, a tab\t, lines\n\n  and\r\nmore  ",
        '⟦not ours⟧ <b>&amp;</b> {"json": [1]} \'; DROP TABLE documents; --',
        "x",
    ],
    ids=["chinese", "unicode", "whitespace", "markup", "one letter"],
)
async def test_words_come_back_as_they_went_in(index: HindsightIndex, bank: str, text: str) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", text)
    document = await index.document(bank, "d")
    assert document is not None
    assert document.text == text
    assert document.holds(text)


async def test_of_what_hindsight_would_drop_nothing_is_sent(
    index: HindsightIndex, http: httpx.AsyncClient, daemon: BankTokens, bank: str
) -> None:
    text = "Ada\x07 drinks ⟦hs-att:0123456789ab⟧⟦hs-\x1fatt:⟧tea\x7f.\t\r\n"
    await index.ensure_bank(bank)
    await index.retain(bank, "d", text)
    document = await index.document(bank, "d")
    assert document is not None
    assert document.text == indexable(text) == "Ada drinks tea.\t\r\n"
    assert document.holds(text)
    # The reason: Hindsight drops it without a word, and reading back would never agree.
    answer = await http.post(
        f"/v1/default/banks/{bank}/memories",
        json={"items": [{"content": text, "document_id": "e"}]},
        headers={"authorization": f"Bearer {daemon.token(bank, 'document.retain')}"},
    )
    assert answer.json()["success"] is True
    raw = await index.document(bank, "e")
    assert raw is not None
    assert raw.text is not None
    assert raw.text != text
    assert indexable(raw.text) == indexable(text)


async def test_a_long_text_becomes_several_units_of_its_own_words(
    index: HindsightIndex, index_rows: asyncpg.Connection, bank: str
) -> None:
    text = " ".join(f"Sentence number {number} is about tea." for number in range(150))
    await index.ensure_bank(bank)
    await index.retain(bank, "d", text)
    document = await index.document(bank, "d")
    assert document is not None
    assert (document.text, document.unit_count) == (text, await index.count_units(bank, "d"))
    units = await index_rows.fetch(
        "SELECT text, fact_type FROM memory_units WHERE bank_id = $1 AND document_id = 'd'", bank
    )
    assert len(units) > 1
    assert all(unit["text"] in text and unit["fact_type"] == "world" for unit in units)


async def test_a_retain_leaves_no_operation_behind(index: HindsightIndex, bank: str) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    assert await index.operations(bank) == []


async def test_a_deleted_document_is_gone_from_every_table_and_a_second_delete_finds_nothing(
    index: HindsightIndex, index_rows: asyncpg.Connection, bank: str
) -> None:
    marker = uuid4().hex
    await index.ensure_bank(bank)
    await index.retain(bank, "d", f"Ada's locker is {marker}.")
    await index.retain(bank, "e", "Ada drinks green tea.")
    assert {"documents", "memory_units", "chunks"} <= await places_with(index_rows, marker)
    assert await index.delete_document(bank, "d") is True
    assert await index.delete_document(bank, "d") is False
    assert await index.document(bank, "d") is None
    assert await index.count_units(bank, "d") == 0
    assert await index.count_units(bank, "e") == 1
    assert await places_with(index_rows, marker) == set()


async def test_after_a_delete_only_identifiers_stay_in_operations(index: HindsightIndex, bank: str) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    await index.delete_document(bank, "d")
    operations = await index.operations(bank)
    assert {operation.type for operation in operations} == {"graph_maintenance"}
    keys = await index.operation_payload_keys(bank, operations[0].id)
    assert keys is not None
    assert keys <= {"type", "bank_id", "operation_id"}


async def test_the_work_that_follows_a_delete_completes(index: HindsightIndex, bank: str) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    await index.delete_document(bank, "d")
    for _ in range(150):
        await asyncio.sleep(0.2)
        statuses = {operation.status for operation in await index.operations(bank)}
        if statuses == {"completed"}:
            break
    assert statuses == {"completed"}


async def test_an_operation_that_is_not_there_has_no_payload(index: HindsightIndex, bank: str) -> None:
    await index.ensure_bank(bank)
    assert await index.operation_payload_keys(bank, str(uuid4())) is None


async def test_units_are_counted_by_document_and_observations_apart(
    index: HindsightIndex, index_rows: asyncpg.Connection, bank: str
) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    await index.retain(bank, "e", "Ada drinks black coffee.")
    assert await index.count_units(bank, "d") == 1
    assert await index.count_units(bank, "nothing") == 0
    assert await index.count_observations(bank) == 0
    # As consolidation would write it: of two memories, of no document.
    await index_rows.execute(
        """
        INSERT INTO memory_units (bank_id, text, fact_type, source_memory_ids, event_date)
        SELECT $1, 'Ada drinks.', 'observation', array_agg(id), now() FROM memory_units WHERE bank_id = $1
        """,
        bank,
    )
    assert await index.count_units(bank, "d") == 1
    assert await index.count_observations(bank) == 1
    await index.delete_document(bank, "d")
    assert await index.count_observations(bank) == 0


async def test_a_bank_is_there_once_it_was_made_and_making_it_again_keeps_it(
    index: HindsightIndex, bank: str
) -> None:
    assert await index.bank_exists(bank) is False
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    await index.ensure_bank(bank)
    assert await index.bank_exists(bank) is True
    assert await index.count_units(bank, "d") == 1


async def test_a_bank_has_our_settings(
    index: HindsightIndex, http: httpx.AsyncClient, daemon: BankTokens, bank: str
) -> None:
    await index.ensure_bank(bank)
    answer = await http.get(
        f"/v1/default/banks/{bank}/config",
        headers={"authorization": f"Bearer {daemon.token(bank, 'bank.read')}"},
    )
    settings: dict[str, Any] = answer.raise_for_status().json()
    assert settings["overrides"] == dict(BANK_SETTINGS)
    assert settings["config"].items() >= BANK_SETTINGS.items()


async def test_a_retain_makes_no_bank(
    index: HindsightIndex, index_rows: asyncpg.Connection, bank: str
) -> None:
    marker = uuid4().hex
    with pytest.raises(HindsightRefused):
        await index.retain(bank, "d", f"Ada's locker is {marker}.")
    assert await index.bank_exists(bank) is False
    assert await places_with(index_rows, marker) == set()


async def test_after_its_expiry_a_write_changes_nothing(index: HindsightIndex, bank: str) -> None:
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    past = datetime.now(UTC) - timedelta(seconds=10)
    with pytest.raises(HindsightRefused):
        await index.retain(bank, "d", "Ada drinks black coffee.", expires_at=past)
    with pytest.raises(HindsightRefused):
        await index.delete_document(bank, "d", expires_at=past)
    with pytest.raises(HindsightRefused):
        await index.ensure_bank(f"{bank}-2", expires_at=past)
    assert await index.document(bank, "d") == Document("Ada drinks green tea.", 1)
    assert await index.bank_exists(f"{bank}-2") is False


async def test_an_asynchronous_retain_is_refused_and_leaves_nothing(
    index: HindsightIndex,
    http: httpx.AsyncClient,
    index_rows: asyncpg.Connection,
    daemon: BankTokens,
    bank: str,
) -> None:
    marker = uuid4().hex
    await index.ensure_bank(bank)
    body = {"items": [{"content": f"Ada's locker is {marker}.", "document_id": "d"}], "async": True}
    answer = await http.post(
        f"/v1/default/banks/{bank}/memories",
        content=json.dumps(body),
        headers={
            "authorization": f"Bearer {daemon.token(bank, 'document.retain')}",
            "content-type": "application/json",
        },
    )
    assert answer.status_code == 400
    assert await index.operations(bank) == []
    assert await places_with(index_rows, marker) == set()


async def test_many_banks_share_the_same_few_indexes(
    index: HindsightIndex, index_rows: asyncpg.Connection
) -> None:
    async def indexes() -> int:
        return int(
            await index_rows.fetchval(
                "SELECT count(*) FROM pg_indexes WHERE schemaname = 'public' AND tablename = 'memory_units'"
            )
        )

    before = await indexes()
    banks = [f"bank-{uuid4().hex}" for _ in range(20)]
    for bank in banks:
        await index.ensure_bank(bank)
    for bank in banks[::10]:
        await index.retain(bank, "d", "Ada drinks green tea.")
    assert await indexes() == before
